//! A hive, as a client sees it: one socket, and all calls over it.
//!
//! Invariant: every call carries the metadata of this client, and each call with one answer goes
//! through [`crate::retry`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message as _;
use prost::bytes::Bytes;
use tonic::client::Grpc;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Extensions, Request};

use crate::call::Call;
use crate::codec::Raw;
use crate::connect::{DEFAULT_SOCKET, SOCKET_ENV, connect_lazy_as};
use crate::error::Error;
use crate::handshake::{ADDITIONS, Channel, Handshake, Program};
use crate::retry::repeated;
use crate::v1::GetServerInfoResponse;
use crate::{PROCESS_TOKEN_ENV, PROCESS_TOKEN_KEY, TRACEPARENT_ENV, TRACEPARENT_KEY};

/// How to connect.
#[derive(Clone, Debug)]
pub struct Options {
    /// The socket. Default: `HIVE_SOCKET`, a path or a `unix:` URI, or `/run/hive/hive.sock`.
    pub socket: PathBuf,
    /// What the broker logs about this program.
    pub program: Program,
    /// How long a call is repeated until it is answered. Default: 30 s.
    pub timeout: Duration,
    /// The process token of a turn of claude; empty for none. Default: `HIVE_PROCESS_TOKEN`.
    pub process_token: String,
    /// The W3C trace context of this program; empty for none. Default: `TRACEPARENT`.
    pub traceparent: String,
}

impl Default for Options {
    fn default() -> Self {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let socket = std::env::var_os(SOCKET_ENV).filter(|path| !path.is_empty());
        Self {
            socket: socket.map_or_else(|| DEFAULT_SOCKET.into(), PathBuf::from),
            program: Program { name: "hive-client", version: env!("CARGO_PKG_VERSION") },
            timeout: Duration::from_secs(30),
            process_token: variable(PROCESS_TOKEN_ENV),
            traceparent: variable(TRACEPARENT_ENV),
        }
    }
}

/// A client of a hive. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Hive {
    socket: Arc<Path>,
    channel: Channel,
    metadata: Arc<MetadataMap>,
    ids: Arc<Ids>,
    timeout: Duration,
}

impl Hive {
    /// Returns a client of the hive that the environment names. It connects at its first call, and
    /// again after every loss.
    pub fn connect() -> Result<Self, Error> {
        Self::connect_with(Options::default())
    }

    /// Returns a client of a hive. An error is INVALID_ARGUMENT: a path that no socket can have, or
    /// a token that metadata cannot have.
    pub fn connect_with(options: Options) -> Result<Self, Error> {
        let Options { socket, program, timeout, process_token, traceparent } = options;
        let socket = path(socket)?;
        let channel = connect_lazy_as(Handshake::new(program, ADDITIONS), &socket)?;
        let mut metadata = MetadataMap::new();
        for (key, value) in [(PROCESS_TOKEN_KEY, process_token), (TRACEPARENT_KEY, traceparent)] {
            if value.is_empty() {
                continue;
            }
            let value = value.parse::<MetadataValue<_>>().map_err(|_| {
                let fault = format!("the value for {key} has characters that metadata cannot have");
                Error::local(Code::InvalidArgument, format!("{fault}; pass on what the hive gave"))
            })?;
            metadata.insert(key, value);
        }
        let (metadata, ids) = (Arc::new(metadata), Arc::new(Ids::new()));
        Ok(Self { socket: socket.into(), channel, metadata, ids, timeout })
    }

    /// Returns the same client with another time for its calls.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// Makes a call and repeats it until it is answered, refused for good, or the time is over. An
    /// empty request id is filled in before the first attempt. To drop the future cancels it.
    pub async fn call<C: Call>(&self, mut request: C) -> Result<C::Answer, Error> {
        if let Some(id) = request.request_id().filter(|id| id.is_empty()) {
            *id = self.request_id();
        }
        let wait = request.wait();
        let path = PathAndQuery::from_static(C::PATH);
        let bytes = self.call_bytes(path, request.encode_to_vec().into(), wait).await?;
        C::Answer::decode(bytes).map_err(|error| {
            Error::local(Code::Internal, format!("the answer of {} is not valid: {error}", C::PATH))
        })
    }

    /// Makes a call whose messages are encoded. The broker may wait for `wait` before it answers.
    pub(crate) async fn call_bytes(
        &self,
        path: PathAndQuery,
        request: Bytes,
        wait: Duration,
    ) -> Result<Bytes, Error> {
        let attempt = || async {
            let mut grpc = Grpc::new(self.channel.clone());
            grpc.ready().await.map_err(|error| tonic::Status::from_error(error.into()))?;
            let request = self.request(request.clone());
            let answer = grpc.unary(request, path.clone(), Raw).await?;
            Ok(answer.into_inner())
        };
        repeated(&self.socket, self.timeout, wait, attempt).await
    }

    /// Returns what the broker of the present connection says about itself.
    pub async fn info(&self) -> Result<GetServerInfoResponse, Error> {
        repeated(&self.socket, self.timeout, Duration::ZERO, || self.channel.info()).await
    }

    /// Returns whether the broker can do something, by its name in `Capabilities`, such as
    /// `search`. What it does not know, it cannot do.
    pub async fn supports(&self, capability: &str) -> Result<bool, Error> {
        let has = self.info().await?.capabilities.unwrap_or_default();
        Ok(match capability {
            "questions" => has.questions,
            "reminders" => has.reminders,
            "loose_ends" => has.loose_ends,
            "search" => has.search,
            "login_dialogues" => has.login_dialogues,
            "backups" => has.backups,
            _ => false,
        })
    }

    /// Returns a new request id. The broker stores many of one client in one row.
    #[must_use]
    pub fn request_id(&self) -> String {
        self.ids.next()
    }

    /// Returns the channel, for a generated client such as `v1::inbox_service_client`. Its calls
    /// are not repeated, and need [`Hive::request`].
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Returns a request with the metadata of this client.
    #[must_use]
    pub fn request<T>(&self, message: T) -> Request<T> {
        Request::from_parts((*self.metadata).clone(), Extensions::default(), message)
    }
}

/// Returns the path of a `unix:` URI, or the path as it is.
fn path(socket: PathBuf) -> Result<PathBuf, Error> {
    let is_scheme = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    };
    let parts = socket.to_str().and_then(|text| text.split_once(':'));
    let Some((scheme, uri)) = parts.filter(|(scheme, _)| is_scheme(scheme)) else {
        return Ok(socket);
    };
    match uri.strip_prefix("//") {
        None if scheme == "unix" && !uri.is_empty() => Ok(uri.into()),
        Some(absolute) if scheme == "unix" && absolute.starts_with('/') => Ok(absolute.into()),
        _ => Err(Error::local(
            Code::InvalidArgument,
            format!(
                "{} is not the address of a unix socket; write unix:PATH, unix:///PATH or ./PATH",
                socket.display()
            ),
        )),
    }
}

/// Request ids: a random part of the client, and a counter.
#[derive(Debug)]
struct Ids {
    random: String,
    last: AtomicU64,
}

impl Ids {
    fn new() -> Self {
        let mut bytes = [0; 6];
        #[expect(clippy::expect_used, reason = "ids that are not random would be used twice")]
        getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
        let random = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { random, last: AtomicU64::new(0) }
    }

    fn next(&self) -> String {
        format!("{}-{}", self.random, self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_a_path_or_a_uri() {
        for (given, wanted) in [
            ("/run/hive/hive.sock", Some("/run/hive/hive.sock")),
            ("unix:/run/hive/hive.sock", Some("/run/hive/hive.sock")),
            ("unix:///run/hive/hive.sock", Some("/run/hive/hive.sock")),
            ("unix:here.sock", Some("here.sock")),
            ("unix:", None),
            ("unix://host/hive.sock", None),
            ("http://localhost:80", None),
            ("./a:b", Some("./a:b")),
            ("1:2", Some("1:2")),
        ] {
            let found = path(given.into()).ok();
            assert_eq!(found, wanted.map(PathBuf::from), "{given}");
        }
    }

    #[test]
    fn ids_of_a_client_count() {
        let (one, two) = (Ids::new(), Ids::new());
        let first = one.next();
        assert!(first.len() == 14 && first.ends_with("-1"), "{first}");
        assert!(one.next().ends_with("-2"));
        assert_ne!(first, two.next());
    }
}
