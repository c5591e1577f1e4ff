//! The agents below the caller: listed, started, stopped and restarted.

use std::time::Duration;

use hive_core::reason::Reason;
use hive_in_process::{Broker, Reaction};
use hive_proto::status;
use hive_proto::v1::{
    Agent, ListChildrenRequest, RestartChildRequest, StartChildRequest, StopChildRequest,
};
use hive_tests::mcp::Client;
use serde_json::json;

use crate::rig::{self, TOKEN, call, good};

/// Alice with the group; her children carol and kim; carol's child dora; and bob.
const HIVE: &str = r#"
[agents.alice]
tool_groups = ["meta", "lifecycle"]
[agents.bob]
[agents.carol]
parent = "alice"
[agents.dora]
parent = "carol"
[agents.kim]
parent = "alice"
"#;

const STORED: &str = "This is stored; its parent alice gets a notice when it is done.";

/// Starts a broker in which alice has an open turn.
async fn hive() -> Broker {
    Broker::in_turn(HIVE, "alice", TOKEN).await
}

/// Returns a bridge of an agent with the group, after its handshake.
async fn connected(broker: &Broker) -> Client {
    let mut command = rig::command(&broker.socket());
    command.env("HIVE_TOOL_GROUPS", "meta,lifecycle");
    let mut client = Client::spawn(&mut command).expect("hive-mcp starts");
    client.handshake().await.expect("the handshake works");
    client
}

async fn agent(broker: &Broker, name: &str) -> Agent {
    broker.operator().await.get_agent(name).await
}

#[tokio::test]
async fn a_child_is_stopped_and_started_again() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let harness = broker.harness("kim").await;
    let turn = harness.open("process-token-of-kim").await;
    let text = good(&mut client, "kill", json!({"agent": " kim "}), "toolu_1").await;
    let handed_back = "its running turn is handed back, which costs its mail no attempt";
    assert_eq!(text, format!("kim is stopped; {handed_back}. Mail waits until start. {STORED}"));
    let kim = agent(&broker, "kim").await;
    assert!(kim.stopped && kim.open_turn_ids == [turn], "{kim:?}");
    drop(harness);

    let input = json!({"agent": "kim", "on_demand": "true"});
    let text = good(&mut client, "start", input, "toolu_2").await;
    assert!(text.starts_with("kim is started"), "{text}");
    let kim = agent(&broker, "kim").await;
    assert!(!kim.stopped && kim.on_demand, "{kim:?}");
    let [stop] = &broker.requests::<StopChildRequest>("StopChild")[..] else { panic!("one") };
    let [start] = &broker.requests::<StartChildRequest>("StartChild")[..] else { panic!("one") };
    assert_eq!((stop.name.as_str(), start.name.as_str()), ("kim", "kim"));
    assert_eq!(start.on_demand, Some(true));
    for request_id in [&stop.request_id, &start.request_id] {
        assert!((1..=128).contains(&request_id.len()));
    }
    let token = broker.with(|state| state.calls[0].process_token.clone());
    assert_eq!(token.as_deref(), Some(TOKEN));
}

#[tokio::test]
async fn an_agent_without_a_harness_is_started_as_it_was_or_as_asked() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let text = good(&mut client, "kill", json!({"agent": "carol"}), "toolu_1").await;
    assert_eq!(text, "carol is stopped, and no harness is attached. Mail waits until start.");
    for (index, (on_demand, says)) in [
        (json!(true), "its harness begins when there is mail"),
        (json!(null), "its harness begins when there is mail"),
        (json!(false), "it runs turns once its harness is attached"),
    ]
    .into_iter()
    .enumerate()
    {
        let input = json!({"agent": "carol", "on_demand": on_demand});
        let text = good(&mut client, "start", input, &format!("toolu_start_{index}")).await;
        assert_eq!(text, format!("carol is started; {says}. {STORED}"));
    }
}

#[tokio::test]
async fn a_restart_is_requested_once_for_each_tool_use() {
    let mut broker = hive().await;
    let mut client = connected(&broker).await;
    let input = json!({"agent": "kim"});
    broker.react(Reaction::ActAndHang);
    let pending =
        client.start_tool("restart", input.clone(), "toolu_1").await.expect("the bridge reads");
    broker.withheld().await;
    broker.kill();
    broker.run();
    let (text, is_error) = pending.tool_result().await.expect("an answer");
    assert!(!is_error, "{text}");
    assert_eq!(text, format!("A restart of kim is requested. {STORED}"));
    broker.with(|state| assert!(matches!(&state.calls[..], [first, second] if first == second)));
    assert_eq!(agent(&broker, "kim").await.restart_count, 1);
    good(&mut client, "restart", input.clone(), "toolu_1").await;
    assert_eq!(agent(&broker, "kim").await.restart_count, 1, "the same tool use");
    good(&mut client, "restart", input, "toolu_2").await;
    assert_eq!(agent(&broker, "kim").await.restart_count, 2, "another tool use");
    let requests = broker.requests::<RestartChildRequest>("RestartChild");
    assert!(requests.iter().all(|request| request.name == "kim"), "{requests:?}");
}

#[tokio::test]
async fn list_containers_has_a_line_for_each_child_of_all_pages() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let _harness = broker.harness("carol").await;
    broker.client("bob").await.send("kim", "work").await;
    good(&mut client, "start", json!({"agent": "kim", "on_demand": true}), "toolu_1").await;
    broker.edit_request("ListChildren", |list: &mut ListChildrenRequest| list.page_size = 1);
    let text = good(&mut client, "list_containers", json!({}), "toolu_2").await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("carol: ") && lines[0].ends_with("; running; 0 unread"), "{text}");
    assert_eq!(lines[1], "kim: on demand; not running; 1 unread");
    let requests = broker.requests::<ListChildrenRequest>("ListChildren");
    assert!(requests.len() >= 2, "{requests:?}");
    assert!(requests.iter().all(|list| list.name.is_empty() && list.page_size == 500));

    good(&mut client, "kill", json!({"agent": "kim"}), "toolu_3").await;
    let text = good(&mut client, "list_containers", json!({"agent": " "}), "toolu_4").await;
    assert!(text.ends_with("\nkim: stopped; not running; 1 unread"), "{text}");
    let text = good(&mut client, "list_containers", json!({"agent": "carol"}), "toolu_5").await;
    assert_eq!(text, "dora: offline; not running; 0 unread");
    let text = good(&mut client, "list_containers", json!({"agent": "kim"}), "toolu_6").await;
    assert_eq!(text, "kim has no children.");
}

#[tokio::test]
async fn agents_further_below_need_the_capability() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let kill = json!({"agent": "dora"});
    let (text, is_error) = call(&mut client, "kill", kill.clone(), "toolu_1").await;
    assert!(
        is_error
            && text.starts_with("NOT_YOUR_CHILD: `dora` is not your direct child")
            && text.contains("`manage_subtree`")
            && text.ends_with("; ask the agent itself or its parent"),
        "{text}"
    );
    let config =
        HIVE.replacen("tool_groups", "capabilities = [\"manage_subtree\"]\ntool_groups", 1);
    let broker = Broker::in_turn(&config, "alice", TOKEN).await;
    let _harness = broker.harness("dora").await;
    let text = good(&mut connected(&broker).await, "kill", kill, "toolu_2").await;
    let noticed = "This is stored; its parent carol gets a notice when it is done.";
    assert_eq!(text, format!("dora is stopped. Mail waits until start. {noticed}"));
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    good(&mut client, "kill", json!({"agent": "kim"}), "toolu_1").await;
    for (tool, name, says, advice) in [
        (
            "restart",
            "kim",
            "AGENT_STOPPED: agent `kim` is stopped; ",
            "; its mail waits until then: use start in place of restart",
        ),
        ("kill", "alice", "NOT_YOUR_CHILD: `alice` is ", "; ask the agent itself or its parent"),
        ("start", "bob", "NOT_YOUR_CHILD: `bob` is ", "; ask the agent itself or its parent"),
        ("start", "kimm", "AGENT_NOT_FOUND: ", "; check the name and call again; nothing was done"),
        ("list_containers", "carrol", "AGENT_NOT_FOUND: ", "; nothing was done"),
        ("kill", "*", "FIELD_INVALID: agent: `*` is no agent", "; correct it and call again"),
        (
            "list_containers",
            "*",
            "FIELD_INVALID: agent: `*` is no agent",
            "; correct it and call again",
        ),
        ("restart", "", "FIELD_INVALID: ", "; correct it and call again"),
    ] {
        let tool_use_id = format!("toolu_{tool}_{name}");
        let (text, is_error) = call(&mut client, tool, json!({"agent": name}), &tool_use_id).await;
        assert!(is_error && text.starts_with(says) && text.ends_with(advice), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        let nearest = [("kimm", "`kim`"), ("carrol", "`carol`")];
        for (_, nearest) in nearest.iter().filter(|(wrong, _)| *wrong == name) {
            assert!(text.contains(nearest), "{text}");
        }
    }
    let limited = status::refusal(Reason::RateLimited, "too fast", Some(Duration::from_secs(7)));
    broker.react(Reaction::Refuse(limited));
    let (text, is_error) = call(&mut client, "start", json!({"agent": "kim"}), "toolu_2").await;
    assert!(
        is_error && text.starts_with("RATE_LIMITED: too fast; nothing was done: wait"),
        "{text}"
    );
    assert!(text.ends_with("(in 7 s)"), "{text}");
}

#[tokio::test]
async fn an_agent_without_the_group_is_refused_by_the_broker_too() {
    let config = HIVE.replacen(", \"lifecycle\"", "", 1);
    let broker = Broker::in_turn(&config, "alice", TOKEN).await;
    let mut client = connected(&broker).await;
    for tool in ["start", "kill", "restart"] {
        let tool_use_id = format!("toolu_{tool}");
        let (text, is_error) = call(&mut client, tool, json!({"agent": "kim"}), &tool_use_id).await;
        assert!(is_error && text.starts_with("CAPABILITY_MISSING: "), "{text}");
    }
    let kim = agent(&broker, "kim").await;
    assert_eq!((kim.stopped, kim.restart_count), (false, 0));
}

#[tokio::test]
async fn invalid_arguments_are_refused_without_a_call_to_the_broker() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    for (tool, input, problem) in [
        ("start", json!({}), "missing field `agent`"),
        (
            "start",
            json!({"agent": "kim", "on_demand": 1}),
            "`on_demand`: 1 is neither true nor false",
        ),
        ("kill", json!({"agent": "kim", "force": true}), "unknown field `force`"),
        ("restart", json!({"agent": 5}), "`agent`: invalid type"),
    ] {
        let (text, is_error) = call(&mut client, tool, input, "toolu_1").await;
        assert!(
            is_error && text.starts_with("FIELD_INVALID: ") && text.contains(problem),
            "{text}"
        );
    }
    assert!(broker.with(|state| state.calls.is_empty()));
}

#[tokio::test]
async fn the_hints_of_its_tools_are_honest() {
    let broker = hive().await;
    let tools = connected(&broker).await.list_tools().await.expect("tools are listed");
    let changes = |destructive: bool, idempotent: bool| json!({"readOnlyHint": false, "destructiveHint": destructive, "idempotentHint": idempotent, "openWorldHint": false});
    for (name, hints) in [
        ("start", changes(false, true)),
        ("kill", changes(true, true)),
        ("restart", changes(true, false)),
        ("list_containers", json!({"readOnlyHint": true, "openWorldHint": false})),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect("it is listed");
        assert_eq!(tool["annotations"], hints, "{name}");
    }
}
