//! The meaning of the end of a claude process: one pure function over all evidence.
//!
//! Fields take precedence over text: the CLI reports `subtype: "success"` next to `is_error`, exits
//! 0 when interrupted, and prints text with any number. Marker texts count only without a result
//! event. Invariant: no outage (limits, logins, the API, billing, a broken installation) results in
//! FAILED, because a failed turn uses an attempt of its message.

use hive_core::limits::ERROR_BYTES_MAX;
use hive_core::time::WallTime;
use hive_core::turn::Outcome;

use crate::claude::event::TurnResult;
use crate::claude::fences::Breach;
use crate::claude::line;
use crate::claude::transcript::{ApiError, Markers, Transcript};

/// The exit of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    Signal(i32),
}

/// Why the harness ended the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// The operator cancelled the turn.
    Cancelled,
    /// The harness shuts down.
    Drained,
    /// There was no output for this number of seconds.
    Idle {
        seconds: u64,
        /// Whether a tool ran at that moment. This must be recorded then: when claude is
        /// interrupted, it makes up a result for the call.
        in_tool: bool,
    },
    /// The run took longer than this number of seconds.
    Overlong(u64),
    /// Its fences were not proven.
    Unfenced(Breach),
}

/// All evidence about a process that ended.
#[derive(Debug)]
pub struct Evidence<'a> {
    pub exit: Exit,
    pub transcript: &'a Transcript,
    /// Why the harness ended it, if it did.
    pub stop: Option<&'a StopCause>,
    /// The end of a rate limit that does not state one.
    pub retry_fallback: Option<WallTime>,
}

/// The meaning of a process's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub outcome: Outcome,
    /// Error text; empty if there is none.
    pub error: String,
    /// When the rate limit ends, if that is known.
    pub retry_time: Option<WallTime>,
    /// Whether the conversation outgrew the model's window: only a new or a compacted one helps.
    pub too_long: bool,
}

impl Verdict {
    pub(crate) fn new(outcome: Outcome, error: impl Into<String>) -> Self {
        Self { outcome, error: error.into(), retry_time: None, too_long: false }
    }
}

/// Judges the end of a process.
pub fn classify(evidence: &Evidence<'_>) -> Verdict {
    let Evidence { exit, transcript, stop, retry_fallback: _ } = evidence;
    if let Some(StopCause::Unfenced(breach)) = stop {
        return Verdict::new(Outcome::Unavailable, breach.to_string());
    }
    let result = transcript.result.as_ref();
    // A turn that the model ended is complete, regardless of earlier errors.
    if result.is_some_and(|result| !result.is_error && result.subtype == "success") {
        return Verdict::new(Outcome::Ok, String::new());
    }
    if let Some(stop) = stop {
        return stopped(stop);
    }
    let mut verdict = match result {
        Some(result) => by_fields(result, transcript.api_error.as_ref()),
        None => match transcript.api_error.as_ref() {
            Some(error) => by_kind(&error.kind, error.status)
                .unwrap_or_else(|| Verdict::new(Outcome::Failed, without_result(*exit))),
            None => by_markers(transcript.markers, *exit, transcript),
        },
    };
    verdict.retry_time = reset_time(evidence, verdict.outcome);
    if verdict.error.is_empty() {
        verdict.error = error_text(result, transcript, *exit);
    }
    verdict.error = line::beginning(&verdict.error, ERROR_BYTES_MAX).to_owned();
    verdict
}

/// Judges the end of a process that had to compact the conversation. Its successful exit proves
/// nothing; only claude's own report counts.
pub fn classify_compaction(evidence: &Evidence<'_>) -> Verdict {
    let judged = Verdict { too_long: false, ..classify(evidence) };
    if judged.outcome != Outcome::Ok {
        return judged;
    }
    let transcript = evidence.transcript;
    if let (None | Some(Err(_)), Some(stop)) = (&transcript.compact_result, evidence.stop) {
        return stopped(stop);
    }
    match &transcript.compact_result {
        Some(Ok(())) => judged,
        Some(Err(message)) => {
            let outcome = if transcript.rate_limit.rejected {
                Outcome::RateLimited
            } else {
                by_compact_error(message)
            };
            Verdict {
                retry_time: reset_time(evidence, outcome),
                ..Verdict::new(outcome, line::beginning(message, ERROR_BYTES_MAX))
            }
        }
        None => {
            // If there is nothing to compact, the CLI reports that only as a remark.
            let output = [
                transcript.result.as_ref().map_or("", |result| result.text.trim()),
                transcript.remark.trim(),
            ];
            let message = output.into_iter().find(|message| !message.is_empty());
            let message = message.unwrap_or("claude reported no compaction");
            Verdict::new(Outcome::Failed, line::beginning(message, ERROR_BYTES_MAX))
        }
    }
}

/// Returns whether a compaction failed because the conversation has nothing to sum up.
pub fn is_nothing_to_compact(message: &str) -> bool {
    ["Not enough messages to compact", "No messages to compact"]
        .iter()
        .any(|text| message.contains(text))
}

/// Judges a failed compaction by its error. There are no fields; the text is the CLI's own, never a
/// peer's.
fn by_compact_error(message: &str) -> Outcome {
    let message = message.strip_prefix("Error during compaction: ").unwrap_or(message);
    let status = message
        .split("API Error: ")
        .nth(1)
        .and_then(|rest| rest.get(..3))
        .and_then(|digits| digits.parse::<u16>().ok());
    let has = |any: &[&str]| any.iter().any(|text| message.starts_with(text));
    if status == Some(429) || message.contains("rejected (429)") || has(&["You've hit your"]) {
        Outcome::RateLimited
    } else if matches!(status, Some(401 | 403))
        || has(&["Invalid API key", "Not logged in", "Failed to authenticate"])
    {
        Outcome::AuthFailed
    } else if status.is_some_and(|status| status >= 500)
        || has(&["API Error: Connection", "Credit balance"])
    {
        Outcome::Unavailable
    } else {
        Outcome::Failed
    }
}

/// Returns when a rate limit ends, if that is known or configured.
fn reset_time(evidence: &Evidence<'_>, outcome: Outcome) -> Option<WallTime> {
    if outcome != Outcome::RateLimited {
        return None;
    }
    let limit = &evidence.transcript.rate_limit;
    let reset = limit.resets_at.filter(|_| limit.rejected);
    reset.map(|seconds| WallTime(seconds.saturating_mul(1000))).or(evidence.retry_fallback)
}

/// Judges a process that the harness ended.
pub fn stopped(stop: &StopCause) -> Verdict {
    match stop {
        StopCause::Cancelled => Verdict::new(Outcome::Cancelled, "cancelled by the operator"),
        StopCause::Drained => Verdict::new(Outcome::Drained, "the harness was shut down"),
        StopCause::Idle { seconds, in_tool } => {
            // A silence of the API is an outage; a tool that never returns may be the message's
            // fault.
            let (outcome, what) = if *in_tool {
                (Outcome::Failed, "a tool call did not return")
            } else {
                (Outcome::Unavailable, "the model's API did not answer")
            };
            Verdict::new(
                outcome,
                format!(
                    "{what}: nothing was heard from claude for {seconds} s (HIVE_TURN_IDLE_TIMEOUT_SECS)"
                ),
            )
        }
        StopCause::Overlong(seconds) => Verdict::new(
            Outcome::Failed,
            format!("the turn took longer than {seconds} s (HIVE_TURN_MAX_SECS)"),
        ),
        StopCause::Unfenced(breach) => Verdict::new(Outcome::Unavailable, breach.to_string()),
    }
}

fn by_fields(result: &TurnResult, api_error: Option<&ApiError>) -> Verdict {
    if matches!(result.terminal_reason.as_str(), "prompt_too_long" | "blocking_limit")
        || result.api_status == Some(413)
    {
        return too_long(&result.text);
    }
    let kind = api_error.map_or("", |error| error.kind.as_str());
    let status = result.api_status.or(api_error.and_then(|error| error.status));
    if let Some(verdict) = by_kind(kind, status) {
        return verdict;
    }
    match result.terminal_reason.as_str() {
        // Without a kind or a status, the connection was refused or lost.
        "api_error" => Verdict::new(Outcome::Unavailable, ""),
        _ => Verdict::new(Outcome::Failed, ""),
    }
}

/// Judges by the kind of error, then by the API's status. The caller fills in the error text.
fn by_kind(kind: &str, status: Option<u16>) -> Option<Verdict> {
    let outcome = match kind {
        "rate_limit" | "usage_limit_reached" => Outcome::RateLimited,
        "authentication_failed" | "oauth_org_not_allowed" => Outcome::AuthFailed,
        "server_error" | "billing_error" | "model_not_found" | "overloaded" => Outcome::Unavailable,
        // The API refused the message's content in the conversation, or the model could not end it.
        "invalid_request" | "max_output_tokens" => Outcome::Failed,
        _ => match status? {
            429 => Outcome::RateLimited,
            401 | 403 => Outcome::AuthFailed,
            400 | 422 => Outcome::Failed,
            _ => Outcome::Unavailable,
        },
    };
    Some(Verdict::new(outcome, ""))
}

/// Judges by texts, for versions of the CLI without fields.
fn by_markers(markers: Markers, exit: Exit, transcript: &Transcript) -> Verdict {
    if markers.rate_limited {
        return Verdict::new(Outcome::RateLimited, "");
    }
    if markers.auth_failed {
        return Verdict::new(Outcome::AuthFailed, "");
    }
    if transcript.stderr().contains("Prompt is too long") {
        return too_long("Prompt is too long");
    }
    // claude did not reach the message: a missing file, a bad configuration, a broken installation.
    let outcome = if transcript.init.is_none() { Outcome::Unavailable } else { Outcome::Failed };
    let stderr = transcript.stderr();
    let output =
        if stderr.is_empty() { String::new() } else { format!(": {}", line::ending(stderr, 1000)) };
    Verdict::new(outcome, format!("{}{output}", without_result(exit)))
}

fn too_long(message: &str) -> Verdict {
    Verdict {
        too_long: true,
        ..Verdict::new(
            Outcome::Unavailable,
            format!("{message}: the conversation has outgrown the model's window"),
        )
    }
}

fn without_result(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("claude ended without a result (exit code {code})"),
        Exit::Signal(signal) => format!("claude ended without a result (signal {signal})"),
    }
}

fn error_text(result: Option<&TurnResult>, transcript: &Transcript, exit: Exit) -> String {
    let Some(result) = result else {
        let stderr = transcript.stderr();
        return if stderr.is_empty() {
            without_result(exit)
        } else {
            line::ending(stderr, 1000).to_owned()
        };
    };
    if !result.text.is_empty() {
        return result.text.clone();
    }
    let reason =
        if result.terminal_reason.is_empty() { &result.subtype } else { &result.terminal_reason };
    format!("claude ended the turn with {reason}")
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
