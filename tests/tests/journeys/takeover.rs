//! Two harnesses of one agent: the second is refused, or takes over and the first is fenced at that
//! moment.

use hive_proto::v1::{DeliveryState, EventKind, RedeliveryCause, TurnOutcome};
use hive_tests::rig::{HarnessOptions, Rig, gone};

use crate::steps::{
    acked, answer, ended, handled, lives, rule, standing, text, touch, unread, wait_for,
};

#[tokio::test]
async fn a_second_harness_is_refused_with_an_explanation() {
    let mut rig = Rig::duo().await;
    rig.start_harness("bob", &[]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    watch.kind("bob", EventKind::HarnessAttached).await;
    let second = rig.start_harness_with("bob", &HarnessOptions::default());
    let status = rig.harness_ends(&second).await;
    let log = rig.read(&format!("{second}.log"));
    assert_eq!(status.code(), Some(1), "{log}");
    let next = "next: stop the other harness, or take over from it with --take-over";
    for words in ["error: this agent has a harness already", "ALREADY_ATTACHED", next] {
        assert!(log.contains(words), "{words}: {log}");
    }
    // The first noticed nothing.
    handled(&rig, &operator, "bob", "Hello bob.").await;
    assert_eq!(operator.turns("bob").await[0].session_epoch, 1);
    rig.end().await;
}

#[tokio::test]
async fn a_takeover_fences_the_first_and_runs_its_message_again() {
    let mut rig = Rig::duo().await;
    let parts = [answer("operator", "part one"), answer("operator", "part two"), text("Done.")];
    let mut first = parts.to_vec();
    first.splice(1..1, [touch(&rig, "reached"), wait_for(&rig, "go")]);
    rig.start_harness("bob", &[rule("", first)]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    let claude = rig.the_one("bob", "scripted-claude");

    let again =
        rule("This is attempt 1 again: the last turn was cut off by a restart", parts.to_vec());
    let rules = vec![again, rule("And now", vec![text("Nothing more.")])];
    let options =
        HarnessOptions { rules, args: vec!["--take-over".to_owned()], ..HarnessOptions::default() };
    rig.start_harness_with("bob", &options);
    let fenced = ended(&rig, &mut watch, "bob", TurnOutcome::Fenced).await;
    gone(claude).await;
    acked(&rig, "bob", asked).await;

    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Acked, 1, RedeliveryCause::Drained)
    );
    let turns = operator.turns("bob").await;
    assert_eq!(lives(&turns), [(TurnOutcome::Fenced, 1), (TurnOutcome::Ok, 1)]);
    assert_eq!((turns[0].id, turns[0].session_epoch, turns[1].session_epoch), (fenced, 1, 2));
    assert_eq!(
        unread(&operator, "operator").await,
        ["part one", "part two"].map(|part| (part.to_owned(), asked))
    );
    // The first does not take the agent back, and says why it ends.
    let status = rig.harness_ends("bob").await;
    let log = rig.read("bob.log");
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("the session is lost") && log.contains("ALREADY_ATTACHED"), "{log}");
    handled(&rig, &operator, "bob", "And now?").await;
    assert_eq!(operator.turns("bob").await[2].session_epoch, 2);
    rig.end().await;
}
