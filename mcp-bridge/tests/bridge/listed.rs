//! The bytes of `tools/list`: every byte is in the context of each conversation of each agent.
//!
//! Invariant: the tools of a group that is not a default one cost the other agents nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::rig::{self, stopped};

/// The tools of the default groups, one a line.
const DEFAULT_TOOLS: &str = include_str!("default_tools.jsonl");

const LIST_BEGINS: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":["#;
const LIST_ENDS: &str = "]}}";

/// Returns the frame that answers `tools/list`, as it is on the wire.
fn answer(groups: Option<&str>) -> String {
    let broker = stopped();
    let mut command = rig::command(&broker.socket());
    let command: &mut Command = command.as_std_mut();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(groups) = groups {
        command.env("HIVE_TOOL_GROUPS", groups);
    }
    let mut child = command.spawn().expect("hive-mcp starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    for frame in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}),
    ] {
        writeln!(stdin, "{frame}").expect("the bridge reads");
    }
    let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let answer = lines.map_while(Result::ok).nth(1).expect("the bridge answers twice");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    answer
}

/// Returns the frame with these tools.
fn frame(tools: &str) -> String {
    let tools = tools.lines().collect::<Vec<_>>().join(",");
    [LIST_BEGINS, &tools, LIST_ENDS].concat()
}

#[test]
fn the_list_of_the_default_groups_is_the_known_one_to_the_byte() {
    assert_eq!(answer(None), frame(DEFAULT_TOOLS));
    assert_eq!(answer(Some("messaging,inbox,meta,execution,web_tools")), frame(DEFAULT_TOOLS));
}

#[test]
fn the_group_approvals_is_small_and_adds_a_kind_to_cancel() {
    let alone = answer(Some("approvals"));
    let bytes = alone.len() - frame("").len();
    assert!(bytes <= 2_500, "its tools have {bytes} bytes: {alone}");
    let both = answer(Some("approvals,inbox"));
    assert!(both.contains(r#""enum":["question","reminder","approval"]"#), "{both}");
}

#[test]
fn the_group_lifecycle_is_small_and_is_after_the_default_tools() {
    let alone = answer(Some("lifecycle"));
    let bytes = alone.len() - frame("").len();
    assert!(bytes <= 2_000, "its tools have {bytes} bytes: {alone}");
    let lifecycle = &alone[LIST_BEGINS.len()..];
    let default = frame(DEFAULT_TOOLS);
    let default = default.strip_suffix(LIST_ENDS).expect("a list");
    let both = answer(Some("lifecycle,messaging,inbox,meta,execution"));
    assert_eq!(both, format!("{default},{lifecycle}"));
}

#[test]
fn the_group_diagnostics_is_small() {
    let alone = answer(Some("diagnostics"));
    let bytes = alone.len() - frame("").len();
    assert!(bytes <= 900, "its tools have {bytes} bytes: {alone}");
}

#[test]
fn the_group_scheduling_is_small_and_adds_a_kind_to_cancel() {
    let alone = answer(Some("scheduling"));
    let mut frame: Value = serde_json::from_str(&alone).expect("a frame is JSON");
    let tools = frame["result"]["tools"].as_array_mut().expect("a list");
    // A model does not see the hints for clients.
    for tool in tools.iter_mut() {
        tool.as_object_mut().expect("an object").remove("annotations").expect("hints");
    }
    let bytes: usize = tools.iter().map(|tool| tool.to_string().len()).sum();
    assert!(bytes <= 2_000, "its tools have {bytes} bytes: {alone}");
    let both = answer(Some("scheduling,inbox"));
    assert!(both.contains(r#""enum":["question","reminder","approval"]"#), "{both}");
}
