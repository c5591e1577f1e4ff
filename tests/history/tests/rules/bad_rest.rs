//! Bad histories of questions and reminders.

use hive_history::{Answer, ApprovalSeen, Event, Op, QuestionState, ReminderState, Reply, Rule};

use crate::world::{World, answer};

#[test]
fn a_question_has_two_outcomes() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.reply(question, "yes");
    let mut other = world.question(question).clone();
    other.answer = "no".to_owned();
    world.history.push(world.at, 0, Event::Saw(other));
    world.breaks(Rule::OneOutcome, "ended as");
}

#[test]
fn two_readers_see_different_changes() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.reply(question, "yes");
    let mut other = world.question(question).clone();
    let changes = vec!["a role".to_owned()];
    other.approval = Some(Box::new(ApprovalSeen { changes, digest: String::new() }));
    world.history.push(world.at, 0, Event::Saw(other));
    world.breaks(Rule::OneOutcome, "ended as");
}

#[test]
fn two_answers_are_taken() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.reply(question, "yes");
    let seen = world.question(question).clone();
    world.call("bob", answer(question, "yes"), Answer::Ok(Reply::Question(seen)));
    world.breaks(Rule::OneOutcome, "was closed by two requests");
}

#[test]
fn a_closed_question_is_open_again() {
    let mut world = World::new();
    let question = world.ask("tea?");
    let open = world.question(question).clone();
    world.reply(question, "yes");
    world.call("ada", Op::ReadQuestion { question }, Answer::Ok(Reply::Question(open)));
    world.breaks(Rule::OneOutcome, "and then open again");
}

#[test]
fn an_answer_is_taken_and_another_stands() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.reply(question, "yes");
    for observation in &mut world.history.observations {
        if let Event::Invoked { op: Op::Answer { text, .. }, .. } = &mut observation.event {
            "no".clone_into(text);
        }
    }
    let found = world.check();
    assert!(found.iter().all(|one| one.rule == Rule::OneOutcome) && found.len() == 2, "{found:?}");
}

#[test]
fn a_deadline_passes_early() {
    let mut world = World::new();
    let question = world.ask("tea?");
    let due = crate::world::WALL + 5_000;
    let row = world.question(question);
    (row.deadline, row.state) = (Some(due), QuestionState::Expired);
    let seen = row.clone();
    world.history.push(world.at, crate::world::WALL, Event::Saw(seen));
    for agent in ["ada", "bob"] {
        let told = world.put(
            hive_history::Origin::System(hive_history::Kind::QuestionExpired),
            agent,
            "over",
        );
        world.message(told).question = question;
    }
    world.breaks(Rule::OneOutcome, "before its deadline");
}

#[test]
fn it_has_no_answer() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.answered(question, "yes");
    let told =
        world.put(hive_history::Origin::System(hive_history::Kind::QuestionAnswered), "ada", "yes");
    world.message(told).question = question;
    world.breaks(Rule::OneOutcome, "and nobody did that");
}

#[test]
fn the_asker_is_not_notified() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.reply(question, "yes");
    world.last.messages.retain(|message| message.body != "yes");
    world.last.deliveries.retain(|delivery| delivery.agent != "ada");
    world.breaks(Rule::OneOutcome, "ada was told [], and should be told 1 times");
}

#[test]
fn the_asker_is_notified_twice() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.reply(question, "yes");
    let told =
        world.put(hive_history::Origin::System(hive_history::Kind::QuestionAnswered), "ada", "yes");
    world.message(told).question = question;
    world.breaks(Rule::OneOutcome, "should be told 1 times");
}

#[test]
fn a_question_is_lost() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.last.questions.clear();
    let found = world.check();
    let lost = format!("question {question} was accepted, and is not there");
    assert!(found.iter().any(|one| one.rule == Rule::NothingLost && one.what == lost), "{found:?}");
}

#[test]
fn a_reminder_fires_twice() {
    let mut world = World::new();
    let place = world.remind("tea", 1_000);
    world.pass(1_000);
    world.fire(place);
    world.fire(place);
    world.breaks(Rule::FiresOnce, "fired as message 3, and there are [2, 3]");
}

#[test]
fn a_reminder_fires_early() {
    let mut world = World::new();
    let place = world.remind("tea", 1_000);
    world.fire(place);
    world.breaks(Rule::FiresOnce, "ms early");
}

#[test]
fn a_reminder_is_delivered_early() {
    let mut world = World::new();
    let place = world.remind("tea", 1_000);
    let message = world.fire(place);
    world.last.reminders[place].closed = world.last.reminders[place].due;
    world.receive(message, "a", 1, None);
    world.breaks(Rule::FiresOnce, "ms before it was due");
}

#[test]
fn a_reminder_is_forgotten() {
    let mut world = World::new();
    world.remind("tea", 1_000);
    world.pass(10_000);
    world.last.at_rest = true;
    world.breaks(Rule::FiresOnce, "has not fired");
}

#[test]
fn a_withdrawn_reminder_fires() {
    let mut world = World::new();
    let place = world.remind("tea", 1_000);
    let reminder = world.last.reminders[place].id;
    world.call("bob", Op::CancelReminder { reminder }, Answer::Ok(Reply::Done(String::new())));
    world.pass(1_000);
    world.fire(place);
    world.last.reminders[place].state = ReminderState::Cancelled;
    world.breaks(Rule::FiresOnce, "is Cancelled and fired as");
}

#[test]
fn a_reminder_is_due_at_another_time() {
    let mut world = World::new();
    let place = world.remind("tea", 1_000);
    for observation in &mut world.history.observations {
        if let Event::Answered { answer: Answer::Ok(Reply::Reminded { due, .. }), .. } =
            &mut observation.event
        {
            *due += 60_000;
        }
    }
    world.last.reminders[place].due += 60_000;
    world.breaks(Rule::FiresOnce, "and was wanted between");
}
