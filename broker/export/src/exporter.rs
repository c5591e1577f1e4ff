//! The exporter: posts spans to the collector, by OTLP over HTTP.
//!
//! Invariant: a batch is posted until the collector has taken or refused it, or the broker ends;
//! only the queue decides what is dropped in the meantime.

use std::time::Duration;

use hive_core::version;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use prost::Message as _;

use crate::TracesError;
use crate::post::{NoPoster, PostError, Poster};
use crate::wire::{self, ExportResponse, Span};

/// The program whose spans these are.
const PROGRAM: &str = "hived";
/// Pause after the first post that failed.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause between two posts of a batch.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There was no answer.
    #[error(transparent)]
    Post(#[from] PostError),
    /// The collector cannot take it now.
    #[error("{host} answered {status}; the spans are sent again")]
    Busy {
        /// The host of the URL.
        host: String,
        /// The status of the answer.
        status: StatusCode,
        /// How long the collector asks to wait.
        retry_after: Option<Duration>,
    },
    /// The collector does not take it.
    #[error("{host} answered {status}, so {spans} spans are dropped; correct `broker.traces`")]
    Refused {
        /// The host of the URL.
        host: String,
        /// The status of the answer.
        status: StatusCode,
        /// The spans of the batch.
        spans: usize,
    },
}

impl ExportError {
    /// Returns how long to wait until the batch is posted again, after this many failures; `None`
    /// if it is not.
    #[must_use]
    pub fn pause(&self, failures: u32) -> Option<Duration> {
        let backoff = PAUSE_MIN.saturating_mul(2_u32.saturating_pow(failures)).min(PAUSE_MAX);
        match self {
            Self::Post(_) => Some(backoff),
            Self::Busy { retry_after, .. } => {
                Some(retry_after.unwrap_or_default().clamp(backoff, PAUSE_MAX))
            }
            Self::Refused { .. } => None,
        }
    }
}

/// The exporter of a broker.
#[derive(Debug)]
pub(crate) struct Exporter {
    poster: Poster,
    /// The encoded resource of all spans.
    resource: Vec<u8>,
}

impl Exporter {
    /// Returns an exporter to this URL, which sends these headers.
    pub(crate) fn new(
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
        hive_name: &str,
    ) -> Result<Self, TracesError> {
        let poster = Poster::new(url).map_err(|error| match error {
            NoPoster::Url(error) => TracesError::Url(error),
            NoPoster::NoCertificates(error) => TracesError::NoCertificates(error),
        })?;
        let header = |(name, value): (String, String)| {
            let invalid = || TracesError::Header(name.clone());
            let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
            value.set_sensitive(true);
            Ok((HeaderName::try_from(&name).map_err(|_| invalid())?, value))
        };
        let headers = headers.into_iter().map(header).collect::<Result<HeaderMap, _>>()?;
        let resource = wire::resource(&[
            ("service.name", PROGRAM),
            ("service.version", version::VERSION),
            ("hive.name", hive_name),
        ]);
        Ok(Self { poster: poster.with_headers(headers), resource })
    }

    /// Returns a post of these spans.
    pub(crate) fn encode(&self, spans: &[Span]) -> Vec<u8> {
        wire::request(&self.resource, (PROGRAM, version::VERSION), spans)
    }

    /// Sends a post of this many spans; returns how many the collector has taken.
    pub(crate) async fn post(&self, post: Vec<u8>, spans: usize) -> Result<usize, ExportError> {
        let answer = self.poster.post("application/x-protobuf", post).await?;
        let (host, status) = (self.poster.host(), answer.status);
        if status.is_success() {
            let response = ExportResponse::decode(answer.body).unwrap_or_default();
            let rejected = response.partial_success.map_or(0, |part| part.rejected_spans);
            return Ok(spans.saturating_sub(usize::try_from(rejected).unwrap_or(0)));
        }
        // As the specification of OTLP has it.
        let is_busy = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        if is_busy.contains(&status) {
            return Err(ExportError::Busy { host, status, retry_after: answer.retry_after });
        }
        Err(ExportError::Refused { host, status, spans })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_a_collector_is_given_the_time_that_it_asks_for() {
        let away = ExportError::Post(PostError::NoAnswer { host: "x".into(), limit: PAUSE_MIN });
        let seconds: Vec<u64> =
            [0, 1, 5, 6, 40].into_iter().filter_map(|n| Some(away.pause(n)?.as_secs())).collect();
        assert_eq!(seconds, [1, 2, 32, 60, 60]);
        let busy = |seconds| ExportError::Busy {
            host: "x".into(),
            status: StatusCode::TOO_MANY_REQUESTS,
            retry_after: Some(Duration::from_secs(seconds)),
        };
        let pauses =
            [0, 20, 4000].map(|seconds| busy(seconds).pause(1).map(|pause| pause.as_secs()));
        assert_eq!(pauses, [Some(2), Some(20), Some(60)]);
        let status = StatusCode::BAD_REQUEST;
        let refused = ExportError::Refused { host: "x".into(), status, spans: 1 };
        assert_eq!(refused.pause(0), None);
    }
}
