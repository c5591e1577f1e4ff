//! The operator's commands to a harness: they are carried out from the next turn on, and say that
//! they were.

use hive_proto::v1::{DeliveryState, EventKind, RedeliveryCause, TurnOutcome};
use hive_tests::rig::{Rig, Watch};

use crate::steps::{
    acked, answer, carried_out, ended, handled, lives, rule, standing, text, touch, unread,
    wait_for,
};

async fn ordered(rig: &Rig, args: &[&str]) {
    let said = rig.hivectl(args).await;
    assert!(said.code == 0 && said.stdout.contains("(command "), "{args:?}: {said:?}");
}

async fn done(watch: &mut Watch) {
    let closed = watch.kind("bob", EventKind::CommandClosed).await;
    assert!(carried_out(&closed), "{closed:?}");
}

#[tokio::test]
async fn another_model_runs_from_the_next_turn_on() {
    let mut rig = Rig::duo().await;
    let stops = vec![touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")];
    rig.start_harness("bob", &[rule("Letter 1", stops), rule("", vec![text("Done.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "Letter 1.").await;
    rig.appeared("reached").await;
    ordered(&rig, &["turn", "model", "bob", "opus"]).await;
    done(&mut watch).await;
    rig.touch("go");
    handled(&rig, &operator, "bob", "Letter 2.").await;
    // The setting belongs to the agent: another broker and another harness also know it.
    rig.stop_harness("bob").await;
    rig.stop_broker().await;
    rig.start_broker().await;
    rig.start_harness("bob", &[]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 3.").await;
    let models: Vec<String> =
        operator.turns("bob").await.into_iter().map(|turn| turn.model).collect();
    assert_eq!(models, ["claude-haiku-5-5", "claude-opus-5-5", "claude-opus-5-5"]);
    assert_eq!(operator.get_agent("bob").await.model, "opus");
    rig.end().await;
}

#[tokio::test]
async fn a_new_session_begins_a_fresh_conversation() {
    let mut rig = Rig::duo().await;
    rig.start_harness("bob", &[rule("", vec![text("Done.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let send = async |body: &str| {
        handled(&rig, &operator, "bob", body).await;
    };
    send("Letter 1.").await;
    send("Letter 2.").await;
    assert_eq!(rig.conversations("bob"), [2], "one conversation goes on");
    ordered(&rig, &["turn", "new-session", "bob"]).await;
    // Nothing begins before there is mail for it.
    watch.kind("bob", EventKind::CommandGiven).await;
    send("Letter 3.").await;
    done(&mut watch).await;
    send("Letter 4.").await;
    assert_eq!(rig.conversations("bob"), [2, 2], "once, and then on in the new one");
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1); 4]);
    rig.end().await;
}

#[tokio::test]
async fn a_restart_requeues_the_turn_and_starts_the_program_again() {
    let mut rig = Rig::duo().await;
    let parts = [answer("operator", "part one"), answer("operator", "part two"), text("Done.")];
    let mut first = parts.to_vec();
    first.splice(1..1, [touch(&rig, "reached"), wait_for(&rig, "go")]);
    let notice = rule("Your harness was restarted", vec![text("I go on.")]);
    rig.start_harness("bob", &[notice, rule("This is attempt", parts.to_vec()), rule("", first)]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    let pid = rig.harness("bob").pid();
    ordered(&rig, &["turn", "restart", "bob"]).await;
    ended(&rig, &mut watch, "bob", TurnOutcome::Drained).await;
    done(&mut watch).await;
    acked(&rig, "bob", asked).await;
    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Acked, 1, RedeliveryCause::Drained)
    );
    let turns = operator.turns("bob").await;
    // Before the message is redelivered, the agent is given the reason.
    assert_eq!(
        lives(&turns),
        [(TurnOutcome::Drained, 1), (TurnOutcome::Ok, 1), (TurnOutcome::Ok, 1)]
    );
    assert_eq!([turns[0].session_epoch, turns[1].session_epoch, turns[2].session_epoch], [1, 2, 2]);
    assert_eq!([turns[0].message_id, turns[2].message_id], [asked; 2]);
    assert_eq!(
        unread(&operator, "operator").await,
        ["part one", "part two"].map(|part| (part.to_owned(), asked))
    );
    assert_eq!(rig.harness("bob").pid(), pid, "its supervisor sees no end");
    rig.end().await;
}

/// A command waits for a harness that is away.
#[tokio::test]
async fn a_command_is_not_lost_on_a_harness_that_is_away() {
    let mut rig = Rig::duo().await;
    rig.start_harness("bob", &[rule("", vec![text("Done.")])]);
    let mut watch = rig.watch().await;
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    rig.kill_harness("bob").await;
    ordered(&rig, &["turn", "new-session", "bob"]).await;
    rig.crash_broker().await;
    rig.start_harness("bob", &[rule("", vec![text("Done.")])]);
    handled(&rig, &rig.operator().await, "bob", "Letter 2.").await;
    done(&mut watch).await;
    assert_eq!(rig.conversations("bob"), [1, 1]);
    rig.end().await;
}
