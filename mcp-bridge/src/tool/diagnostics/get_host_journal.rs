//! `get_host_journal`: the last lines of the host's journal about a unit that the operator named.

use hive_proto::v1::GetHostJournalRequest;
use hive_proto::v1::diagnostics_service_client::DiagnosticsServiceClient;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{line_count, render};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::one_line;
use crate::tool::{Tool, reads, schema};

const UNIT_CHARS_MAX: usize = 255;

pub(in crate::tool) struct GetHostJournal;

/// The arguments of `get_host_journal`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    /// As `nginx.service`.
    unit: String,
    /// As `2h` ago, or in RFC 3339.
    #[serde(default)]
    #[schemars(with = "String")]
    since: Option<String>,
    /// Default 100.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1, max = 500))]
    lines: Option<u64>,
}

impl Tool for GetHostJournal {
    const NAME: &'static str = "get_host_journal";
    const GROUP: Group = Group::Diagnostics;
    const DESCRIPTION: &'static str = "Read the last lines of the host's journal about a unit.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        reads()
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let unit = input.unit.trim().to_owned();
        let whose = format!("of the journal of {}", one_line(&unit, UNIT_CHARS_MAX));
        let since = input.since.as_deref().map(str::trim).filter(|since| !since.is_empty());
        let since = since.map(|since| time(since, Timestamp::now())).transpose()?;
        let request = GetHostJournalRequest { unit, since, lines: line_count(input.lines)? };
        let read = broker
            .call(call, request, |channel, request| async move {
                DiagnosticsServiceClient::new(channel).get_host_journal(request).await
            })
            .await?;
        Ok(render(&whose, &read.lines, read.truncated))
    }
}

/// Parses a time, or how long it is before `now`.
fn time(since: &str, now: Timestamp) -> Result<prost_types::Timestamp, Refusal> {
    let refused = || {
        Refusal::arguments(format_args!(
            "since: `{}` is neither a time like 2026-01-31T08:00:00Z nor a length like 30m or 2h",
            one_line(since, 60)
        ))
    };
    let time = match since.parse::<Timestamp>() {
        Ok(time) => time,
        Err(_) => {
            let span: Span = since.parse().map_err(|_| refused())?;
            let now = now.to_zoned(TimeZone::UTC);
            let length = span.to_duration(SpanRelativeTo::from(&now)).map_err(|_| refused())?;
            now.timestamp().checked_sub(length.abs()).map_err(|_| refused())?
        }
    };
    Ok(prost_types::Timestamp { seconds: time.as_second(), nanos: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_taken_as_models_write_it() {
        let now = Timestamp::from_second(1_000_000).expect("a time");
        let seconds = |since: &str| time(since, now).map(|time| time.seconds);
        assert_eq!(seconds("30m"), Ok(1_000_000 - 1_800));
        assert_eq!(seconds("1h 30m"), Ok(1_000_000 - 5_400));
        assert_eq!(seconds("2 days"), Ok(1_000_000 - 172_800));
        assert_eq!(seconds("2h ago"), Ok(1_000_000 - 7_200));
        assert_eq!(seconds("PT1H"), Ok(1_000_000 - 3_600));
        assert_eq!(seconds("1970-01-02T00:00:00Z"), Ok(86_400));
        assert_eq!(seconds("1970-01-02T02:00:00+02:00"), Ok(86_400));
        for wrong in ["yesterday", "-u", "@5", "2h; reboot", "1970-01-02"] {
            let refusal = time(wrong, now).expect_err(wrong);
            assert!(refusal.sentence.contains("is neither a time"), "{refusal:?}");
        }
    }
}
