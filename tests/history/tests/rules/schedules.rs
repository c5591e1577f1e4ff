//! Schedules: their questions are answered by a grant, their messages have no request of their own,
//! and one that failed is never superseded.

use hive_history::{
    Answer, Cause, Kind, Op, Origin, QuestionSeen, QuestionState, Reply, Rule, State, Terms,
};

use crate::world::{World, refused};

fn terms() -> Terms {
    Terms {
        body: Some("Report.".to_owned()),
        targets_add: vec!["bob".to_owned()],
        ..Terms::default()
    }
}

fn op() -> Op {
    Op::Schedule { text: "daily?".to_owned(), ttl_ms: 0, schedule: 0, terms: terms(), turn: 0 }
}

/// `ada` asks for a schedule, which its grant allows.
fn scheduled() -> World {
    let mut world = World::new();
    let id = world.id();
    let message = world.put(Origin::System(Kind::QuestionAsked), "operator", "ada asks: daily?");
    world.message(message).question = id;
    world.call("ada", op(), Answer::Ok(Reply::Asked { question: id, message, already: false }));
    world.last.questions.push(QuestionSeen {
        id,
        asker: "ada".to_owned(),
        target: "operator".to_owned(),
        text: "daily?".to_owned(),
        state: QuestionState::Answered,
        choices: vec!["approve".to_owned()],
        answer: "allowed by a grant".to_owned(),
        closed_by: String::new(),
        operator_override: false,
        deadline: None,
        message,
        approval: None,
    });
    let outcome = world.put(Origin::System(Kind::QuestionAnswered), "ada", "approved");
    world.message(outcome).question = id;
    world.delivery(outcome).state = State::Superseded;
    world
}

/// The schedule fires for `bob`; the messages before it that `bob` has not read are superseded.
fn fire(world: &mut World, skipped: &str) -> u64 {
    let body = format!("Schedule 9 of ada, for 2026-10-24T20:00:00Z.{skipped}\n\nReport.");
    world.put(Origin::Agent("ada".to_owned()), "bob", &body)
}

#[test]
fn a_schedule_fires_and_supersedes_what_is_unread() {
    let mut world = scheduled();
    let first = fire(&mut world, "");
    fire(&mut world, " 1 earlier due time was skipped.");
    world.delivery(first).state = State::Superseded;
    world.put(Origin::System(Kind::ScheduleEnded), "ada", "Your schedule 9 has ended: so.");
    world.fine();
}

#[test]
fn a_message_of_a_schedule_fails_and_waits() {
    let mut world = scheduled();
    let first = fire(&mut world, "");
    world.receive(first, "a", 1, None);
    world.nack(first, "a");
    world.fine();
}

#[test]
fn a_message_of_a_schedule_fails_and_is_superseded() {
    let mut world = scheduled();
    let first = fire(&mut world, "");
    world.receive(first, "a", 1, None);
    world.nack(first, "a");
    fire(&mut world, " 1 earlier due time was skipped.");
    let delivery = world.delivery(first);
    (delivery.state, delivery.cause) = (State::Superseded, Some(Cause::Nacked));
    world.breaks(Rule::Firings, "of schedule 9 to bob failed at least 1 times");
}

#[test]
fn a_schedule_sends_what_no_request_had() {
    let mut world = scheduled();
    let other = "Schedule 9 of ada, fired by hand.\n\nReport more.";
    world.put(Origin::Agent("ada".to_owned()), "bob", other);
    world.breaks(Rule::NoPhantom, "nobody made it");
}

#[test]
fn a_schedule_sends_in_the_name_of_another() {
    let mut world = scheduled();
    let body = "Schedule 9 of ada, fired by hand.\n\nReport.";
    world.put(Origin::Agent("bob".to_owned()), "ada", body);
    world.breaks(Rule::NoPhantom, "nobody made it");
}

#[test]
fn a_message_of_a_schedule_is_superseded_without_a_newer_one() {
    let mut world = scheduled();
    let first = fire(&mut world, "");
    world.delivery(first).state = State::Superseded;
    world.breaks(Rule::Settled, "nobody who could made it so");
}

#[test]
fn a_grant_answers_a_question_that_has_no_effect() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.reply(question, "yes");
    world.question(question).closed_by = String::new();
    let found = world.check();
    assert!(found.iter().any(|one| one.to_string().contains("and nobody did that")), "{found:?}");
}

#[test]
fn a_schedule_ends_that_no_agent_asked_for() {
    let mut world = World::new();
    world.call("ada", op(), refused("CAPABILITY_MISSING"));
    world.put(Origin::System(Kind::ScheduleEnded), "ada", "Your schedule 9 has ended: so.");
    world.breaks(Rule::NoPhantom, "ScheduleEnded");
}
