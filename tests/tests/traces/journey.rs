//! One message from the operator's program to the agent that its reply wakes, as one tree of spans.

use hive_proto::in_trace;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::{DeliveryState, EventKind, TurnOutcome};
use hive_tests::binary;
use hive_tests::rig::{DUO, Process, QUICK_LIMITS, Rig, request};
use hive_tests::scripted::script::{Rule, Step};
use serde_json::json;

use crate::collector::{Collector, Seen};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

fn stated(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

fn rule(steps: Vec<Step>) -> Rule {
    Rule { when: String::new(), steps }
}

fn text(text: &str) -> Step {
    Step::Text { text: text.to_owned() }
}

fn tool(name: &str, input: serde_json::Value) -> Step {
    Step::Tool { tool: name.to_owned(), input }
}

async fn hive(config: &str) -> Rig {
    let mut rig = Rig::new(&format!("{DUO}{config}{QUICK_LIMITS}"));
    rig.start_broker().await;
    rig
}

/// Sends a message to ada in a trace.
async fn send(rig: &Rig, body: &str, traceparent: &str) -> u64 {
    let operator = rig.operator().await;
    let request = in_trace(operator.request(request::send("ada", body)), traceparent);
    let sent = MessageServiceClient::new(operator.channel()).send_message(request).await;
    sent.expect("the message is accepted").into_inner().message_id
}

fn attribute<'s>(span: &'s Seen, key: &str) -> &'s str {
    span.attributes.get(key).map_or("", String::as_str)
}

/// Waits until a turn of an agent has ended well.
async fn turn_ended(rig: &Rig, agent: &str) {
    let fits = |event: &hive_proto::v1::Event| {
        event.agent == agent && event.kind() == EventKind::TurnEnded
    };
    rig.watch().await.until(&format!("a turn of {agent} ends"), fits).await;
}

#[tokio::test]
async fn a_message_its_turn_its_tool_calls_and_the_reply_are_one_tree() {
    let collector = Collector::start().await;
    let mut rig = hive(&collector.config()).await;
    let reply = json!({"to": "bob", "body": "secret words of the reply"});
    let ada = [rule(vec![
        tool("list_agents", json!({})),
        tool("send", reply),
        tool("cancel_loose_end", json!({"id": 4711})),
        text("Done."),
    ])];
    // The program of the operator names its span in the environment.
    let mut hivectl = Process::command(&binary::find("hivectl", "hivectl"));
    hivectl.arg("--socket").arg(rig.operator_socket());
    hivectl.args(["send", "ada", "secret words of the message"]).env("TRACEPARENT", stated("01"));
    let sent = hivectl.output().await.expect("hivectl runs");
    assert!(sent.status.success(), "{sent:?}");
    rig.start_harness("ada", &ada);
    rig.start_harness("bob", &[rule(vec![text("Read.")])]);
    turn_ended(&rig, "bob").await;

    let [send, deliver, turn, listed, tool, failed, reply, deliver_reply, turn_of_reply] =
        collector
            .named([
                "send ada",
                "deliver ada",
                "turn ada",
                "execute_tool mcp__hive__list_agents",
                "execute_tool mcp__hive__send",
                "execute_tool mcp__hive__cancel_loose_end",
                "send bob",
                "deliver bob",
                "turn bob",
            ])
            .await;
    let tree = [
        (&send, CALLER),
        (&deliver, &send.id),
        (&turn, &deliver.id),
        (&listed, &turn.id),
        (&tool, &turn.id),
        (&failed, &turn.id),
        (&reply, &tool.id),
        (&deliver_reply, &reply.id),
        (&turn_of_reply, &deliver_reply.id),
    ];
    for (span, parent) in tree {
        assert_eq!((span.trace.as_str(), span.parent.as_str()), (TRACE, parent), "{span:#?}");
    }
    let spans = collector.spans();
    assert_eq!(spans.len(), tree.len(), "{spans:#?}");
    assert!(!format!("{spans:?}").contains("secret"), "no text is exported: {spans:#?}");

    assert_eq!(attribute(&send, "messaging.system"), "hive");
    assert_eq!(attribute(&send, "messaging.destination.name"), "ada");
    assert_eq!(attribute(&send, "hive.message.origin"), "operator");
    assert_eq!(attribute(&send, "messaging.message.body.size"), "27");
    assert_eq!(attribute(&deliver, "hive.delivery.outcome"), "acked");
    assert_eq!(attribute(&deliver, "hive.delivery.attempt"), "1");
    assert!(deliver.nanos.1 <= turn.nanos.1 && send.nanos.0 <= deliver.nanos.0, "{spans:#?}");
    assert_eq!(attribute(&turn, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(&turn, "gen_ai.agent.name"), "ada");
    assert_eq!(attribute(&turn, "hive.turn.outcome"), "ok");
    assert_eq!(attribute(&turn, "hive.turn.tool_call_count"), "3");
    assert_eq!(attribute(&tool, "gen_ai.tool.name"), "mcp__hive__send");
    assert!(!attribute(&tool, "gen_ai.tool.call.id").is_empty(), "{tool:#?}");
    let errors = [&send, &deliver, &turn, &listed, &tool, &failed].map(|span| span.is_error);
    assert_eq!(errors, [false, false, false, false, false, true]);
    let resource = collector.resource();
    assert_eq!(
        (resource["service.name"].as_str(), resource["hive.name"].as_str()),
        ("hived", "test")
    );

    // The operator finds the trace by the message, and the other way round.
    let id = attribute(&send, "messaging.message.id");
    let said = rig.hivectl(&["trace", id]).await;
    assert!(said.stdout.contains(&format!(", trace {TRACE}: secret")), "{said:?}");
    let turns = rig.operator().await.turns("ada").await;
    assert_eq!(turns[0].traceparent, format!("00-{TRACE}-{}-01", turn.id));
    rig.end().await;
}

#[tokio::test]
async fn mail_that_a_turn_receives_is_linked_to_it() {
    let collector = Collector::start().await;
    let mut rig = hive(&collector.config()).await;
    let other = stated("01").replace("0af7", "1af7");
    send(&rig, "the first", &stated("01")).await;
    send(&rig, "the second", &other).await;
    rig.start_harness("ada", &[rule(vec![tool("recv", json!({"max": 4})), text("Read.")])]);
    let [turn] = collector.named(["turn ada"]).await;
    let spans = collector
        .until("both deliveries", |spans| {
            spans.iter().filter(|span| span.name == "deliver ada").count() == 2
        })
        .await;
    let second = spans.iter().find(|span| span.name == "send ada" && span.trace != TRACE);
    let second = second.expect("the send of the second message");
    assert_eq!(turn.links, std::slice::from_ref(&second.id));
    assert_eq!(turn.trace, TRACE);
    rig.end().await;
}

#[tokio::test]
async fn a_trace_that_is_not_sampled_is_passed_on_and_not_exported() {
    let collector = Collector::start().await;
    let mut rig = hive(&collector.config()).await;
    let id = send(&rig, "hello", &stated("00")).await;
    rig.start_harness(
        "ada",
        &[rule(vec![tool("send", json!({"to": "bob", "body": "x"})), text("ok")])],
    );
    turn_ended(&rig, "ada").await;
    let operator = rig.operator().await;
    let messages = operator.messages().await;
    for message in &messages {
        let prefix = format!("00-{TRACE}-");
        assert!(message.traceparent.starts_with(&prefix), "{message:?}");
        assert!(message.traceparent.ends_with("-00"), "{message:?}");
    }
    assert!(messages.len() == 2 && messages.iter().any(|message| message.id == id), "{messages:?}");
    // Later spans arrive, and those before them were not sent.
    operator.send("bob", "without a trace").await;
    let [sent] = collector.named(["send bob"]).await;
    assert_eq!((collector.spans().len(), sent.parent.as_str()), (1, ""));
    assert_ne!(sent.trace, TRACE);
    rig.end().await;
}

#[tokio::test]
async fn a_trace_goes_on_after_a_restart_and_after_a_crash() {
    let collector = Collector::start().await;
    let mut rig = hive(&collector.config()).await;
    let id = send(&rig, "hello", &stated("01")).await;
    // The broker exports what it has before it ends.
    rig.stop_broker().await;
    let [sent] = collector.named(["send ada"]).await;
    rig.start_broker().await;
    let stops =
        [Step::Touch { touch: rig.path("reached") }, Step::WaitFile { wait_file: rig.path("go") }];
    let steps = stops.into_iter().chain([text("Done.")]).collect();
    rig.start_harness("ada", &[rule(steps)]);
    rig.appeared("reached").await;
    rig.kill_broker().await;
    rig.start_broker().await;
    rig.touch("go");
    let [deliver, turn] = collector.named(["deliver ada", "turn ada"]).await;
    assert_eq!((deliver.parent, deliver.trace.as_str()), (sent.id, TRACE));
    assert_eq!((turn.parent, turn.trace.as_str()), (deliver.id, TRACE));
    let delivery = rig.operator().await.delivery("ada", id).await;
    assert_eq!(delivery.state(), DeliveryState::Acked);
    rig.end().await;
}

#[tokio::test]
async fn without_a_collector_a_trace_is_passed_on_and_none_begins() {
    let mut rig = hive("").await;
    let operator = rig.operator().await;
    rig.start_harness("ada", &[rule(vec![text("ok")])]);
    operator.send("ada", "without a trace").await;
    turn_ended(&rig, "ada").await;
    for bad in ["00-0-0-0", &stated("01").to_uppercase()] {
        send(&rig, "with a trace context that is none", bad).await;
    }
    let id = send(&rig, "hello", &stated("01")).await;
    let messages = operator.messages().await;
    let traced: Vec<u64> =
        messages.iter().filter(|one| !one.traceparent.is_empty()).map(|one| one.id).collect();
    assert_eq!(traced, [id]);
    let turns = operator.turns("ada").await;
    let first = turns.first().expect("a turn");
    assert_eq!((first.outcome(), first.traceparent.as_str()), (TurnOutcome::Ok, ""));
    let status = rig.hivectl(&["--json", "status"]).await;
    assert!(!status.stdout.contains("\"traces\""), "no task exports traces: {status:?}");
    rig.end().await;
}
