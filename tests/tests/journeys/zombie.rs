//! Zombies: who outlives a turn can neither send, nor take mail, nor ask for turns, nor settle.

use std::process::Stdio;

use hive_proto::v1::{DeliveryState, RedeliveryCause, TurnOutcome};
use hive_tests::binary;
use hive_tests::mcp::Client as Mcp;
use hive_tests::rig::{DUO, Process, QUICK_LIMITS, Rig, fresh_id, gone};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::steps::{acked, answer, ended, lives, rule, standing, text, touch, unread, wait_for};

/// Starts a bridge of an agent by hand.
async fn bridge(rig: &Rig, agent: &str, token: &str) -> Mcp {
    let mut command = Process::command(&binary::find("hive-mcp-bridge", "hive-mcp"));
    command
        .env("HIVE_SOCKET", rig.agent_socket(agent))
        .env("HIVE_PROCESS_TOKEN", token)
        .stderr(Stdio::null());
    let mut bridge = Mcp::spawn(&mut command).expect("the bridge starts");
    bridge.handshake().await.expect("the bridge greets");
    bridge
}

async fn call(bridge: &mut Mcp, tool: &str, input: Value) -> (String, bool) {
    let called = bridge.start_tool(tool, input, &format!("toolu_{}", fresh_id())).await;
    called.expect("the bridge is there").tool_result().await.expect("the bridge answers")
}

async fn refused(bridge: &mut Mcp, when: &str) {
    for (tool, input) in [
        ("send", json!({"to": "operator", "body": "I am a zombie."})),
        ("recv", json!({"max": 8})),
        ("recv", json!({"wait_seconds": 100})),
        ("request_next_turn", json!({})),
    ] {
        let (words, is_error) = call(bridge, tool, input).await;
        assert!(is_error && words.starts_with("TURN_ENDED: "), "{tool} {when}: {words}");
    }
}

#[tokio::test]
async fn a_bridge_that_outlives_its_turn_is_refused() {
    let mut rig = Rig::duo().await;
    let stop = |number: u32| {
        let steps = vec![
            touch(&rig, &format!("reached {number}")),
            wait_for(&rig, &format!("go {number}")),
            text("Done."),
        ];
        rule(&format!("Letter {number}"), steps)
    };
    let rules = [stop(1), stop(2), rule("", vec![text("Done.")])];
    rig.start_harness("bob", &rules);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "Letter 1.").await;
    rig.appeared("reached 1").await;
    let token = rig.token_of_bridge("bob");
    let mut zombie = bridge(&rig, "bob", &token).await;
    let (words, is_error) =
        call(&mut zombie, "send", json!({"to": "operator", "body": "I am alive."})).await;
    assert!(!is_error && words.starts_with("Sent #"), "{words}");
    rig.touch("go 1");
    ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;

    refused(&mut zombie, "between turns").await;
    // Another turn of the same agent is not its own, and the mail that waits there is not for it.
    operator.send("bob", "Letter 2.").await;
    rig.appeared("reached 2").await;
    let waiting = operator.send("bob", "Letter 3.").await;
    refused(&mut zombie, "in another turn").await;
    refused(&mut bridge(&rig, "bob", &token).await, "started anew with the old secret").await;
    assert_eq!(operator.delivery("bob", waiting).await.state(), DeliveryState::Ready);
    rig.touch("go 2");
    acked(&rig, "bob", waiting).await;

    let bodies: Vec<String> =
        operator.messages().await.into_iter().map(|message| message.body).collect();
    assert_eq!(bodies, ["Letter 1.", "I am alive.", "Letter 2.", "Letter 3."]);
    let turns = operator.turns("bob").await;
    assert_eq!(lives(&turns), [(TurnOutcome::Ok, 1); 3]);
    assert!(turns.iter().all(|turn| turn.received_message_ids.is_empty()));
    zombie.close().await.expect("the bridge ends");
    rig.end().await;
}

/// A harness that slept through its grace time, as on a host that was suspended or overloaded: what
/// runs in its name is refused, it settles nothing when it wakes, and it runs the message again in
/// a session of its own.
#[tokio::test]
async fn a_harness_that_wakes_after_its_grace_time_is_refused() {
    let mut rig = Rig::new(&format!(
        "{DUO}{}",
        QUICK_LIMITS.replace("harness_grace_ms = 30000", "harness_grace_ms = 5000")
    ));
    rig.start_broker().await;
    let parts = [answer("operator", "part one"), answer("operator", "part two"), text("Done.")];
    let mut first = parts.to_vec();
    first.splice(1..1, [touch(&rig, "reached"), wait_for(&rig, "go")]);
    rig.start_harness("bob", &[rule("This is attempt", parts.to_vec()), rule("", first)]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    let claude = rig.the_one("bob", "scripted-claude");
    rig.harness("bob").suspend().await;
    let vanished = ended(&rig, &mut watch, "bob", TurnOutcome::Vanished).await;

    // claude lives on and ends well, as far as it knows.
    rig.touch("go");
    gone(claude).await;
    let results = rig.tool_results("bob");
    assert!(results[1].starts_with("TURN_ENDED: "), "{results:?}");
    assert_eq!(unread(&operator, "operator").await, [("part one".to_owned(), asked)]);
    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Ready, 1, RedeliveryCause::HarnessVanished)
    );
    rig.harness("bob").signal(Signal::CONT);
    acked(&rig, "bob", asked).await;

    let turns = operator.turns("bob").await;
    assert_eq!(lives(&turns), [(TurnOutcome::Vanished, 1), (TurnOutcome::Ok, 2)]);
    assert_eq!((turns[0].id, turns[0].session_epoch, turns[1].session_epoch), (vanished, 1, 2));
    assert_eq!(
        unread(&operator, "operator").await,
        ["part one", "part two"].map(|part| (part.to_owned(), asked))
    );
    rig.end().await;
}
