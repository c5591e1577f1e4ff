//! Trouble with the process itself: no bridge, silence, a violent death.

use hive_proto::v1::{DeliveryState, EventKind, RedeliveryCause, TurnOutcome};
use hive_tests::api::{Reply, Script};
use hive_tests::rig::{Mode, gone, strays};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::stage::{Stage, count};

both!(
    a_silent_api_ends_the_turn_and_leaves_no_process,
    a_tool_that_never_returns_fails_the_turn_and_the_next_one_goes_on,
);

#[tokio::test]
async fn without_a_bridge_no_turn_counts_and_the_mail_waits() {
    let mut stage =
        Stage::set(Script::new().when("", [Reply::text("I have no tools, but I am done.")])).await;
    let message = stage.operator.send("ada", "use your tools").await;
    // A bridge that does not exist, and a bridge that ends at once.
    for (bridge, requests_max) in [("/no/such/hive-mcp", 0), ("/bin/false", 1)] {
        stage.options.env.insert("HIVE_MCP".to_owned(), bridge.to_owned());
        stage.start();
        let turn = stage.turn().await;
        assert_eq!(
            (turn.outcome(), turn.attempt),
            (TurnOutcome::Unavailable, 1),
            "{bridge}: {turn:?}"
        );
        assert!(
            turn.error.contains("hive-mcp") || turn.error.contains("MCP server"),
            "{bridge}: {turn:?}"
        );
        stage.rig.stop_harness("ada").await;
        assert!(
            stage.api.recorded().len() <= requests_max * stage.operator.turns("ada").await.len(),
            "{bridge}"
        );
    }
    assert!(stage.operator.turns("ada").await.iter().all(|turn| turn.outcome() != TurnOutcome::Ok));
    assert_eq!(
        stage.operator.delivery("ada", message).await.attempt,
        1,
        "the message is not to blame"
    );

    stage.options.env.remove("HIVE_MCP");
    stage.start();
    stage.watch.kind("ada", EventKind::DeliveryAcked).await;
    let turns = stage.operator.turns("ada").await;
    assert_eq!(
        turns.last().map(|turn| (turn.outcome(), turn.attempt)),
        Some((TurnOutcome::Ok, 1)),
        "{turns:?}"
    );
    stage.end().await;
}

async fn a_silent_api_ends_the_turn_and_leaves_no_process(mode: Mode) {
    let script = Script::new().when("", [Reply::hang().times(1), Reply::text("Done.")]);
    let mut stage = Stage::in_mode(mode, script).await;
    stage.options.env.insert("HIVE_TURN_IDLE_TIMEOUT_SECS".to_owned(), "6".to_owned());
    let message = stage.operator.send("ada", "hello?").await;
    stage.start();
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Unavailable, 1), "{turn:?}");
    assert!(
        turn.error.contains("the model's API did not answer") && turn.error.contains("6 s"),
        "{turn:?}"
    );
    stage.watch.kind("ada", EventKind::DeliveryAcked).await;
    let delivery = stage.operator.delivery("ada", message).await;
    assert_eq!((delivery.state(), delivery.attempt), (DeliveryState::Acked, 1));
    stage.rig.stop_harness("ada").await;
    assert_eq!(strays(&stage.rig.path("agents/ada")), [], "no claude and no bridge is left");
    stage.end().await;
}

async fn a_tool_that_never_returns_fails_the_turn_and_the_next_one_goes_on(mode: Mode) {
    let wait = Reply::tool("mcp__hive__recv", json!({"wait_seconds": 150}));
    let script =
        Script::new().when("attempt 2", [Reply::text("Done at last.")]).when("wait for it", [wait]);
    let mut stage = Stage::in_mode(mode, script).await;
    stage.options.env.insert("HIVE_TURN_IDLE_TIMEOUT_SECS".to_owned(), "6".to_owned());
    let message = stage.operator.send("ada", "wait for it").await;
    stage.start();
    let failed = loop {
        let turn = stage.turn().await;
        // On a very busy machine claude may be silent while it starts; that counts as an outage.
        if turn.outcome() != TurnOutcome::Unavailable {
            break turn;
        }
    };
    assert_eq!((failed.outcome(), failed.attempt), (TurnOutcome::Failed, 1), "{failed:?}");
    assert!(failed.error.contains("a tool call did not return"), "{failed:?}");
    stage.watch.kind("ada", EventKind::DeliveryAcked).await;
    let delivery = stage.operator.delivery("ada", message).await;
    assert_eq!((delivery.state(), delivery.attempt), (DeliveryState::Acked, 2), "{delivery:?}");
    let last = stage.requests_of(message).pop().expect("a request");
    assert!(last.prompt.contains("This is attempt 2: the last turn failed."), "{}", last.prompt);
    assert_eq!(count(&last, "| wait for it"), 1, "{:#}", last.body["messages"]);
    stage.end().await;
}

#[tokio::test]
async fn a_killed_claudes_mail_is_requeued_and_its_prompt_is_not_repeated() {
    let script = Script::new().when("attempt 3", [Reply::text("Done at last.")]).when(
        "",
        [
            Reply::tool("mcp__hive__send", json!({"to": "operator", "body": "I have begun."})),
            Reply::hang(),
        ],
    );
    let mut stage = Stage::set(script).await;
    let message = stage.operator.send("ada", "a long story about a bear").await;
    stage.start();
    for attempt in 1..=2 {
        // The message is sent, and the model is asked again.
        let seen = |requests: &[hive_tests::api::Recorded]| {
            let waits = requests
                .iter()
                .filter(|request| request.step == 1 && !request.prompt.contains("attempt 3"));
            waits.count() >= attempt
        };
        stage.api.wait_until("claude waits for the model", seen).await;
        let claude = stage.rig.the_one("ada", "claude");
        kill_process(claude, Signal::KILL).expect("it runs");
        gone(claude).await;
        let turn = stage.turn().await;
        assert_eq!(turn.outcome(), TurnOutcome::Failed, "{turn:?}");
        assert!(turn.error.contains("signal 9"), "{turn:?}");
    }
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Ok, 3), "{turn:?}");
    let delivery = stage.operator.delivery("ada", message).await;
    assert_eq!(
        (delivery.state(), delivery.redelivery_cause()),
        (DeliveryState::Acked, RedeliveryCause::TurnFailed)
    );

    let last = stage.requests_of(message).pop().expect("a request");
    assert_eq!(
        count(&last, "a long story about a bear"),
        1,
        "no copies are stacked: {:#}",
        last.body["messages"]
    );
    assert!(last.prompt.contains("This is attempt 3: the last turn failed."), "{}", last.prompt);
    assert!(
        last.prompt.contains("Earlier attempts sent this already:")
            && last.prompt.contains("I have begun."),
        "{}",
        last.prompt
    );
    // A call that the model repeated word for word was sent once.
    let sent = stage
        .operator
        .messages()
        .await
        .into_iter()
        .filter(|message| message.body == "I have begun.")
        .count();
    assert_eq!(sent, 1);
    stage.end().await;
}
