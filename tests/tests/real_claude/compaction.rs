//! A conversation that the model rejects as too long: it is compacted inside the same turn, and the
//! message is repeated.

use hive_proto::v1::{HarnessState, TurnKind, TurnOutcome};
use hive_tests::api::{Gate, Kind, Recorded, Reply, Script};

use crate::stage::{Stage, count};
use hive_tests::rig::Mode;

both!(
    a_full_conversation_makes_room_within_the_turn,
    one_that_cannot_be_compacted_waits_for_a_new_session,
    a_compaction_may_meet_a_storm,
    a_message_that_fits_nowhere_is_at_fault,
);

/// Returns a script that rejects a conversation with "one too many" in it this many times.
fn full(times: u32) -> Script {
    Script::new().on(
        |request| request.mentions("| one too many"),
        [Reply::too_long().times(times), Reply::text("Done.")],
    )
}

/// The conversation has an answer in it, so that there is something to sum up.
async fn begun(stage: &mut Stage) {
    stage.start();
    stage.send("the first").await;
    stage.ok().await;
}

fn of_kind(stage: &Stage, kind: Kind) -> Vec<Recorded> {
    stage.api.recorded().into_iter().filter(|request| request.kind == kind).collect()
}

async fn a_full_conversation_makes_room_within_the_turn(mode: Mode) {
    let gate = Gate::new();
    let mut stage = Stage::in_mode(
        mode,
        full(1).compacting([Reply::text("<summary>A letter came.</summary>").held(&gate)]),
    )
    .await;
    begun(&mut stage).await;
    let message = stage.send("one too many").await;
    stage
        .api
        .wait_until("it is compacted", |requests| {
            requests.iter().any(|request| request.kind == Kind::Compaction)
        })
        .await;
    stage.state_is(HarnessState::Compacting).await;
    gate.open();
    let turn = stage.ok().await;
    assert_eq!(
        (turn.message_id, turn.attempt, turn.compacted, turn.kind()),
        (message, 1, true, TurnKind::Mail),
        "{turn:?}"
    );
    assert_eq!(stage.turns().await.len(), 2, "it was one turn");
    let usage = turn.usage.expect("it says what it used");
    assert!(usage.cost_micro_usd > 0, "{usage:?}");
    // The model refused, summed up, and saw the message once more, behind the summary.
    assert_eq!((of_kind(&stage, Kind::Compaction).len(), stage.requests_of(message).len()), (1, 2));
    let last = stage.last_request_of(message);
    assert!(last.mentions("A letter came."), "{:#}", last.body["messages"]);
    assert_eq!(
        (count(&last, "| the first\n"), count(&last, "| one too many\n")),
        (0, 1),
        "{:#}",
        last.body["messages"]
    );
    stage.end().await;
}

async fn one_that_cannot_be_compacted_waits_for_a_new_session(mode: Mode) {
    let script = Script::new()
        .on(
            |request| request.mentions("| the first") && request.mentions("| one too many"),
            [Reply::too_long()],
        )
        .compacting([Reply::too_long()]);
    let mut stage = Stage::in_mode(mode, script).await;
    begun(&mut stage).await;
    let message = stage.send("one too many").await;
    let turn = stage.turn().await;
    assert_eq!(
        (turn.outcome(), turn.attempt, turn.compacted),
        (TurnOutcome::Unavailable, 1, false),
        "{turn:?}"
    );
    assert!(turn.error.contains("`hivectl turn new-session ada`"), "{turn:?}");
    stage.order(&["new-session", "ada"]).await;
    let turn = loop {
        let turn = stage.turn().await;
        if turn.outcome() != TurnOutcome::Unavailable {
            break turn;
        }
    };
    assert_eq!(
        (turn.outcome(), turn.attempt, turn.message_id),
        (TurnOutcome::Ok, 1, message),
        "{turn:?}"
    );
    assert!(!stage.last_request_of(message).mentions("the first"));
    stage.end().await;
}

async fn a_compaction_may_meet_a_storm(mode: Mode) {
    let mut stage = Stage::in_mode(mode, full(2).compacting([Reply::overloaded().times(1)])).await;
    begun(&mut stage).await;
    let message = stage.send("one too many").await;
    let turn = stage.turn().await;
    assert_eq!(
        (turn.outcome(), turn.attempt, turn.compacted),
        (TurnOutcome::Unavailable, 1, false),
        "{turn:?}"
    );
    assert!(turn.error.contains("529"), "{turn:?}");
    let turn = stage.ok().await;
    assert_eq!((turn.message_id, turn.attempt, turn.compacted), (message, 1, true), "{turn:?}");
    assert_eq!((of_kind(&stage, Kind::Compaction).len(), stage.requests_of(message).len()), (2, 3));
    stage.end().await;
}

async fn a_message_that_fits_nowhere_is_at_fault(mode: Mode) {
    let script = Script::new()
        .when("attempt 2", [Reply::text("Done.")])
        .when("one too many", [Reply::too_long()]);
    let mut stage = Stage::in_mode(mode, script).await;
    let message = stage.send("one too many").await;
    stage.start();
    let turn = stage.turn().await;
    assert_eq!(
        (turn.outcome(), turn.attempt, turn.compacted),
        (TurnOutcome::Failed, 1, false),
        "{turn:?}"
    );
    assert!(turn.error.contains("does not fit into the model's window"), "{turn:?}");
    // With auto-compaction on, the CLI would have asked for a summary and gone on by itself.
    assert!(!stage.lines(&turn).await.iter().any(|line| line["subtype"] == "compact_boundary"));
    let turn = stage.ok().await;
    assert_eq!((turn.message_id, turn.attempt), (message, 2), "{turn:?}");
    stage.end().await;
}
