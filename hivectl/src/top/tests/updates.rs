//! When the hive is read again.

use std::collections::BTreeSet;

use hive_proto::v1::EventKind;

use super::super::hive::Part;
use super::super::reads::Wanted;
use super::*;

fn happened(state: &mut State, kind: EventKind, agent: &str, now: i64) -> Vec<Action> {
    update(state, Event::Happened(kind, text(agent)), at(now))
}

fn parts(parts: &[Part]) -> Vec<Action> {
    // Ada is known to hold something.
    let holders = BTreeSet::from([text("ada")]);
    vec![Action::Read(Wanted {
        parts: parts.iter().copied().collect(),
        holders,
        search_holders: false,
    })]
}

#[test]
fn everything_is_read_when_the_broker_answers() {
    let mut state = empty((80, 24));
    let all = Wanted { parts: Part::ALL.into(), holders: BTreeSet::new(), search_holders: true };
    assert_eq!(update(&mut state, Event::Linked, at(0)), [Action::Read(all)]);
}

#[test]
fn only_what_may_have_changed_is_read() {
    for (kind, agent, touched) in [
        (EventKind::MessageAccepted, "ada", &[Part::Agents][..]),
        (EventKind::MessageAccepted, "operator", &[Part::Agents, Part::Mail]),
        (EventKind::DeliveryAcked, "operator", &[Part::Agents, Part::Mail]),
        (EventKind::DeliveryDead, "bob", &[Part::Agents, Part::DeadLetters, Part::LooseEnds]),
        (
            EventKind::QuestionAsked,
            "ada",
            &[Part::Agents, Part::Mail, Part::Questions, Part::LooseEnds],
        ),
        (EventKind::ReminderSet, "ada", &[Part::Agents, Part::LooseEnds]),
        (EventKind::ScheduleChanged, "ada", &[Part::Questions]),
        (EventKind::StatusChanged, "ada", &[Part::Agents]),
        (EventKind::Unspecified, "ada", &Part::ALL),
    ] {
        assert_eq!(
            happened(&mut full((80, 24)), kind, agent, 1000),
            parts(touched),
            "{kind:?} of {agent}"
        );
    }
    for kind in [EventKind::CommandGiven, EventKind::ScheduleFired] {
        assert_eq!(happened(&mut full((80, 24)), kind, "ada", 1000), [], "{kind:?}");
    }
}

#[test]
fn holders_are_read_again_and_after_a_gap_every_agent() {
    let mut state = full((80, 24));
    let Some(Action::Read(wanted)) =
        happened(&mut state, EventKind::DeliveryHeld, "bob", 1000).pop()
    else {
        panic!("it is read")
    };
    assert_eq!(
        (wanted.holders, wanted.search_holders),
        (BTreeSet::from([text("ada"), text("bob")]), false)
    );
    update(&mut state, Event::Read(Box::default()), at(1001));
    let again = update(&mut state, Event::Missed, at(2000));
    assert!(matches!(&again[..], [Action::Read(Wanted { search_holders: true, .. })]), "{again:?}");
}

#[test]
fn a_burst_of_events_is_two_readings() {
    let mut state = full((80, 24));
    assert_eq!(happened(&mut state, EventKind::TurnBegun, "ada", 1000), parts(&[Part::Agents]));
    for _ in 0..500 {
        assert_eq!(happened(&mut state, EventKind::TurnBegun, "ada", 1005), []);
    }
    let after = update(&mut state, Event::Read(Box::default()), at(1010));
    assert_eq!(after, [Action::WakeAt(BootTime(1250))]);
    assert_eq!(update(&mut state, Event::Wake, at(1250)), parts(&[Part::Agents]));
    update(&mut state, Event::Read(Box::default()), at(1260));
    assert_eq!(update(&mut state, Event::Tick, at(2000)), [], "without events nothing is read");
}

#[test]
fn a_reading_that_fails_is_said_and_tried_again() {
    let mut state = full((80, 24));
    happened(&mut state, EventKind::TurnBegun, "ada", 1000);
    let after = update(&mut state, Event::NotRead(text("the database is locked")), at(1010));
    assert_eq!(after, [Action::WakeAt(BootTime(2010))]);
    assert_contains(&shown(&state), "! cannot read the hive, trying again: the database is locked");
    assert_eq!(update(&mut state, Event::Wake, at(2010)), parts(&[Part::Agents]));
}

#[test]
fn while_the_broker_is_away_nothing_is_read_and_then_everything() {
    let mut state = full((80, 24));
    happened(&mut state, EventKind::TurnBegun, "ada", 1000);
    update(&mut state, Event::Lost(text("it shut down")), at(1001));
    assert_eq!(update(&mut state, Event::NotRead(text("transport error")), at(1002)), []);
    assert!(!shown(&state).contains("transport error"), "{}", shown(&state));
    assert_eq!(update(&mut state, Event::Tick, at(9000)), []);
    let back = update(&mut state, Event::Linked, at(9001));
    assert!(
        matches!(&back[..], [Action::Read(wanted)] if wanted.parts == Part::ALL.into()),
        "{back:?}"
    );
}

/// The end of a park is no event.
#[test]
fn the_agents_are_read_when_a_park_ends() {
    let mut state = full((80, 24));
    assert_eq!(update(&mut state, Event::Tick, at(3_598_900)), []);
    assert_eq!(update(&mut state, Event::Tick, at(3_599_900)), parts(&[Part::Agents]));
}

#[test]
fn a_resized_terminal_is_drawn_at_its_size() {
    let mut state = full((80, 24));
    update(&mut state, Event::Resized(30, 8), at(0));
    assert!(shown(&state).starts_with("\"too small: 30x8"), "{}", shown(&state));
    update(&mut state, Event::Resized(100, 30), at(0));
    assert_eq!(shown(&state).lines().count(), 30);
}
