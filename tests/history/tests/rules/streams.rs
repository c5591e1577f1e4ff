//! Leases of streams and settlements that are repeated: what may follow them.

use hive_history::{Answer, Cause, LASTING_MS, Mark, Op, Reply, Rule, State};

use crate::world::World;

/// The orphan grace, in ms.
const GRACE: u64 = 30_000;

/// `bob` gets the message on a stream.
fn streamed(world: &mut World, message: u64, token: &str) {
    let handed = world.handed(message, token, 1, None);
    let op = Op::Receive { max: 1, lease_ms: LASTING_MS, turn: 0, tool_use: String::new() };
    world.call("bob", op, Answer::Ok(Reply::Leased(vec![handed])));
}

fn extend(world: &mut World, token: &str, lease_ms: u64) {
    let op = Op::Extend { token: token.to_owned(), lease_ms };
    world.call("bob", op, Answer::Ok(Reply::Extended));
}

fn nack(token: &str) -> Op {
    Op::Nack { token: token.to_owned(), permanent: false }
}

#[test]
fn a_lease_of_a_stream_lasts_and_no_other_is_given_meanwhile() {
    let (mut world, message) = World::with_message();
    streamed(&mut world, message, "a");
    world.pass(100 * GRACE);
    world.receive(message, "b", 1, Some(Cause::Drained));
    world.ack(message, "b");
    world.breaks(Rule::OneLease, "lease a still held it");
}

#[test]
fn a_lease_expires_after_the_grace_of_its_stream_and_not_before() {
    for (pause, is_fine) in [(GRACE, true), (GRACE / 2, false)] {
        let (mut world, message) = World::with_message();
        streamed(&mut world, message, "a");
        world.pass(GRACE);
        extend(&mut world, "a", GRACE);
        world.pass(pause);
        world.receive(message, "b", 2, Some(Cause::LeaseExpired));
        world.ack(message, "b");
        if is_fine {
            world.fine();
        } else {
            world.breaks(Rule::OneLease, "lease a still held it");
        }
    }
}

#[test]
fn a_stream_that_came_back_keeps_its_leases() {
    let (mut world, message) = World::with_message();
    streamed(&mut world, message, "a");
    extend(&mut world, "a", GRACE);
    world.pass(GRACE / 2);
    extend(&mut world, "a", LASTING_MS);
    world.pass(2 * GRACE);
    world.receive(message, "b", 2, Some(Cause::LeaseExpired));
    world.ack(message, "b");
    world.breaks(Rule::OneLease, "lease a still held it");
}

#[test]
fn the_grace_after_a_restart_is_not_known_to_the_client() {
    let (mut world, message) = World::with_message();
    streamed(&mut world, message, "a");
    world.mark(Mark::BrokerDown);
    world.mark(Mark::BrokerReady);
    extend(&mut world, "a", GRACE);
    world.pass(GRACE - 100);
    world.receive(message, "b", 2, Some(Cause::LeaseExpired));
    world.ack(message, "b");
    world.fine();
}

#[test]
fn a_release_uses_no_attempt() {
    for attempt in [1, 2] {
        let (mut world, message) = World::with_message();
        streamed(&mut world, message, "a");
        world.call("bob", Op::Release { token: "a".to_owned() }, Answer::Ok(Reply::Released));
        world.receive(message, "b", attempt, Some(Cause::NotReceived));
        world.ack(message, "b");
        let found = world.check();
        assert_eq!(found.is_empty(), attempt == 1, "{found:?}");
        assert!(found.iter().all(|violation| violation.rule == Rule::Attempts), "{found:?}");
    }
}

#[test]
fn a_repeated_settlement_is_answered_until_the_delivery_is_leased_again() {
    let (mut world, message) = World::with_message();
    world.receive(message, "a", 1, None);
    for _ in 0..2 {
        world.call("bob", nack("a"), Answer::Ok(Reply::Nacked(State::Ready)));
    }
    world.receive(message, "b", 2, Some(Cause::Nacked));
    world.call("bob", nack("a"), Answer::Ok(Reply::Nacked(State::Ready)));
    world.ack(message, "b");
    world.breaks(Rule::Fenced, "lease b held it by then");
}
