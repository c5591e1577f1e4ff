//! Heartbeats: without a note of the agent they cost no model call.

use hive_core::message::{Message, Origin, SystemKind};

use super::*;
use crate::heartbeat::Agenda;

fn heartbeat(turn_id: u64, agenda: Agenda) -> Input {
    heartbeat_with(turn_id, agenda, Vec::new())
}

fn heartbeat_with(turn_id: u64, agenda: Agenda, commands: Vec<Command>) -> Input {
    let message = Message {
        system_kind: Some(SystemKind::Heartbeat),
        ..samples::message(17, Origin::System, "your heartbeat")
    };
    let begun = samples::begun(turn_id, message);
    Input::Begun(Arc::new(Begun { commands, agenda: Some(agenda), ..begun }))
}

#[test]
fn a_heartbeat_for_which_nothing_is_noted_ends_ok_without_claude() {
    let mut rig = Rig::waiting();
    rig.feed(heartbeat(7, Agenda::Nothing));
    let outputs = rig.drain();
    let [Output::End(ending)] = &outputs[..] else { panic!("only an end: {outputs:?}") };
    assert_eq!((ending.turn_id, ending.outcome), (7, Some(Outcome::Ok)));
    assert_eq!(
        (ending.error.as_str(), ending.usage, ending.context_tokens),
        ("", Default::default(), 0)
    );
    rig.feed(Input::Ended(EndTurnAnswer::default()));
    assert_eq!(rig.drain(), [IDLE, Output::Begin]);
    // The next one is read again.
    rig.feed(heartbeat(8, Agenda::Text("look at the mail".to_owned())));
    let launch = rig.launch();
    assert!(launch.continues && launch.step == Step::Work);
    rig.finish();
    rig.assert_ended(8, Outcome::Ok);
}

#[test]
fn a_file_that_was_not_read_runs_the_turn() {
    let mut rig = Rig::waiting();
    rig.feed(heartbeat(7, Agenda::Unread("it is a link".to_owned())));
    rig.launch();
    rig.finish();
    rig.assert_ended(7, Outcome::Ok);
}

#[test]
fn a_quiet_heartbeat_makes_no_room_in_a_long_conversation() {
    let mut rig = Rig::new();
    rig.feed(attached(|bob| {
        (bob.context_tokens, bob.context_window_tokens) = (900, 1000);
        bob.context_time = Some(WallTime(1_000_000));
    }));
    rig.feed(found(true));
    rig.drain();
    rig.feed(heartbeat(7, Agenda::Nothing));
    rig.settle();
    assert_eq!(rig.drain(), [IDLE, Output::Begin]);
    // After a turn with a model call it is due.
    rig.begin(8);
    rig.succeed(900);
    rig.settle_into(Kind::Checkpoint);
}

#[test]
fn a_quiet_heartbeat_begins_no_new_conversation() {
    let mut rig = Rig::waiting();
    rig.feed(command(30, Order::StartNewSession));
    rig.drain();
    rig.feed(heartbeat(7, Agenda::Nothing));
    rig.settle();
    assert_eq!(rig.drain(), [IDLE, Output::Begin], "the order is still open");
    assert!(!rig.begin(8).continues);
}

#[test]
fn a_claude_that_cannot_run_is_found_by_a_quiet_heartbeat_too() {
    let mut rig = Rig::waiting();
    rig.begin(7);
    rig.feed(Input::NotStarted("no program".to_owned()));
    rig.drain_and_settle();
    rig.drain();
    rig.feed(heartbeat(8, Agenda::Nothing));
    assert_eq!(rig.drain(), [Output::Probe]);
    rig.feed(Input::Probed(Err("no program".to_owned())));
    rig.assert_ended(8, Outcome::Unavailable);
}

#[test]
fn an_order_to_cancel_or_to_end_comes_first() {
    let mut rig = Rig::waiting();
    let commands = vec![ordered(30, cancel_turn(7))];
    rig.feed(heartbeat_with(7, Agenda::Nothing, commands));
    rig.assert_ended(7, Outcome::Cancelled);
    let mut rig = Rig::waiting();
    rig.feed(Input::Drain);
    rig.drain();
    rig.feed(heartbeat(7, Agenda::Nothing));
    rig.assert_ended(7, Outcome::Drained);
}
