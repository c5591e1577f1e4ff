//! The scripted claude under a script, and without what it needs.

use std::path::PathBuf;

use hive_proto::v1::SendMessageRequest;
use hive_proto::v1::recipient::To;
use hive_tests::scripted::script::{self, Rule, Step};
use serde_json::json;

use crate::rig::{Rig, run};

fn written(rig: &Rig, steps: Vec<Step>) -> PathBuf {
    let path = rig.path("script.json");
    script::write(&path, &[Rule { when: "poison".to_owned(), steps }]).expect("it is written");
    path
}

const POISON: &str = "Message 17 from agent bob:\n| poison\n";

#[tokio::test]
async fn steps_are_done_in_order_and_only_for_their_prompt() {
    let rig = Rig::new().await;
    let marker = rig.path("marker");
    let steps = vec![
        Step::Stderr { stderr: "a warning".to_owned() },
        Step::Tool {
            tool: "send".to_owned(),
            input: json!({"to": "$from", "body": "scripted", "in_reply_to": "$id"}),
        },
        Step::Tool { tool: "mcp__hive__get_agent_meta".to_owned(), input: json!({}) },
        Step::Usage { usage: [("input_tokens".to_owned(), 5_000)].into() },
        Step::Text { text: "said".to_owned() },
        Step::Raw { raw: "not json".to_owned() },
        Step::Touch { touch: marker.clone() },
        Step::WaitFile { wait_file: marker.clone() },
    ];
    let path = written(&rig, steps);
    let finished = run(&mut rig.scripted(Some(&path)), POISON).await;
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), "a warning\n"));
    assert!(marker.exists());
    assert_eq!(finished.result()["result"], "said");
    assert_eq!(finished.result()["usage"]["input_tokens"], 5_020);
    let [request] = &rig.broker.requests::<SendMessageRequest>("SendMessage")[..] else {
        panic!("one send")
    };
    assert_eq!(
        (request.to.clone().and_then(|to| to.to), request.in_reply_to),
        (Some(To::Agent("bob".to_owned())), 17)
    );

    let other =
        run(&mut rig.scripted(Some(&path)), "Message 18 from agent bob:\n| harmless\n").await;
    assert_eq!(other.result()["result"], "Done.");
}

#[tokio::test]
async fn an_exit_leaves_no_result_and_a_result_is_as_scripted() {
    let rig = Rig::new().await;
    let path = written(&rig, vec![Step::Exit { exit: 7 }]);
    let finished = run(&mut rig.scripted(Some(&path)), POISON).await;
    assert_eq!((finished.code, finished.result()), (Some(7), &json!(null)));

    let fields = json!({"is_error": true, "api_error_status": 429, "terminal_reason": "api_error", "result": "limit"});
    let path = written(
        &rig,
        vec![Step::Result { result: fields.as_object().cloned().expect("an object") }],
    );
    let finished = run(&mut rig.scripted(Some(&path)), POISON).await;
    assert_eq!((finished.code, &finished.result()["api_error_status"]), (Some(1), &json!(429)));
    assert_eq!(finished.result()["subtype"], "success");
}

#[tokio::test]
async fn a_tool_that_is_not_there_or_not_allowed_is_refused_as_by_claude() {
    let rig = Rig::new().await;
    let tool =
        |tool: &str| Step::Tool { tool: tool.to_owned(), input: json!({"to": "bob", "body": "x"}) };
    let path = written(&rig, vec![tool("Bash"), tool("send")]);
    let mut command = rig.scripted(Some(&path));
    // The last one counts.
    command.args(["--allowedTools", "Read"]);
    let finished = run(&mut command, POISON).await;
    let results: Vec<String> = finished
        .events
        .iter()
        .filter(|event| event["type"] == "user")
        .map(|event| event["message"]["content"][0]["content"][0].to_string())
        .collect();
    assert!(results[0].contains("No such tool available: Bash"), "{results:?}");
    assert!(finished.code == Some(0) && results.len() == 2, "{finished:#?}");
}

#[tokio::test]
async fn a_bridge_that_does_not_start_is_reported_in_init() {
    let rig = Rig::new().await;
    let servers = json!({"mcpServers": {"hive": {"command": "/nowhere/hive-mcp"}}});
    std::fs::write(rig.path("mcp.json"), servers.to_string()).expect("a file");
    let finished = run(&mut rig.scripted(None), "Message from self:\n| continue\n").await;
    assert_eq!(finished.code, Some(0));
    assert_eq!(finished.init()["mcp_servers"][0]["status"], "failed");
    assert_eq!(finished.init()["tools"], json!(["Edit", "Read"]));
}

#[tokio::test]
async fn bad_input_is_reported_as_by_claude() {
    let rig = Rig::new().await;
    for (prompt, words) in [("", "Input must be provided"), (" \n", "only whitespace")] {
        let finished = run(&mut rig.scripted(None), prompt).await;
        assert!(finished.code == Some(1) && finished.stderr.contains(words), "{finished:?}");
    }
    std::fs::write(rig.path("broken.json"), "{").expect("a file");
    let finished = run(&mut rig.scripted(Some(&rig.path("broken.json"))), POISON).await;
    assert!(
        finished.code == Some(1) && finished.stderr.contains("is not a list of rules"),
        "{finished:?}"
    );
    let mut version = rig.scripted(None);
    version.arg("--version");
    assert_eq!(version.output().await.expect("it runs").stdout, b"2.1.330 (Claude Code)\n");
}
