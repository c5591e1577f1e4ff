//! Bad histories of mail: lost, made up, out of order, leased twice, settled by the wrong caller.

use hive_history::{
    Answer, Cause, Counts, Decision, Kind, Op, Origin, Outcome, Reply, Rule, State,
};

use crate::world::{World, counts, receive, refused, sent, unknown};

#[test]
fn an_accepted_message_is_not_there() {
    let mut world = World::new();
    world.send("one");
    world.last.messages.clear();
    world.last.deliveries.clear();
    world.breaks(Rule::NothingLost, "message 1 was accepted, and is not there");
}

#[test]
fn an_accepted_message_has_no_delivery() {
    let mut world = World::new();
    let message = world.id();
    world.call("ada", World::send_op("bob", "one", 0), sent(message));
    world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    (world.last.messages[0].id, world.last.deliveries[0].message) = (message, message);
    world.last.messages[0].recipients.clear();
    world.last.messages[0].recipient_count = 0;
    world.last.deliveries.clear();
    let found = world.check();
    assert!(
        found
            .iter()
            .any(|one| one.rule == Rule::NothingLost && one.what.contains("has no delivery")),
        "{found:?}"
    );
}

#[test]
fn a_message_states_another_number_of_recipients_than_are_listed() {
    let mut world = World::new();
    let message = world.id();
    world.call("ada", World::send_op("bob", "one", 0), sent(message));
    world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    (world.last.messages[0].id, world.last.deliveries[0].message) = (message, message);
    world.last.messages[0].recipient_count = 2;
    world.breaks(
        Rule::NothingLost,
        "message 1 states 2 recipients, and these are listed: [\"bob\"]",
    );
}

#[test]
fn a_message_without_its_delivery_is_half_a_transaction() {
    let mut world = World::new();
    world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    world.call("ada", World::send_op("bob", "one", 0), unknown());
    world.last.deliveries.clear();
    world.breaks(Rule::NothingLost, "message 1 is to bob, and has no delivery there");
}

#[test]
fn a_message_waits_although_every_agent_rests() {
    let mut world = World::new();
    world.send("one");
    world.last.at_rest = true;
    world.breaks(Rule::NothingLost, "was forgotten");
}

#[test]
fn it_has_no_send() {
    let mut world = World::new();
    world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    world.breaks(Rule::NoPhantom, "nobody made it");
}

#[test]
fn one_request_made_two_messages() {
    let mut world = World::new();
    world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    let second = world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    let request = world.request();
    world.call_as("ada", &request, World::send_op("bob", "one", 0), unknown());
    world.call_as("ada", &request, World::send_op("bob", "one", 0), sent(second));
    world.breaks(Rule::NoPhantom, "is there 2 times, and was made 1 times");
}

#[test]
fn the_second_is_delivered_first() {
    let mut world = World::new();
    let (first, second) = (world.send("one"), world.send("two"));
    world.receive(second, "b", 1, None);
    world.receive(first, "a", 1, None);
    world.breaks(Rule::Fifo, "message 2 was handed to bob before message 1");
}

#[test]
fn one_response_has_them_in_the_wrong_order() {
    let mut world = World::new();
    let (first, second) = (world.send("one"), world.send("two"));
    let handed = vec![world.handed(second, "b", 1, None), world.handed(first, "a", 1, None)];
    world.call("bob", receive(), Answer::Ok(Reply::Leased(handed)));
    world.breaks(Rule::Fifo, "message 2 was handed to bob before message 1");
}

#[test]
fn a_delivery_is_leased_by_two() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.receive(message, "b", 1, Some(Cause::LeaseExpired));
    world.breaks(Rule::OneLease, "under lease b while lease a still held it");
}

#[test]
fn a_delivery_of_an_open_turn_is_leased_by_another() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    world.begin("s", message, 1, None);
    world.begin("s", message, 1, Some(Cause::Drained));
    world.breaks(Rule::OneLease, "still held it");
}

#[test]
fn a_stale_token_acks() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.pass(70_000);
    world.receive(message, "b", 1, Some(Cause::LeaseExpired));
    world.ack(message, "a");
    world.breaks(
        Rule::Fenced,
        "AckDelivery of message 1 to bob by a was answered Acked, though lease b held it by then",
    );
}

#[test]
fn a_token_settles_a_delivery_that_the_operator_dropped() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.decide(message, Decision::Drop);
    world.nack(message, "a");
    let delivery = world.delivery(message);
    delivery.state = State::Dropped;
    world.breaks(Rule::Fenced, "the operator had settled it");
}

#[test]
fn a_token_settles_both_ways() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.nack(message, "a");
    world.ack(message, "a");
    world.breaks(Rule::Fenced, "it was settled otherwise by then");
}

#[test]
fn a_session_that_was_taken_over_ends_its_turn() {
    let (mut world, message) = World::with_message();
    world.attach("old", 1);
    let turn = world.begin("old", message, 1, None);
    world.attach("new", 2);
    world.end("old", turn, Outcome::Ok, counts(1, 0));
    world.delivery(message).state = State::Acked;
    world.breaks(Rule::Fenced, "EndTurn of bob in a session that another had taken the place of");
}

#[test]
fn a_redelivery_says_nothing() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.pass(70_000);
    world.receive(message, "b", 1, None);
    world.breaks(Rule::Redelivery, "does not say that it is a redelivery");
}

#[test]
fn a_cause_without_an_occasion() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, Some(Cause::Released));
    world.breaks(Rule::Redelivery, "says that it came back as Released, and nothing did that");
}

#[test]
fn an_attempt_is_used_by_a_shutdown() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    let turn = world.begin("s", message, 1, None);
    world.end("s", turn, Outcome::Drained, counts(0, 1));
    world.begin("s", message, 2, Some(Cause::Drained));
    world.delivery(message).attempt = 1;
    world.breaks(Rule::Attempts, "for attempt 2 after at most 0 failures");
}

#[test]
fn a_failure_is_forgotten() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.nack(message, "a");
    world.receive(message, "b", 1, Some(Cause::Nacked));
    world.breaks(Rule::Attempts, "for attempt 1 after at least 1 failures");
}

#[test]
fn a_dead_letter_before_its_time() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.nack(message, "a");
    world.delivery(message).state = State::Dead;
    world.breaks(Rule::Attempts, "is a dead letter after 1 failures of 5");
}

#[test]
fn a_third_attempt_is_not_alone() {
    let mut world = World::new();
    let (first, second) = (world.send("one"), world.send("two"));
    for (token, attempt) in [("a", 1), ("b", 2)] {
        world.receive(first, token, attempt, (attempt > 1).then_some(Cause::Nacked));
        world.nack(first, token);
    }
    let handed =
        vec![world.handed(first, "c", 3, Some(Cause::Nacked)), world.handed(second, "d", 1, None)];
    world.call("bob", receive(), Answer::Ok(Reply::Leased(handed)));
    world.breaks(Rule::Attempts, "message 1 at attempt 3 was not served alone");
}

#[test]
fn a_settled_message_is_served_again() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.ack(message, "a");
    world.pass(70_000);
    world.receive(message, "b", 1, Some(Cause::LeaseExpired));
    world.breaks(Rule::Receipt, "was settled as Acked, and was handed over again");
}

#[test]
fn it_has_no_settlement() {
    let (mut world, message) = World::with_message();
    world.delivery(message).state = State::Acked;
    world.breaks(Rule::Settled, "is Acked, and nobody who could made it so");
}

#[test]
fn a_failed_turn_acks() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    let turn = world.begin("s", message, 1, None);
    world.end("s", turn, Outcome::Failed, counts(1, 0));
    world.breaks(Rule::TurnTable, "it acks and holds nothing");
}

#[test]
fn a_turn_that_ended_well_requeues_its_mail() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    let turn = world.begin("s", message, 1, None);
    world.end("s", turn, Outcome::Ok, counts(0, 1));
    world.breaks(Rule::TurnTable, "1 of it reached the model");
}

#[test]
fn a_cancelled_turn_holds_too_much() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    let turn = world.begin("s", message, 1, None);
    world.end("s", turn, Outcome::Cancelled, Counts { held: 2, ..Counts::default() });
    world.delivery(message).state = State::Held;
    world.breaks(Rule::TurnTable, "it held 1");
}

#[test]
fn a_refused_message_is_there() {
    let mut world = World::new();
    world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    world.call("ada", World::send_op("bob", "one", 0), refused("RATE_LIMITED"));
    let found = world.check();
    assert_eq!(
        found.iter().map(|one| one.rule).collect::<Vec<_>>(),
        [Rule::NoPhantom, Rule::Refusal],
        "{found:?}"
    );
}

#[test]
fn a_run_doubles_a_message_of_the_one_before() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    for attempt in [1, 2] {
        let turn = world.begin("s", message, attempt, (attempt > 1).then_some(Cause::TurnFailed));
        let said = world.put(Origin::Agent("bob".to_owned()), "ada", "done");
        world.call("bob", World::send_op("ada", "done", turn), sent(said));
        if attempt == 1 {
            world.end("s", turn, Outcome::Failed, counts(0, 1));
        } else {
            world.end("s", turn, Outcome::Ok, counts(1, 0));
        }
    }
    world.delivery(message).state = State::Acked;
    world.breaks(Rule::NotDoubled, "bob sent \"done\" in turn");
}

#[test]
fn a_request_is_answered_in_two_ways() {
    let mut world = World::new();
    let (one, two) = (world.put(Origin::Agent("ada".to_owned()), "bob", "one"), world.id());
    let request = world.request();
    world.call_as("ada", &request, World::send_op("bob", "one", 0), sent(one));
    world.call_as("ada", &request, World::send_op("bob", "one", 0), sent(two));
    let found = world.check();
    assert!(
        found.iter().any(|one| one.rule == Rule::Receipt && one.what.contains("and then")),
        "{found:?}"
    );
}

#[test]
fn a_request_that_was_done_is_refused() {
    let mut world = World::new();
    let message = world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    let request = world.request();
    world.call_as("ada", &request, World::send_op("bob", "one", 0), sent(message));
    world.call_as("ada", &request, World::send_op("bob", "one", 0), refused("RATE_LIMITED"));
    world.breaks(Rule::Receipt, "its repetition was refused with RATE_LIMITED");
}

#[test]
fn another_request_under_the_same_id_is_done() {
    let mut world = World::new();
    let request = world.request();
    for body in ["one", "two"] {
        let message = world.put(Origin::Agent("ada".to_owned()), "bob", body);
        world.call_as("ada", &request, World::send_op("bob", body, 0), sent(message));
    }
    let found = world.check();
    assert!(
        found
            .iter()
            .any(|one| one.rule == Rule::Receipt && one.what.contains("two different requests")),
        "{found:?}"
    );
}

#[test]
fn the_log_has_another_body() {
    let mut world = World::new();
    let message = world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    let other = world.put(Origin::Agent("ada".to_owned()), "bob", "two");
    world.call("ada", World::send_op("bob", "one", 0), sent(other));
    world.call("ada", World::send_op("bob", "two", 0), unknown());
    assert_ne!(message, other);
    world.breaks(Rule::Receipt, "message 2 is not the one that was sent");
}

#[test]
fn another_body_is_delivered() {
    let (mut world, message) = World::with_message();
    let mut handed = world.handed(message, "a", 1, None);
    handed.body = "another".to_owned();
    world.call("bob", receive(), Answer::Ok(Reply::Leased(vec![handed])));
    world.breaks(Rule::Receipt, "was handed to bob as");
}

#[test]
fn a_message_without_a_key_is_superseded() {
    let (mut world, message) = World::with_message();
    world.delivery(message).state = State::Superseded;
    world.breaks(Rule::Settled, "is Superseded, and nobody who could made it so");
}

#[test]
fn a_stale_lease_is_extended() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.pass(70_000);
    world.receive(message, "b", 1, Some(Cause::LeaseExpired));
    world.call(
        "bob",
        Op::Extend { token: "a".to_owned(), lease_ms: 1_000 },
        Answer::Ok(Reply::Extended),
    );
    world.breaks(Rule::Fenced, "ExtendLease of message 1");
}

#[test]
fn an_agent_gets_two_notices_to_go_on() {
    let mut world = World::new();
    world.attach("s", 1);
    for _ in 0..2 {
        world.put(Origin::System(Kind::Restarted), "bob", "go on");
    }
    world.breaks(Rule::NoPhantom, "to go on, and message");
}

#[test]
fn an_agent_without_a_session_gets_a_notice_to_go_on() {
    let mut world = World::new();
    world.put(Origin::System(Kind::Restarted), "bob", "go on");
    world.breaks(Rule::NoPhantom, "nothing made it: Restarted");
}
