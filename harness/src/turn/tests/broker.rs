//! Sessions: lost, resumed, taken over; turns that ask for the next.

use hive_core::name::AgentName;
use hive_core::tree::{Child, Kin};

use super::*;

#[test]
fn a_broker_that_is_away_in_mid_turn_changes_nothing() {
    let mut rig = Rig::running();
    rig.feed(resumed(&[7]));
    assert_eq!(rig.drain(), []);
    rig.finish();
    assert_eq!(rig.ending().outcome, Some(Outcome::Ok));
    // The broker answers again while the end is on its way: the driver repeats the same call.
    rig.feed(resumed(&[7]));
    rig.feed(resumed(&[]));
    assert_eq!(rig.drain(), []);
    rig.feed(Input::Ended(EndTurnAnswer::default()));
    assert_eq!(rig.drain(), [IDLE, Output::Begin]);
}

#[test]
fn a_lost_lease_kills_claude_and_only_then_attaches_again() {
    let mut rig = Rig::running();
    rig.feed(Input::Fenced("LEASE_LOST".into()));
    assert_eq!(rig.drain(), [Output::Signal(Signal::Kill)]);
    rig.line(DONE);
    assert_eq!(rig.drain(), []);
    rig.feed(Input::Exited(Exit::Signal(9)));
    assert_eq!(rig.drain(), [Output::Attach]);
}

#[test]
fn a_lost_session_ends_its_turn() {
    let mut rig = Rig::running();
    rig.feed(attached(|_| {}));
    assert_eq!(rig.drain(), [Output::Signal(Signal::Kill)]);
    rig.feed(Input::Exited(Exit::Signal(9)));
    assert_eq!(rig.drain(), [IDLE, Output::Begin]);
}

#[test]
fn a_turn_that_was_not_begun_here_is_left_alone() {
    for open in [[7, 9], [9, 7]] {
        let mut rig = Rig::running();
        rig.feed(resumed(&open));
        assert_eq!(rig.drain(), [], "the turn that runs is open");
        rig.feed(Input::TurnGone(9));
        assert_eq!(rig.drain(), []);
    }
}

#[test]
fn a_turn_that_the_broker_does_not_know_is_discarded() {
    for gone in [Input::TurnGone(7), resumed(&[]), resumed(&[9])] {
        let mut rig = Rig::running();
        rig.feed(Input::TurnGone(6));
        assert_eq!(rig.drain(), []);
        rig.feed(gone);
        assert_eq!(rig.drain(), [Output::Signal(Signal::Kill)]);
        rig.feed(Input::Exited(Exit::Signal(9)));
        assert!(rig.drain().contains(&Output::Begin));
    }
}

#[test]
fn calls_of_a_session_that_ended_are_repeated() {
    let mut rig = Rig::waiting();
    rig.feed(resumed(&[]));
    assert_eq!(rig.drain(), []);
    rig.feed(attached(|_| {}));
    assert_eq!(rig.drain(), [Output::Begin]);
}

#[test]
fn an_unexpected_refusal_begins_a_new_session_later_each_time() {
    let mut rig = Rig::waiting();
    let mut rests = Vec::new();
    for _ in 0..3 {
        rig.feed(Input::Refused("TURN_OPEN".into()));
        let before = rig.now.boot;
        rig.sleep();
        rests.push(rig.now.boot.since(before).as_secs());
        assert_eq!(rig.drain(), [Output::Attach]);
        rig.feed(attached(|_| {}));
        assert_eq!(rig.drain(), [Output::Begin]);
    }
    assert_eq!(rests, [1, 2, 4]);
}

fn asked(pending_count: u32) -> EndTurnAnswer {
    EndTurnAnswer { pending_count, next_turn_requested: true, park: None }
}

#[test]
fn an_agent_that_asks_for_it_gets_another_turn() {
    let mut rig = Rig::running();
    rig.finish();
    rig.drain();
    rig.feed(Input::Ended(asked(0)));
    assert_eq!(rig.drain(), [Output::Open(Kind::Continue)]);
    let launch = rig.open(8);
    assert_eq!((launch.turn_id, launch.trigger.kind()), (8, Kind::Continue));
}

#[test]
fn mail_a_park_or_a_failure_come_before_a_turn_that_was_asked_for() {
    let park = park::View {
        cause: Outcome::Unavailable,
        until: None,
        remaining: None,
        error: String::new(),
    };
    let parked = EndTurnAnswer { park: Some(park), ..asked(0) };
    for (case, code, answer) in
        [("mail", 0, asked(1)), ("a park", 0, parked), ("a failure", 1, asked(0))]
    {
        let mut rig = Rig::running();
        rig.line(if code == 0 { DONE } else { "{}" });
        rig.exit(code);
        rig.drain();
        rig.feed(Input::Ended(answer));
        assert!(rig.drain().contains(&Output::Begin), "{case}");
    }

    let mut rig = Rig::running();
    rig.finish();
    rig.drain();
    rig.feed(Input::Ended(asked(0)));
    rig.drain();
    rig.feed(Input::NotOpened);
    assert!(rig.drain().contains(&Output::Begin));
}

#[test]
fn a_changed_agent_takes_effect_at_the_next_turn() {
    let mut rig = Rig::running();
    let mut agent = bob();
    agent.parent = AgentName::parse("alice").ok();
    agent.model = "opus".into();
    rig.feed(Input::AgentChanged(Box::new(agent)));
    let child = Child { name: AgentName::parse("carol").expect("a name"), role: "builds".into() };
    rig.feed(Input::KinChanged(Kin {
        children: vec![child.clone()],
        children_count: 1,
        ..Kin::default()
    }));
    rig.finish();
    rig.drain_and_settle();
    rig.drain();
    let launch = rig.begin(8);
    assert_eq!(
        (launch.model.as_str(), launch.identity.parent.as_str(), launch.identity.label.as_str()),
        ("opus", "alice", "bob")
    );
    assert_eq!(launch.identity.kin.children, [child]);
}
