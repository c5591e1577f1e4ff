//! The table of recorded cases.

use super::*;
use crate::claude::event;

const INIT: &str = r#"{"type":"system","subtype":"init","tools":[],"mcp_servers":[]}"#;

struct Case {
    name: &'static str,
    lines: Vec<String>,
    stderr: &'static str,
    exit: Exit,
    expected: Outcome,
    says: &'static str,
}

/// Returns the CLI's output on an API error: a synthetic block, and a result that is marked as a
/// success.
fn api_error(kind: &str, status: &str, reason: &str, message: &str) -> Vec<String> {
    vec![
        INIT.to_owned(),
        format!(
            r#"{{"type":"assistant","message":{{"id":"x","model":"<synthetic>","content":[{{"type":"text","text":"{message}"}}]}},"error":"{kind}","is_api_error_message":true,"api_error_status":{status}}}"#
        ),
        format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"result":"{message}","terminal_reason":"{reason}","api_error_status":{status}}}"#
        ),
    ]
}

fn case(
    name: &'static str,
    lines: Vec<String>,
    code: i32,
    expected: Outcome,
    says: &'static str,
) -> Case {
    Case { name, lines, stderr: "", exit: Exit::Code(code), expected, says }
}

fn result(fields: &str) -> Vec<String> {
    vec![INIT.to_owned(), format!(r#"{{"type":"result",{fields}}}"#)]
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    use Outcome::{AuthFailed, Failed, Ok, RateLimited, Unavailable};
    let stderr = |name, stderr, expected, says| Case { name, lines: vec![], stderr, exit: Exit::Code(1), expected, says };
    let signal = |name, signal, lines, expected| Case { name, lines, stderr: "", exit: Exit::Signal(signal), expected, says: "signal" };
    vec![
        case("success", result(r#""subtype":"success","is_error":false,"result":"Done","terminal_reason":"completed""#), 0, Ok, ""),
        case("401, API key", api_error("authentication_failed", "401", "api_error", "Invalid API key · Fix external API key"), 1, AuthFailed, "Invalid API key"),
        case("401, OAuth", api_error("authentication_failed", "401", "api_error", "Not logged in · Please run /login"), 1, AuthFailed, "Not logged in"),
        case("no key at all", api_error("authentication_failed", "null", "api_error", "Not logged in · Please run /login"), 1, AuthFailed, "Not logged in"),
        case("403", api_error("authentication_failed", "403", "api_error", "Failed to authenticate. API Error: 403"), 1, AuthFailed, "403"),
        case("400 credit", api_error("billing_error", "400", "api_error", "Credit balance is too low"), 1, Unavailable, "Credit"),
        case("429", api_error("rate_limit", "429", "api_error", "API Error: Request rejected (429)"), 1, RateLimited, "rejected"),
        case("529", api_error("server_error", "529", "api_error", "API Error: 529 Overloaded. check your inference gateway (127.0.0.1:4010)"), 1, Unavailable, "529"),
        case("500", api_error("server_error", "500", "api_error", "API Error: 500 Internal server error."), 1, Unavailable, "500"),
        case("too long, says the API", api_error("invalid_request", "400", "prompt_too_long", "Prompt is too long"), 1, Unavailable, "outgrown"),
        case("too long, says the CLI", api_error("invalid_request", "null", "blocking_limit", "Prompt is too long"), 1, Unavailable, "outgrown"),
        case("404 model", api_error("model_not_found", "404", "api_error", "There's an issue with the selected model (x)."), 1, Unavailable, "selected model"),
        case("connection refused", api_error("unknown", "null", "api_error", "API Error: Connection refused (ECONNREFUSED)"), 1, Unavailable, "refused"),
        case("400 of another kind", api_error("invalid_request", "400", "api_error", "messages.3: bad"), 1, Failed, "bad"),
        case("max_turns", result(r#""subtype":"error_max_turns","is_error":true,"terminal_reason":"max_turns""#), 1, Failed, "max_turns"),
        case("max_tokens", api_error("max_output_tokens", "null", "completed", "exceeded the output token maximum"), 1, Failed, "maximum"),
        case("interrupted by another process", result(r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools""#), 0, Failed, "aborted_tools"),
        case("a kind that we do not know, with a status", api_error("novel", "503", "api_error", "x"), 1, Unavailable, "x"),
        case("exit 0 without result", vec![INIT.to_owned()], 0, Failed, "exit code 0"),
        case("exit 0 with nothing at all", vec![], 0, Unavailable, "exit code 0"),
        case("a retry alone is no outcome", vec![INIT.to_owned(), r#"{"type":"system","subtype":"api_retry","error_status":401,"error":"authentication_failed"}"#.to_owned()], 1, Failed, "exit code 1"),
        case("SIGTERM of another process", vec![INIT.to_owned()], 143, Failed, "143"),
        case("an error block without result", api_error("rate_limit", "429", "", "x").into_iter().take(2).collect(), 1, RateLimited, "exit code 1"),
        signal("SIGKILL of another process", 9, vec![INIT.to_owned()], Failed),
        signal("SIGKILL before it began", 9, vec![], Unavailable),
        stderr("settings missing", "Error: Settings file not found: /x", Unavailable, "Settings file"),
        stderr("MCP configuration invalid", "Error: Invalid MCP configuration:\nMCP config is not a valid JSON", Unavailable, "not a valid JSON"),
        stderr("an unknown flag", "error: unknown option '--system-prompt-snapshot'", Unavailable, "unknown option"),
        stderr("marker of a limit", "API error: 429 rate_limit_error", RateLimited, "429"),
        stderr("marker of a login", "authentication_failed", AuthFailed, "authentication_failed"),
        stderr("marker of a long prompt", "Prompt is too long", Unavailable, "outgrown"),
        case("an error event", vec![INIT.to_owned(), r#"{"type":"error","error":{"type":"rate_limit_error"}}"#.to_owned()], 1, RateLimited, "exit code 1"),
        case("text of a model are no marker", vec![INIT.to_owned(), r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"429 rate_limit 401"}]}}"#.to_owned()], 1, Failed, "exit code 1"),
        case("a success beats the exit code", result(r#""subtype":"success","is_error":false,"terminal_reason":"completed""#), 143, Ok, ""),
    ]
}

fn shown(lines: &[String], stderr: &str) -> Transcript {
    let mut transcript = Transcript::default();
    for line in lines {
        transcript.absorb(&event::parse(line).expect("a JSON object"));
    }
    for line in stderr.lines() {
        transcript.absorb_stderr(line);
    }
    transcript
}

fn evidence(exit: Exit, transcript: &Transcript) -> Evidence<'_> {
    Evidence { exit, transcript, stop: None, retry_fallback: None }
}

#[test]
fn every_recorded_case_comes_out_right() {
    for Case { name, lines, stderr, exit, expected, says } in cases() {
        let verdict = classify(&evidence(exit, &shown(&lines, stderr)));
        assert_eq!(verdict.outcome, expected, "{name}: {verdict:?}");
        assert!(verdict.error.contains(says), "{name}: {verdict:?}");
        assert_eq!(verdict.error.is_empty(), expected == Outcome::Ok, "{name}: {verdict:?}");
        assert_eq!(verdict.too_long, says == "outgrown", "{name}: {verdict:?}");
    }
}

#[test]
fn a_limit_that_says_when_it_ends_beats_the_fixed_rest() {
    let mut lines = api_error("rate_limit", "429", "api_error", "You've hit your 5-hour limit");
    let fallback = Some(WallTime(5));
    let retry_time = |lines: &[String]| {
        let transcript = shown(lines, "");
        let evidence = evidence(Exit::Code(1), &transcript);
        classify(&Evidence { retry_fallback: fallback, ..evidence }).retry_time
    };
    assert_eq!(retry_time(&lines), fallback);
    lines.push(r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1795297229}}"#.to_owned());
    assert_eq!(retry_time(&lines), fallback);
    lines.push(r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795297229}}"#.to_owned());
    assert_eq!(retry_time(&lines), Some(WallTime(1_795_297_229_000)));
}

#[test]
fn why_we_stopped_it_decides_unless_the_model_was_done() {
    let done = result(r#""subtype":"success","is_error":false,"terminal_reason":"completed""#);
    let aborted = result(
        r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming""#,
    );
    // The CLI's output on an interrupt in a tool call: a result that the tool never returned.
    let mut tool = vec![
        INIT.to_owned(),
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"x"}]}}"#.to_owned(),
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"rejected"}]}}"#
            .to_owned(),
    ];
    tool.extend(result(
        r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools""#,
    ));
    let idle = |in_tool| StopCause::Idle { seconds: 9, in_tool };
    let breach = StopCause::Unfenced(Breach::NoInit);
    let table = [
        (&aborted, StopCause::Cancelled, Outcome::Cancelled),
        (&aborted, StopCause::Drained, Outcome::Drained),
        (&done, StopCause::Cancelled, Outcome::Ok),
        (&done, StopCause::Drained, Outcome::Ok),
        (&done, idle(true), Outcome::Ok),
        (&done, breach, Outcome::Unavailable),
        (&aborted, idle(false), Outcome::Unavailable),
        (&tool, idle(true), Outcome::Failed),
        (&aborted, StopCause::Overlong(9), Outcome::Failed),
    ];
    for (lines, stop, expected) in table {
        let transcript = shown(lines, "");
        let evidence = evidence(Exit::Code(0), &transcript);
        let evidence = Evidence { stop: Some(&stop), ..evidence };
        assert_eq!(classify(&evidence).outcome, expected, "{stop:?}");
    }
}

/// Returns the CLI's output of a failed `/compact`: only the message states the reason.
fn failed_compaction(message: &str) -> Vec<String> {
    vec![
        r#"{"type":"system","subtype":"status","status":"compacting","session_id":"s"}"#.to_owned(),
        format!(
            r#"{{"type":"system","subtype":"status","status":null,"compact_result":"failed","compact_error":"{message}","session_id":"s"}}"#
        ),
        INIT.to_owned(),
        format!(
            r#"{{"type":"assistant","message":{{"id":"x","model":"<synthetic>","content":[{{"type":"text","text":"{message}"}}],"usage":{{"input_tokens":0,"output_tokens":0}}}},"local_command_run":{{"command":"compact","args":""}},"local_command_outcome":{{"kind":"failed"}}}}"#
        ),
        format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"num_turns":0,"result":"{message}","local_command":"compact"}}"#
        ),
    ]
}

fn compaction(lines: &[String]) -> Verdict {
    classify_compaction(&evidence(Exit::Code(0), &shown(lines, "")))
}

#[test]
fn a_compaction_is_judged_by_its_own_word_not_by_its_exit() {
    for (message, expected) in [
        (
            "Compaction failed · conversation could not be reduced below the context limit",
            Outcome::Failed,
        ),
        ("Error during compaction: summarization produced empty response", Outcome::Failed),
        (
            "Error during compaction: API Error: 529 Overloaded. check your inference gateway (127.0.0.1:4010).",
            Outcome::Unavailable,
        ),
        ("Error during compaction: API Error: 500 Internal server error.", Outcome::Unavailable),
        ("Error during compaction: Invalid API key · Fix external API key", Outcome::AuthFailed),
        ("Error during compaction: Failed to authenticate. API Error: 401 x", Outcome::AuthFailed),
        (
            "Error during compaction: API Error: Request rejected (429) · slow down",
            Outcome::RateLimited,
        ),
        (
            "Error during compaction: You've hit your 5-hour limit · resets 9:40pm (UTC)",
            Outcome::RateLimited,
        ),
    ] {
        let verdict = compaction(&failed_compaction(message));
        assert_eq!((verdict.outcome, verdict.too_long), (expected, false), "{message}");
        assert_eq!(verdict.error, message);
    }
}

#[test]
fn a_limit_hit_by_a_compaction_is_waited_out() {
    let mut lines = failed_compaction("Error during compaction: You've hit your 5-hour limit");
    lines.insert(
        1,
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":2000}}"#
            .to_owned(),
    );
    let verdict = compaction(&lines);
    assert_eq!(
        (verdict.outcome, verdict.retry_time),
        (Outcome::RateLimited, Some(WallTime(2_000_000)))
    );
}

#[test]
fn a_successful_compaction_reports_the_new_size_and_its_cost() {
    let lines = [
        r#"{"type":"system","subtype":"status","status":null,"compact_result":"success","session_id":"s"}"#.to_owned(),
        INIT.to_owned(),
        r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"manual","pre_tokens":180132,"post_tokens":505}}"#.to_owned(),
        r#"{"type":"user","message":{"role":"user","content":"This session is being continued"},"isSynthetic":true}"#.to_owned(),
        r#"{"type":"result","subtype":"success","is_error":false,"num_turns":0,"result":"","local_command":"compact","usage":{"input_tokens":0,"output_tokens":0},"model_usage_since_last_result":{"m":{"inputTokens":10,"outputTokens":20,"cacheReadInputTokens":30,"cacheCreationInputTokens":40,"costUSD":0.5}}}"#.to_owned(),
    ];
    assert_eq!(compaction(&lines).outcome, Outcome::Ok);
    let transcript = shown(&lines, "");
    assert_eq!(
        (transcript.compacted, transcript.post_tokens, transcript.context_tokens),
        (true, Some(505), 505)
    );
    let usage = transcript.usage(None);
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_micro_usd), (10, 20, 500_000));
}

#[test]
fn nothing_to_compact_is_no_success() {
    let lines = [
        INIT.to_owned(),
        r#"{"type":"result","subtype":"success","is_error":false,"num_turns":0,"result":"","local_command":"compact"}"#
            .to_owned(),
    ];
    assert_eq!(compaction(&lines).outcome, Outcome::Failed);
    let mut lines_with_error = failed_compaction("Error: No messages to compact");
    lines_with_error.drain(..2);
    lines_with_error[2].clone_from(&lines[1]);
    let verdict = compaction(&lines_with_error);
    assert_eq!(
        (verdict.outcome, verdict.error.as_str()),
        (Outcome::Failed, "Error: No messages to compact")
    );
    assert!(is_nothing_to_compact(&verdict.error));
    assert_eq!(compaction(&[]).outcome, Outcome::Unavailable);
}
