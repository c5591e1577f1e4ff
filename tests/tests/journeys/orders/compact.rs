//! `hivectl turn compact`: at once, behind a running turn, while the agent is parked, and in vain.

use hive_proto::v1::TurnKind::{Compact, Mail};
use hive_proto::v1::TurnOutcome::{Failed, Ok, RateLimited};
use hive_proto::v1::{DeliveryState, EventKind, HarnessState};
use hive_tests::rig::{Mode, Rig};
use hive_tests::scripted::failure::Failure;
use hive_tests::scripted::script::Step;

use super::{done, kinds, waited};
use crate::steps::{
    acked, answer, carried_out, handled, rule, standing, text, touch, unread, wait_for,
};

/// The first second of the year 2100.
const YEAR_2100: i64 = 4_102_444_800;
/// claude's message about a compaction that does not help.
const TOO_LONG: &str =
    "Compaction failed · conversation could not be reduced below the context limit";

both!(
    at_once,
    of_nothing,
    behind_a_running_turn,
    of_a_parked_agent,
    that_fails,
    that_is_cancelled,
    given_twice_while_a_turn_runs,
    given_while_the_harness_is_away
);

async fn at_once(mode: Mode) {
    let mut rig = Rig::duo().await;
    mode.start(&mut rig, &[rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    for body in ["Letter 1.", "Letter 2."] {
        handled(&rig, &operator, "bob", body).await;
    }
    done(&rig, &["compact", "bob"]).await;
    let turns = operator.turns("bob").await;
    assert_eq!(kinds(&operator).await, [(Mail, Ok), (Mail, Ok), (Compact, Ok)]);
    assert!(turns[2].compacted && !turns[1].compacted, "{turns:?}");
    assert_eq!((turns[2].message_id, turns[2].attempt), (0, 0), "it carries no delivery");
    let agent = operator.does("bob", HarnessState::Idle).await;
    assert_eq!(agent.context_tokens, 500, "the size that is left is known: {agent:?}");
    // The conversation continues with its summary.
    handled(&rig, &operator, "bob", "Letter 3.").await;
    assert_eq!(rig.conversations("bob").len(), 1);
    let expected = if mode == Mode::Resident { 1 } else { 4 };
    assert_eq!(rig.turn_starts("bob").len(), expected);
    rig.end().await;
}

async fn of_nothing(mode: Mode) {
    let mut rig = Rig::duo().await;
    mode.start(&mut rig, &[]);
    let said = waited(&rig, &["compact", "bob"]).await;
    assert!(said.code == 1 && said.stderr.contains("No messages to compact"), "{said:?}");
    let operator = rig.operator().await;
    assert_eq!(kinds(&operator).await, [(Compact, Failed)]);
    rig.end().await;
}

async fn behind_a_running_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let stops = vec![text("Well."), touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")];
    mode.start(&mut rig, &[rule("Letter 1", stops), rule("", vec![text("Done.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let first = operator.send("bob", "Letter 1.").await;
    rig.appeared("reached").await;
    let second = operator.send("bob", "Letter 2.").await;
    let order = done(&rig, &["compact", "bob"]);
    let release = async {
        watch.kind("bob", EventKind::CommandGiven).await;
        assert_eq!(operator.turns("bob").await.len(), 1, "the turn is not disturbed");
        rig.touch("go");
    };
    tokio::join!(order, release);
    acked(&rig, "bob", second).await;
    assert_eq!(kinds(&operator).await, [(Mail, Ok), (Compact, Ok), (Mail, Ok)]);
    let turns = operator.turns("bob").await;
    assert_eq!([turns[0].message_id, turns[2].message_id], [first, second]);
    rig.end().await;
}

/// A successful compaction shows that the model answers again, so waiting mail is tried; without a
/// model to ask, the agent stays parked.
async fn of_a_parked_agent(mode: Mode) {
    let mut rig = Rig::duo().await;
    let limited = vec![Step::Fail { fail: Failure::UsageLimit(YEAR_2100) }];
    let answers = vec![answer("operator", "Now."), text("Done.")];
    let fails = vec![Step::First {
        first: rig.path("failed"),
        steps: vec![Step::CompactError { compact_error: TOO_LONG.to_owned() }],
    }];
    mode.start(
        &mut rig,
        &[rule("rate limit", answers), rule("/compact", fails), rule("", limited)],
    );
    let operator = rig.operator().await;
    let waiting = operator.send("bob", "Letter 1.").await;
    let parked = operator.does("bob", HarnessState::RateLimited).await.park.expect("it is parked");
    assert!(parked.until_time.is_some_and(|until| until.seconds >= YEAR_2100), "{parked:?}");
    let said = waited(&rig, &["compact", "bob"]).await;
    assert!(said.code == 1 && said.stderr.contains(TOO_LONG), "{said:?}");
    let agent = operator.does("bob", HarnessState::RateLimited).await;
    let until = agent.park.and_then(|park| park.until_time);
    assert_eq!(until, parked.until_time, "it rests on");
    assert_eq!(operator.delivery("bob", waiting).await.state(), DeliveryState::Ready);
    done(&rig, &["compact", "bob"]).await;
    acked(&rig, "bob", waiting).await;
    assert_eq!(
        kinds(&operator).await,
        [(Mail, RateLimited), (Compact, Failed), (Compact, Ok), (Mail, Ok)]
    );
    assert_eq!(unread(&operator, "operator").await, [("Now.".to_owned(), waiting)]);
    assert_eq!(standing(&operator, "bob", waiting).await.1, 1, "none of it used an attempt");
    rig.end().await;
}

/// A failed compaction is no fault: no notice, no park, and the next turn runs as usual.
async fn that_fails(mode: Mode) {
    let mut rig = Rig::duo().await;
    let fails = vec![Step::CompactError { compact_error: TOO_LONG.to_owned() }];
    mode.start(&mut rig, &[rule("/compact", fails), rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    let said = waited(&rig, &["compact", "bob"]).await;
    assert!(said.code == 1 && said.stderr.contains(TOO_LONG), "{said:?}");
    handled(&rig, &operator, "bob", "Letter 2.").await;
    assert_eq!(kinds(&operator).await, [(Mail, Ok), (Compact, Failed), (Mail, Ok)]);
    assert!(operator.get_agent("bob").await.park.is_none());
    for inbox in ["ada", "operator"] {
        assert_eq!(operator.all_deliveries(inbox).await, [], "no agent is notified");
    }
    rig.end().await;
}

async fn that_is_cancelled(mode: Mode) {
    let mut rig = Rig::duo().await;
    let stops = vec![touch(&rig, "reached"), wait_for(&rig, "never")];
    mode.start(&mut rig, &[rule("/compact", stops), rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    let order = waited(&rig, &["compact", "bob"]);
    let cancel = async {
        rig.appeared("reached").await;
        operator.does("bob", HarnessState::Compacting).await;
        done(&rig, &["cancel", "bob"]).await;
    };
    let (said, ()) = tokio::join!(order, cancel);
    assert!(said.code == 1 && said.stderr.contains("cancelled"), "{said:?}");
    handled(&rig, &operator, "bob", "Letter 2.").await;
    let outcomes: Vec<_> =
        kinds(&operator).await.into_iter().map(|(kind, outcome)| (kind, outcome == Ok)).collect();
    assert_eq!(outcomes, [(Mail, true), (Compact, false), (Mail, true)]);
    rig.end().await;
}

/// Two orders that wait together are one compaction.
async fn given_twice_while_a_turn_runs(mode: Mode) {
    let mut rig = Rig::duo().await;
    let stops = vec![touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")];
    mode.start(&mut rig, &[rule("", stops)]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "Letter 1.").await;
    rig.appeared("reached").await;
    let release = async {
        for _ in 0..2 {
            watch.kind("bob", EventKind::CommandGiven).await;
        }
        rig.touch("go");
    };
    tokio::join!(done(&rig, &["compact", "bob"]), done(&rig, &["compact", "bob"]), release);
    assert_eq!(kinds(&operator).await, [(Mail, Ok), (Compact, Ok)]);
    rig.end().await;
}

async fn given_while_the_harness_is_away(mode: Mode) {
    let mut rig = Rig::duo().await;
    let rules = [rule("", vec![text("Done.")])];
    mode.start(&mut rig, &rules);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    handled(&rig, &operator, "bob", "Letter 1.").await;
    rig.stop_harness("bob").await;
    let said = rig.hivectl(&["--timeout", "0.2", "turn", "compact", "bob", "--wait"]).await;
    assert_eq!(said.code, 6, "{said:?}");
    mode.start(&mut rig, &rules);
    let closed = watch.kind("bob", EventKind::CommandClosed).await;
    assert!(carried_out(&closed), "{closed:?}");
    assert_eq!(kinds(&operator).await, [(Mail, Ok), (Compact, Ok)]);
    rig.end().await;
}
