//! Claude's calls before the first command: answered at once, with or without a harness.

use std::process::Stdio;
use std::time::{Duration, Instant};

use hive_tests::mcp::Client;
use serde_json::json;

use crate::harness::{Harness, command};

#[tokio::test]
async fn the_handshake_and_the_list_are_answered_fast_while_there_is_no_harness() {
    let harness = Harness::stopped();
    let started = Instant::now();
    let mut client = Client::spawn(&mut command(&harness)).expect("hive-mcp starts");
    let hello = client.handshake().await.expect("the handshake works");
    let answer = client.request("tools/list", json!({})).await.expect("tools are listed");
    // Tens of milliseconds on an idle machine; the limit allows for a busy one and still excludes
    // any wait for the harness.
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(hello["serverInfo"]["name"], "bash");
    let bytes = answer.to_string().len();
    assert!(bytes < 1_800, "tools/list has {bytes} bytes");
    let tools = answer["tools"].as_array().expect("a list");
    assert_eq!(
        tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect::<Vec<_>>(),
        ["run", "status"]
    );
    let hints = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true});
    assert_eq!(tools[0]["annotations"], hints);
    assert_eq!(tools[1]["annotations"], json!({"readOnlyHint": true, "openWorldHint": false}));
    let run = json!({
        "type": "object",
        "properties": {
            "cmd": {"type": "string", "description": "For bash, in your state directory, without stdin."},
            "timeout_secs": {"type": "integer", "minimum": 1, "description": "End it after so long."},
            "wait_seconds": {
                "type": "integer", "minimum": 0, "maximum": 30, "description": "Wait so long for its end; default 10.",
            },
        },
        "required": ["cmd"],
        "additionalProperties": false,
    });
    assert_eq!(tools[0]["inputSchema"], run);
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["id"]));
    assert_eq!(tools[1]["inputSchema"]["properties"]["wait_seconds"]["maximum"], 180);
}

#[tokio::test]
async fn without_a_socket_it_says_what_is_missing() {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_hive-mcp"))
        .arg("bash")
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .await
        .expect("hive-mcp starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--task-socket <PATH>"), "{output:?}");
}
