//! States of a turn's run that a watching client sees: partial while it runs, then final or
//! error.

use hive_proto::v1::turn_history_service_client::TurnHistoryServiceClient;
use hive_proto::v1::watch_turn_response::Step;
use hive_proto::v1::{EventKind, RunState, TurnOutcome, WatchTurnRequest};
use hive_tests::rig::{Client, Rig};

use crate::steps::{ended, rule, text, touch, wait_for};

/// Follows a turn to its end; every step.
async fn watched(client: &Client, turn_id: u64) -> Vec<Step> {
    let request = WatchTurnRequest { turn_id, after_sequence: 0, follow: true };
    let mut stream = TurnHistoryServiceClient::new(client.channel())
        .watch_turn(request)
        .await
        .expect("watched")
        .into_inner();
    let mut all = Vec::new();
    while let Some(response) = stream.message().await.expect("a good end") {
        all.push(response.step.expect("a step"));
    }
    all
}

#[tokio::test]
async fn a_watch_says_where_the_run_stands_and_since_when() {
    let mut rig = Rig::duo().await;
    let steps = vec![touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")];
    rig.start_harness("bob", &[rule("", steps)]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    for (order, outcome, wanted) in [
        (None, TurnOutcome::Ok, RunState::Final),
        (Some("cancel"), TurnOutcome::Cancelled, RunState::Error),
    ] {
        operator.send("bob", "Hello bob.").await;
        let begun = watch.kind("bob", EventKind::TurnBegun).await.turn_id;
        rig.appeared("reached").await;
        let watching = tokio::spawn({
            let operator = rig.operator().await;
            async move { watched(&operator, begun).await }
        });
        match order {
            None => rig.touch("go"),
            Some(order) => assert_eq!(rig.hivectl(&["turn", order, "bob"]).await.code, 0),
        }
        assert_eq!(ended(&rig, &mut watch, "bob", outcome).await, begun);
        let mut steps: Vec<Step> = watching.await.expect("it is watched");
        let Some(Step::Batch(last)) = steps.pop() else { panic!("the end is a change: {steps:?}") };
        assert_eq!((last.state(), last.events.len()), (wanted, 0));
        assert_eq!(last.state_time, operator.turn(begun).await.end_time);
        let complete = |step: &Step| matches!(step, Step::Snapshot(part) if part.complete);
        assert_eq!(steps.iter().filter(|step| complete(step)).count(), 1);
        let (mut lines, mut changes) = (0, false);
        for step in &steps {
            let (state, events) = match step {
                Step::Snapshot(part) => (part.state(), &part.events),
                Step::Batch(batch) => (batch.state(), &batch.events),
            };
            assert_eq!(state, RunState::Partial);
            assert_eq!(changes, matches!(step, Step::Batch(_)), "changes follow the snapshot");
            assert_eq!(events.is_empty(), complete(step));
            lines += events.len();
            changes |= complete(step);
        }
        assert!(lines > 0, "it printed something");
        // The next turn stops in the same place.
        std::fs::remove_file(rig.path("reached")).expect("it was reached");
        drop(std::fs::remove_file(rig.path("go")));
    }
    rig.end().await;
}
