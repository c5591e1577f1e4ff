//! Histories of agents that were stopped or purged.

use hive_history::{Cause, Mark, Outcome, Rule, State};

use crate::world::{World, counts};

fn bob() -> String {
    "bob".to_owned()
}

#[test]
fn a_stopped_agent_gets_mail() {
    let mut world = World::new();
    world.mark(Mark::Stopped { agent: bob() });
    let message = world.send("one");
    world.receive(message, "a", 1, None);
    world.breaks(Rule::Gone, "message 1 was sent to bob after it was stopped");
}

#[test]
fn a_turn_of_a_stopped_agent_begins_with_new_mail() {
    let mut world = World::new();
    world.attach("s", 1);
    world.mark(Mark::Stopped { agent: bob() });
    let message = world.send("one");
    world.begin("s", message, 1, None);
    world.breaks(Rule::Gone, "message 1 was sent to bob after it was stopped");
}

#[test]
fn a_running_turn_of_a_stopped_agent_receives_new_mail() {
    let mut world = World::new();
    world.attach("s", 1);
    let first = world.send("one");
    let turn = world.begin("s", first, 1, None);
    world.mark(Mark::Stopped { agent: bob() });
    let second = world.send("two");
    world.receive_in(turn, second);
    world.end("s", turn, Outcome::Ok, counts(1, 1));
    world.delivery(first).state = State::Acked;
    world.mark(Mark::Starting { agent: bob() });
    let turn = world.begin("s", second, 1, Some(Cause::NotReceived));
    world.end("s", turn, Outcome::Ok, counts(1, 0));
    world.delivery(second).state = State::Acked;
    world.fine();
}

#[test]
fn mail_in_flight_and_mail_after_the_start_is_fine() {
    let mut world = World::new();
    let early = world.send("one");
    world.mark(Mark::Stopped { agent: bob() });
    let late = world.send("two");
    world.receive(early, "a", 1, None);
    world.ack(early, "a");
    world.mark(Mark::Starting { agent: bob() });
    world.receive(late, "b", 1, None);
    world.ack(late, "b");
    world.fine();
}

#[test]
fn mail_of_a_purged_agent_reaches_the_next_one_of_its_name() {
    let (mut world, message) = World::with_message();
    world.mark(Mark::Purging { agent: bob() });
    world.mark(Mark::Purged { agent: bob() });
    world.receive(message, "a", 1, None);
    world.breaks(Rule::Gone, "message 1 was sent to bob before it was purged");
}

#[test]
fn deliveries_of_a_purged_agent_are_not_there_at_the_end() {
    let mut world = World::new();
    world.send("one");
    world.mark(Mark::Purging { agent: bob() });
    world.mark(Mark::Purged { agent: bob() });
    let second = world.send("two");
    world.receive(second, "b", 1, None);
    world.ack(second, "b");
    world.last.deliveries.retain(|delivery| delivery.message == second);
    world.fine();
}
