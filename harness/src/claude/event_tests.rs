//! Recorded lines, and lines that no CLI would print.

use proptest::prelude::*;

use super::*;

#[test]
fn recorded_lines_are_read() {
    let init = parse(
        r#"{"type":"system","subtype":"init","tools":["Edit","mcp__hive__send"],"mcp_servers":[{"name":"hive","status":"connected","source":"dynamic"}],"model":"m","session_id":"s"}"#,
    );
    let Some(Event::Init(init)) = init else { unreachable!("an init: {init:?}") };
    assert_eq!(init.tools, ["Edit", "mcp__hive__send"]);
    assert_eq!(init.mcp_servers, [("hive".to_owned(), "connected".to_owned())]);

    let answer = parse(
        r#"{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text","text":"I will."},{"type":"tool_use","id":"toolu_1","name":"mcp__hive__send","input":{}}],"usage":{"input_tokens":3,"cache_creation_input_tokens":3568,"cache_read_input_tokens":7,"output_tokens":1}},"parent_tool_use_id":null}"#,
    );
    let Some(Event::Assistant(answer)) = answer else { unreachable!("an answer: {answer:?}") };
    assert_eq!(answer.usage.context_tokens(), 3578);
    assert_eq!(answer.tool_uses, [("toolu_1".to_owned(), "mcp__hive__send".to_owned())]);
    assert!(!answer.nested && answer.error.is_none());

    let results = parse(
        r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"a","type":"tool_result","content":[]},{"tool_use_id":"b","type":"tool_result","is_error":true}]}}"#,
    );
    assert_eq!(
        results,
        Some(Event::ToolResults(vec![
            ToolResult { tool_use_id: "a".into(), is_error: false },
            ToolResult { tool_use_id: "b".into(), is_error: true },
        ]))
    );

    let limit = parse(
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795297229}}"#,
    );
    assert_eq!(
        limit,
        Some(Event::RateLimit(RateLimit { rejected: true, resets_at: Some(1_795_297_229) }))
    );

    let result = parse(
        r#"{"type":"result","subtype":"success","is_error":true,"result":"x","terminal_reason":"api_error","api_error_status":429,"total_cost_usd":0.5,"usage":{"output_tokens":4},"modelUsage":{"m":{"contextWindow":200000}},"model_usage_since_last_result":{"m":{"costUSD":0.25}}}"#,
    );
    let Some(Event::Result(result)) = result else { unreachable!("a result: {result:?}") };
    assert_eq!(
        (result.api_status, result.context_window, result.cost_of_turn),
        (Some(429), Some(200_000), Some(0.25))
    );
}

#[test]
fn unknown_lines_are_other() {
    for line in [
        r#"{"type":"novelty"}"#,
        "{}",
        r#"{"type":7}"#,
        r#"{"type":"system","subtype":"api_retry","error_status":401}"#,
    ] {
        assert_eq!(parse(line), Some(Event::Other), "{line}");
    }
    assert_eq!(parse("Error: words"), None);
    assert_eq!(parse("[1]"), None);
}

#[test]
fn sums_stop_at_the_largest_number() {
    let of = |model: &str| {
        format!(r#""{model}":{{"inputTokens":18446744073709551615,"outputTokens":7}}"#)
    };
    let line = format!(
        r#"{{"type":"result","model_usage_since_last_result":{{{},{}}}}}"#,
        of("a"),
        of("b")
    );
    let Some(Event::Result(result)) = parse(&line) else { panic!("a result") };
    assert_eq!(result.usage, Usage { input: u64::MAX, output: 14, ..Usage::default() });
    assert_eq!(result.usage.context_tokens(), u64::MAX);
}

proptest! {
    #[test]
    fn no_line_makes_it_fail(line in "\\PC*") {
        let _ = parse(&line);
    }

    #[test]
    fn fields_of_a_wrong_type_are_as_if_absent(kind in "(system|assistant|user|result|rate_limit_event)", junk in "(1|null|true|\"x\"|\\[\\]|\\[1\\]|\\{\\})") {
        let line = format!(r#"{{"type":"{kind}","subtype":"init","message":{junk},"tools":{junk},"mcp_servers":{junk},"usage":{junk},"modelUsage":{junk},"rate_limit_info":{junk}}}"#);
        prop_assert!(parse(&line).is_some());
    }
}
