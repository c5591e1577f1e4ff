//! Correct histories that resemble violations: the checker raises no false alarm.

use hive_history::{
    Answer, Cause, Counts, Decision, Mark, Op, Origin, Outcome, Reply, Rule, State,
};

use crate::world::{World, counts, receive, refused, sent, unknown};

#[test]
fn a_request_is_repeated_until_it_is_answered() {
    let mut world = World::new();
    let message = world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    let request = world.request();
    for answer in [unknown(), refused("DRAINING"), unknown(), sent(message), sent(message)] {
        world.call_as("ada", &request, World::send_op("bob", "one", 0), answer);
    }
    world.call("ada", World::send_op("bob", "never arrived", 0), unknown());
    world.fine();
}

#[test]
fn a_message_without_a_receipt_may_exist_and_be_delivered() {
    let mut world = World::new();
    let message = world.put(Origin::Agent("ada".to_owned()), "bob", "one");
    let request = world.request();
    world.invoke("ada", &request, World::send_op("bob", "one", 0));
    world.mark(Mark::BrokerDown);
    world.mark(Mark::BrokerReady);
    world.receive(message, "a", 1, None);
    world.ack(message, "a");
    world.last.at_rest = true;
    world.fine();
}

#[test]
fn a_lease_runs_out_and_is_given_to_another() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.pass(70_000);
    world.receive(message, "b", 2, Some(Cause::LeaseExpired));
    world.call("bob", Op::Ack { token: "a".to_owned() }, refused("LEASE_LOST"));
    world.ack(message, "b");
    world.fine();
}

#[test]
fn a_lease_was_shortened() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.call("bob", Op::Extend { token: "a".to_owned(), lease_ms: 1_000 }, unknown());
    world.pass(2_000);
    world.receive(message, "b", 2, Some(Cause::LeaseExpired));
    world.fine();
}

#[test]
fn an_ack_without_an_answer_is_answered_later() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    let request = world.request();
    for answer in [unknown(), Answer::Ok(Reply::Acked), Answer::Ok(Reply::Acked)] {
        world.call_as("bob", &request, Op::Ack { token: "a".to_owned() }, answer);
    }
    world.delivery(message).state = State::Acked;
    world.fine();
}

#[test]
fn a_nack_without_an_answer_requeues_at_once() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    let request = world.request();
    let nack = || Op::Nack { token: "a".to_owned(), permanent: false };
    world.call_as("bob", &request, nack(), unknown());
    world.call_as("bob", &request, nack(), Answer::Ok(Reply::Nacked(State::Ready)));
    world.receive(message, "b", 2, Some(Cause::Nacked));
    world.call("bob", nack(), refused("LEASE_LOST"));
    world.ack(message, "b");
    world.fine();
}

#[test]
fn an_answer_is_repeated_with_the_same_lease() {
    let mut world = World::new();
    let (first, second) = (world.send("one"), world.send("two"));
    let request = world.request();
    let handed = vec![world.handed(first, "a", 1, None)];
    world.call_as("bob", &request, receive(), unknown());
    world.receive(second, "b", 1, None);
    // The first lease lived all the time.
    world.call_as("bob", &request, receive(), Answer::Ok(Reply::Leased(handed.clone())));
    world.call_as("bob", &request, receive(), Answer::Ok(Reply::Leased(handed)));
    world.ack(first, "a");
    world.ack(second, "b");
    world.fine();
}

#[test]
fn two_consumers_receive_concurrently() {
    let mut world = World::new();
    let (first, second) = (world.send("one"), world.send("two"));
    let (one, other) = (world.invoke("bob", "x", receive()), world.invoke("bob", "y", receive()));
    let (a, b) = (world.handed(first, "a", 1, None), world.handed(second, "b", 1, None));
    world.answer(other, Answer::Ok(Reply::Leased(vec![b])));
    world.answer(one, Answer::Ok(Reply::Leased(vec![a])));
    world.fine();
}

#[test]
fn a_requeued_message_is_behind_others() {
    let mut world = World::new();
    let (first, second) = (world.send("one"), world.send("two"));
    world.receive(first, "a", 1, None);
    world.nack(first, "a");
    world.receive(second, "b", 1, None);
    world.receive(first, "c", 2, Some(Cause::Nacked));
    world.fine();
}

#[test]
fn a_harness_stays_away_and_the_message_comes_again() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    world.begin("s", message, 1, None);
    world.mark(Mark::Detached { agent: "bob".to_owned() });
    world.pass(61_000);
    world.attach("t", 2);
    let turn = world.begin("t", message, 2, Some(Cause::HarnessVanished));
    world.end("t", turn, Outcome::Ok, counts(1, 0));
    world.delivery(message).state = State::Acked;
    world.fine();
}

#[test]
fn a_takeover_ends_a_turn_at_once() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    let old = world.begin("s", message, 1, None);
    world.attach("t", 2);
    let turn = world.begin("t", message, 1, Some(Cause::Drained));
    let end = |session: &str, turn| Op::EndTurn {
        session: session.to_owned(),
        turn,
        outcome: Outcome::Ok,
        returned: Vec::new(),
    };
    world.call("bob", end("s", old), refused("LEASE_LOST"));
    world.call("bob", end("t", turn), Answer::Ok(Reply::TurnEnded(counts(1, 0))));
    world.delivery(message).state = State::Acked;
    world.fine();
}

#[test]
fn a_turn_runs_over_a_restart_of_the_broker() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    let turn = world.begin("s", message, 1, None);
    world.mark(Mark::BrokerDown);
    world.mark(Mark::BrokerReady);
    let attach = Op::Attach { session: "s".to_owned(), take_over: false };
    world.call(
        "bob",
        attach,
        Answer::Ok(Reply::Attached {
            session: "s".to_owned(),
            epoch: 1,
            resumed: true,
            open_turn: turn,
        }),
    );
    world.end("s", turn, Outcome::Ok, counts(1, 0));
    world.delivery(message).state = State::Acked;
    world.fine();
}

#[test]
fn a_run_repeats_its_requests_and_nothing_is_doubled() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    let first = world.begin("s", message, 1, None);
    let said = world.put(Origin::Agent("bob".to_owned()), "ada", "done");
    world.call("bob", World::send_op("ada", "done", first), sent(said));
    world.end("s", first, Outcome::Failed, counts(0, 1));
    let second = world.begin("s", message, 2, Some(Cause::TurnFailed));
    let already = Answer::Ok(Reply::Sent { message: said, already: true, skipped: Vec::new() });
    world.call("bob", World::send_op("ada", "done", second), already);
    // A second send of the text in the same run is intended.
    let more = world.put(Origin::Agent("bob".to_owned()), "ada", "done");
    world.call("bob", World::send_op("ada", "done", second), sent(more));
    world.end("s", second, Outcome::Ok, counts(1, 0));
    world.delivery(message).state = State::Acked;
    world.fine();
}

#[test]
fn mail_that_did_not_reach_the_model_is_requeued() {
    let mut world = World::new();
    let (first, second) = (world.send("one"), world.send("two"));
    world.attach("s", 1);
    let turn = world.begin("s", first, 1, None);
    world.receive_in(turn, second);
    world.end("s", turn, Outcome::Ok, counts(1, 1));
    world.delivery(first).state = State::Acked;
    let turn = world.begin("s", second, 1, Some(Cause::NotReceived));
    world.end("s", turn, Outcome::Ok, counts(1, 0));
    world.delivery(second).state = State::Acked;
    world.fine();
}

#[test]
fn the_operator_holds_releases_and_redrives() {
    let (mut world, message) = World::with_message();
    world.attach("s", 1);
    let turn = world.begin("s", message, 1, None);
    world.end("s", turn, Outcome::Cancelled, Counts { held: 1, ..Counts::default() });
    world.decide(message, Decision::Release);
    let mut cause = Cause::Released;
    for attempt in 1..=5 {
        let turn = world.begin("s", message, attempt, Some(cause));
        let dead = u32::from(attempt == 5);
        world.end(
            "s",
            turn,
            Outcome::Failed,
            Counts { dead, returned: 1 - dead, ..Counts::default() },
        );
        cause = Cause::TurnFailed;
    }
    world.decide(message, Decision::Redrive);
    world.begin("s", message, 1, Some(Cause::Redriven));
    world.fine();
}

#[test]
fn a_wake_supersedes_an_undelivered_one() {
    let mut world = World::new();
    for (number, state) in [State::Superseded, State::Ready].into_iter().enumerate() {
        let body = format!("wake {number}");
        let message = world.put(Origin::External("matrix".to_owned()), "bob", &body);
        world.message(message).key = "k".to_owned();
        world.delivery(message).state = state;
        let op = Op::Wake { label: "matrix".to_owned(), body, key: "k".to_owned() };
        world.call("bob", op, Answer::Ok(Reply::Woken { message, superseded: 0 }));
    }
    world.fine();
}

#[test]
fn a_question_is_answered_once_and_the_second_answer_is_refused() {
    let mut world = World::new();
    let question = world.ask("tea?");
    world.reply(question, "yes");
    world.call("operator", crate::world::answer(question, "no"), refused("QUESTION_CLOSED"));
    world.fine();
}

#[test]
fn a_reminder_fires_late_because_the_broker_was_down() {
    let mut world = World::new();
    let place = world.remind("tea", 1_000);
    world.mark(Mark::BrokerDown);
    world.pass(100_000);
    world.mark(Mark::BrokerReady);
    let message = world.fire(place);
    world.receive(message, "a", 1, None);
    world.ack(message, "a");
    world.last.at_rest = true;
    world.fine();
}

#[test]
fn opaque_agents_may_have_done_anything() {
    let mut world = World::new();
    world.history.setting.opaque = vec!["bob".to_owned()];
    let message = world.send("one");
    world.delivery(message).state = State::Acked;
    world.put(Origin::Agent("bob".to_owned()), "ada", "an answer");
    world.fine();
}

#[test]
fn a_violation_is_printed_in_a_line() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    world.receive(message, "b", 1, Some(Cause::LeaseExpired));
    let history = world.history.clone();
    let found = world.check();
    assert_eq!(found[0].rule, Rule::OneLease);
    assert_eq!(
        found[0].to_string(),
        "OneLease: message 1 to bob was handed over under lease b while lease a still held it (observations #3, #5)"
    );
    assert_eq!(history.lines(&found[0].seen).lines().count(), 2);
    assert!(
        history.tail(1).starts_with("#5       30 ms       call 3 -> Ok(Leased"),
        "{}",
        history.tail(1)
    );
}
