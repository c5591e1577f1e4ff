//! The main journey, and the turn as the model sees it.

use hive_proto::v1::{DeliveryState, TurnOutcome};
use hive_tests::api::{Recorded, Reply, Script};
use hive_tests::rig::soon;
use serde_json::json;

use crate::stage::Stage;

/// Tools that no agent may be offered.
const DENIED: [&str; 4] = ["Bash", "Task", "NotebookEdit", "TodoWrite"];

fn script() -> Script {
    Script::new()
        .when(
            "please report",
            [
                Reply::tool("mcp__hive__recv", json!({"max": 4})),
                // A model may ask for what it is not offered.
                Reply::tool("Bash", json!({"command": "touch broken-out"})),
                Reply::tool(
                    "mcp__hive__send",
                    json!({"to": "operator", "body": "All is well.", "in_reply_to": 1}),
                ),
                Reply::text("I have reported."),
            ],
        )
        .when("", [Reply::text("Done.")])
}

#[tokio::test]
async fn a_message_is_read_answered_and_settled() {
    let mut stage = Stage::set(script()).await;
    std::fs::create_dir_all(stage.rig.path("agents/ada/state")).expect("a directory");
    std::fs::write(
        stage.rig.path("agents/ada/state/CLAUDE.md"),
        "The word of the day is marzipan.\n",
    )
    .expect("a file");
    let asked = stage.operator.send("ada", "please report").await;
    assert_eq!(asked, 1, "the script answers message 1");
    let second = stage.operator.send("ada", "and look at this").await;
    stage.start();
    let turn = stage.turn().await;
    assert_eq!(
        (turn.outcome(), turn.message_id, turn.attempt),
        (TurnOutcome::Ok, asked, 1),
        "{turn:?}"
    );
    assert_eq!(turn.received_message_ids, [second]);

    let answer = turn.sent_message_ids[0];
    let answer = stage
        .operator
        .messages()
        .await
        .into_iter()
        .find(|message| message.id == answer)
        .expect("the answer");
    assert_eq!(
        (answer.body.as_str(), answer.in_reply_to, answer.turn_id),
        ("All is well.", asked, turn.id)
    );
    assert_eq!(answer.origin.map(|origin| origin.name).as_deref(), Some("ada"));
    assert_eq!(answer.recipients, ["operator"]);
    for message in [asked, second] {
        assert_eq!(
            stage.operator.delivery("ada", message).await.state(),
            DeliveryState::Acked,
            "{message}"
        );
    }
    let usage = turn.usage.expect("it says what it used");
    assert_eq!(
        (usage.inference_count, usage.tool_call_count, usage.output_tokens),
        (4, 3, 80),
        "{usage:?}"
    );
    assert_eq!(turn.model, "claude-haiku-5-5");
    assert!(turn.context_tokens > 0 && turn.context_window_tokens >= 200_000, "{turn:?}");

    let requests = stage.api.recorded();
    assert_eq!(requests.iter().map(|request| request.step).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let first = &requests[0];
    assert!(first.prompt.starts_with("Message 1 from the operator"), "{}", first.prompt);
    assert!(
        first.prompt.contains(":\n| please report\n") && first.prompt.contains("1 more pending"),
        "{}",
        first.prompt
    );
    assert!(first.system().contains("You are `ada`, an agent"), "{}", first.system());
    assert!(
        first.mentions("The word of the day is marzipan."),
        "CLAUDE.md of the state directory is read"
    );
    tools_are_fenced(first);
    let received = &requests[1].tool_results()[0];
    assert!(
        received.1.contains(&format!("#{second} from "))
            && received.1.contains("| and look at this"),
        "{received:?}"
    );

    let denied = &requests[2].tool_results()[1];
    assert!(denied.2 && denied.1.contains("No such tool available: Bash"), "{denied:?}");
    assert!(!stage.rig.path("agents/ada/state/broken-out").exists());

    // The settings as claude got them. That it obeys them shows in the tools, and in `weather`,
    // where nothing is compacted.
    let settings =
        std::fs::read_to_string(stage.rig.path("agents/ada/home/.hive/claude-settings.json"))
            .expect("the file");
    let settings: serde_json::Value = serde_json::from_str(&settings).expect("JSON");
    assert_eq!(
        (&settings["autoCompactEnabled"], &settings["autoMemoryEnabled"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(
        (&settings["effortLevel"], &settings["permissions"]),
        (&json!("medium"), &json!({"deny": DENIED}))
    );
    assert_eq!(first.body["output_config"]["effort"], "medium");
    let projects = std::fs::read_dir(stage.rig.path("agents/ada/home/.claude/projects"))
        .expect("claude's files");
    for project in projects.flatten() {
        assert!(!project.path().join("memory").exists(), "it kept a memory of its own");
    }

    // claude keeps nothing of what its servers log; the harness does, without bodies.
    let called = |calls: &str, tool: &str| {
        calls.lines().any(|line| line.contains(&format!(" tool={tool} ")))
    };
    let calls = soon("both calls are logged", async {
        loop {
            let calls = std::fs::read_to_string(stage.rig.path("agents/ada/home/.hive/calls.log"))
                .unwrap_or_default();
            if called(&calls, "recv") && called(&calls, "send") {
                return calls;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let sent = calls.lines().find(|line| line.contains(" tool=send ")).expect("the send");
    let tool_use_id = requests[3]
        .tool_results()
        .last()
        .map(|(id, ..)| id.clone())
        .expect("the result of the send");
    let call = format!(
        " turn={} server=hive tool=send tool_use_id={tool_use_id} request_id=mcp-",
        turn.id
    );
    assert!(sent.contains(&call) && sent.ends_with(" outcome=ok"), "{call}: {calls}");
    assert!(!calls.contains("well") && calls.lines().count() == 2, "{calls}");

    // The CLI's own word for it, as the operator sees it live.
    let lines = stage.lines(&turn).await;
    let init =
        lines.iter().find(|line| line["subtype"] == "init").expect("claude says how it is set up");
    let connected = |name: &str| json!({"name": name, "status": "connected", "source": "dynamic"});
    let mut servers = init["mcp_servers"].as_array().cloned().unwrap_or_default();
    servers.sort_by_key(|server| server["name"].to_string());
    assert_eq!(servers, [connected("bash"), connected("hive")]);
    let tools: Vec<&str> =
        init["tools"].as_array().into_iter().flatten().filter_map(|tool| tool.as_str()).collect();
    assert!(DENIED.iter().all(|denied| !tools.contains(denied)), "{tools:?}");
    assert!(
        !lines.iter().any(|line| line["subtype"] == "permission_denied"),
        "our tools need no permission"
    );
    stage.end().await;
}

fn tools_are_fenced(request: &Recorded) {
    let mut tools = request.tools();
    tools.sort_unstable();
    let ours = [
        "mcp__bash__run",
        "mcp__bash__status",
        "mcp__hive__answer",
        "mcp__hive__ask",
        "mcp__hive__cancel_loose_end",
        "mcp__hive__get_agent_meta",
        "mcp__hive__get_loose_ends",
        "mcp__hive__list_agents",
        "mcp__hive__recv",
        "mcp__hive__remind",
        "mcp__hive__request_next_turn",
        "mcp__hive__send",
        "mcp__hive__set_status",
    ];
    assert_eq!(tools, [&["Edit", "Glob", "Grep", "Read", "Write"][..], &ours].concat());
}
