//! Tools of actions: listed as the broker's configuration has them, and asked for as questions.

use hive_in_process::Broker;
use hive_proto::v1::effect::Effect;
use hive_proto::v1::{AskQuestionRequest, RunActionEffect};
use hive_tests::mcp::Client;
use serde_json::json;

use crate::rig::{self, TOKEN, call, good};

/// Alice with an action; one that is not hers; and bob.
const HIVE: &str = r#"
[actions.apply]
command = ["apply", "{commit}"]
description = "Applies a commit."
agents = ["alice"]
args = { commit = "[0-9a-f]{4}" }
[actions.other]
command = ["other"]
agents = ["bob"]
[agents.alice]
tool_groups = ["meta", "approvals"]
[agents.bob]
"#;

async fn connected(broker: &Broker, groups: &str) -> Client {
    let mut command = rig::command(&broker.socket());
    command.env("HIVE_TOOL_GROUPS", groups);
    let mut client = Client::spawn(&mut command).expect("hive-mcp starts");
    client.handshake().await.expect("the handshake works");
    client
}

async fn names(client: &mut Client) -> Vec<String> {
    let listed = client.request("tools/list", json!({})).await.expect("listed");
    let tools = listed["tools"].as_array().expect("a list").iter();
    tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn an_agent_is_offered_its_own_actions() {
    let broker = Broker::in_turn(HIVE, "alice", TOKEN).await;
    let mut client = connected(&broker, "approvals").await;
    let listed = names(&mut client).await;
    assert!(listed.contains(&"request_apply".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"request_other".to_owned()), "{listed:?}");
    let listed = names(&mut connected(&broker, "meta").await).await;
    assert!(listed.iter().all(|name| !name.starts_with("request_")), "{listed:?}");
}

#[tokio::test]
async fn an_action_is_asked_for_with_its_arguments() {
    let broker = Broker::in_turn(HIVE, "alice", TOKEN).await;
    let mut client = connected(&broker, "approvals").await;
    let input = json!({"commit": "01ab", "why": "It is tested.", "ttl_seconds": "60"});
    let text = good(&mut client, "request_apply", input, "toolu_1").await;
    assert!(text.starts_with("Asked the operator to approve it: question #"), "{text}");
    assert!(text.contains("\ncommand: apply 01ab"), "{text}");
    let [asked] = &broker.requests::<AskQuestionRequest>("AskQuestion")[..] else { panic!("one") };
    let effect = asked.effect.clone().and_then(|effect| effect.effect);
    let args = [("commit".to_owned(), "01ab".to_owned())].into();
    assert_eq!(effect, Some(Effect::RunAction(RunActionEffect { action: "apply".into(), args })));
    assert_eq!(asked.text, "It is tested.");

    for (number, (tool, input, says)) in [
        (
            "request_apply",
            json!({"commit": "01ab\n", "why": "x"}),
            "`commit` must match [0-9a-f]{4}",
        ),
        ("request_apply", json!({"commit": "01ab; reboot", "why": "x"}), "`commit` must match"),
        ("request_apply", json!({"why": "x"}), "the argument `commit` is missing"),
        (
            "request_apply",
            json!({"commit": "01ab", "force": "x", "why": "x"}),
            "no argument `force`",
        ),
        ("request_apply", json!({"commit": ["01ab"], "why": "x"}), "`commit`: a text is needed"),
        ("request_apply", json!({"commit": "01ab", "ttl_seconds": "soon"}), "`ttl_seconds`"),
        ("request_other", json!({"why": "x"}), "alice has no action `other`"),
        ("request_nothing", json!({"why": "x"}), "alice has no action `nothing`"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("toolu_wrong_{number}");
        let (text, is_error) = call(&mut client, tool, input, &id).await;
        assert!(is_error && text.starts_with("FIELD_INVALID: ") && text.contains(says), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
