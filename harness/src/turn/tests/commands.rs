//! Commands of the operator, and shutting down.

use super::*;

fn cancel(id: u64, turn_id: u64) -> Input {
    command(id, cancel_turn(turn_id))
}

#[test]
fn a_cancel_ends_exactly_its_turn_and_is_closed_after_the_end() {
    let mut rig = Rig::running();
    rig.feed(cancel(30, 6));
    assert_eq!(rig.drain(), [Output::Ack(30, "turn 6 is not running".into())]);
    rig.feed(cancel(31, 7));
    rig.feed(cancel(31, 7));
    assert_eq!(rig.drain(), [Output::Signal(Signal::Interrupt)]);
    rig.exit(0);
    rig.settle_as(Outcome::Cancelled);
    assert_eq!(rig.drain(), [Output::Ack(31, String::new()), IDLE, Output::Begin]);
    // A lost stream shows it again.
    rig.feed(cancel(31, 7));
    assert_eq!(rig.drain(), [Output::Ack(31, String::new())]);
}

#[test]
fn a_late_cancel_is_closed_with_an_error() {
    let mut rig = Rig::running();
    rig.feed(cancel(31, 7));
    rig.finish();
    rig.drain_and_settle();
    assert_eq!(rig.drain()[0], Output::Ack(31, "turn 7 had ended already".into()));
}

#[test]
fn a_cancel_may_overtake_its_turn() {
    let mut rig = Rig::waiting();
    rig.feed(cancel(31, 7));
    assert_eq!(rig.drain(), []);
    rig.feed(begun(7));
    rig.settle_as(Outcome::Cancelled);
    assert!(rig.drain().contains(&Output::Ack(31, String::new())));
}

#[test]
fn a_new_session_drops_continue_for_one_turn_and_is_closed_when_it_has_begun() {
    let mut rig = Rig::running();
    rig.feed(command(30, Order::StartNewSession));
    rig.finish();
    rig.drain_and_settle();
    assert!(!rig.drain().iter().any(|output| matches!(output, Output::Ack(..))));
    assert!(!rig.begin(8).continues);
    // The turn did not create a new conversation, so the next turn tries again.
    rig.exit(1);
    rig.drain_and_settle();
    rig.drain();
    assert!(!rig.begin(9).continues);
    rig.line(GOOD_INIT);
    assert_eq!(rig.drain(), [Output::Ack(30, String::new())]);
    // The retry after a failed login continues with it.
    rig.fail("authentication_failed", 401);
    assert!(rig.launch().continues);
}

#[test]
fn another_model_is_used_from_the_next_turn_on() {
    let mut rig = Rig::waiting();
    rig.feed(command(30, Order::SetModel("opus".into())));
    assert_eq!(rig.drain(), [Output::Ack(30, String::new())]);
    assert_eq!(rig.begin(7).model, "opus");
}

#[test]
fn a_restart_drains_the_turn_and_then_restarts() {
    let mut rig = Rig::running();
    rig.feed(command(30, Order::RestartHarness));
    assert_eq!(rig.drain(), [Output::Signal(Signal::Interrupt)]);
    rig.exit(0);
    rig.settle_as(Outcome::Drained);
    assert_eq!(rig.drain(), [Output::Ack(30, String::new()), Output::Exit(Leaving::Restart)]);
}

#[test]
fn a_restart_of_an_idle_harness_leaves_first() {
    let mut rig = Rig::waiting();
    rig.feed(command(30, Order::RestartHarness));
    assert_eq!(rig.drain(), [Output::Leave]);
    rig.feed(Input::Left(Vec::new()));
    assert_eq!(rig.drain(), [Output::Ack(30, String::new()), Output::Exit(Leaving::Restart)]);
}

#[test]
fn a_drain_lets_a_turn_end_within_its_grace() {
    let mut rig = Rig::running();
    rig.feed(Input::Drain);
    assert_eq!(rig.drain(), []);
    rig.finish();
    assert_eq!(rig.ending().outcome, Some(Outcome::Ok));
    rig.feed(Input::Ended(EndTurnAnswer { next_turn_requested: true, ..EndTurnAnswer::default() }));
    assert_eq!(rig.drain(), [Output::Exit(Leaving::Drained)]);
}

#[test]
fn a_drain_ends_a_turn_after_its_grace() {
    let mut rig = Rig::running();
    rig.feed(Input::Drain);
    rig.pass(Duration::from_secs(19));
    assert_eq!(rig.drain(), []);
    rig.sleep();
    assert_eq!(rig.drain(), [Output::Signal(Signal::Interrupt)]);
    rig.exit(0);
    rig.settle_as(Outcome::Drained);
    assert_eq!(rig.drain(), [Output::Exit(Leaving::Drained)]);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut rig = Rig::running();
    rig.feed(Input::Drain);
    rig.feed(Input::Drain);
    assert_eq!(rig.drain(), [Output::Signal(Signal::Kill)]);
    rig.feed(Input::Exited(Exit::Signal(9)));
    assert_eq!(rig.ending().outcome, Some(Outcome::Drained));
}

#[test]
fn an_idle_harness_leaves_without_a_turn_behind_it() {
    let mut rig = Rig::waiting();
    rig.feed(Input::Drain);
    assert_eq!(rig.drain(), [Output::Leave]);
    rig.feed(Input::Left(vec![9]));
    rig.assert_ended(9, Outcome::Drained);
    rig.feed(Input::Ended(EndTurnAnswer::default()));
    assert_eq!(rig.drain(), [Output::Exit(Leaving::Drained)]);
}

#[test]
fn a_turn_that_begins_while_leaving_is_drained_without_a_run() {
    let mut rig = Rig::waiting();
    rig.feed(Input::Drain);
    rig.feed(begun(7));
    rig.assert_ended(7, Outcome::Drained);
}

#[test]
fn a_broker_that_does_not_answer_delays_no_shutdown() {
    let mut rig = Rig::waiting();
    rig.feed(Input::Drain);
    rig.drain();
    rig.sleep();
    assert_eq!(rig.drain(), [Output::Exit(Leaving::Drained)]);

    let mut rig = Rig::running();
    rig.feed(Input::Drain);
    rig.exit(0);
    rig.drain();
    rig.sleep();
    assert_eq!(rig.drain(), [Output::Exit(Leaving::Unanswered)]);
}

#[test]
fn a_turn_that_was_not_run_does_not_stay_the_shown_state() {
    // The broker shows a turn as soon as it opens one.
    let mut rig = Rig::waiting();
    rig.feed(cancel(31, 7));
    rig.feed(begun(7));
    rig.drain_and_settle();
    assert!(rig.drain().contains(&IDLE));
}

#[test]
fn a_command_that_was_given_before_a_turn_holds_for_it_although_its_stream_is_slower() {
    let with = |order: Order| begun_with(7, vec![ordered(30, order)]);
    let mut rig = Rig::waiting();
    rig.feed(with(Order::StartNewSession));
    assert!(!rig.launch().continues);
    // Then the command arrives by the stream, too.
    rig.feed(command(30, Order::StartNewSession));
    rig.line(GOOD_INIT);
    assert_eq!(rig.drain(), [Output::Ack(30, String::new())]);

    let mut rig = Rig::waiting();
    rig.feed(with(Order::SetModel("opus".into())));
    assert_eq!(rig.launch().model, "opus");

    let mut rig = Rig::waiting();
    rig.feed(with(Order::CompactSession));
    rig.launch();
    rig.succeed(1);
    rig.settle_into(Kind::Compact);

    let mut rig = Rig::waiting();
    rig.feed(with(cancel_turn(7)));
    assert_eq!(rig.ending().outcome, Some(Outcome::Cancelled));

    let mut rig = Rig::waiting();
    rig.feed(with(Order::RestartHarness));
    rig.settle_as(Outcome::Drained);
    assert_eq!(rig.drain(), [Output::Ack(30, String::new()), Output::Exit(Leaving::Restart)]);
}

fn stopped(stopped: bool) -> Input {
    let agent = Agent { stopped, ..bob() };
    Input::AgentChanged(Box::new(agent))
}

#[test]
fn a_stopped_agent_waits_without_looking_at_the_cli_and_starts_when_it_is_started() {
    let mut rig = Rig::new();
    assert_eq!(rig.drain(), [Output::Attach]);
    rig.feed(attached(|agent| agent.stopped = true));
    assert_eq!(rig.drain(), []);
    assert_eq!(rig.machine.deadline(), None);
    rig.feed(stopped(false));
    assert_eq!(rig.drain(), [STARTING, Output::Probe]);
}

#[test]
fn stopping_an_idle_agent_restarts_its_harness_at_once() {
    let mut rig = Rig::waiting();
    rig.feed(stopped(true));
    assert_eq!(rig.drain(), [Output::Leave]);
    rig.feed(Input::Left(Vec::new()));
    assert_eq!(rig.drain(), [Output::Exit(Leaving::Restart)]);
}

#[test]
fn stopping_drains_the_running_turn_after_its_grace() {
    let mut rig = Rig::running();
    rig.feed(stopped(true));
    assert_eq!(rig.drain(), []);
    rig.pass(Duration::from_secs(20));
    assert_eq!(rig.drain(), [Output::Signal(Signal::Interrupt)]);
    rig.exit(0);
    rig.settle_as(Outcome::Drained);
    assert!(rig.drain().contains(&Output::Exit(Leaving::Restart)));
}

#[test]
fn a_shutdown_of_a_harness_that_stops_ends_it_for_good() {
    let mut rig = Rig::running();
    rig.feed(stopped(true));
    rig.feed(Input::Drain);
    rig.finish();
    rig.drain_and_settle();
    assert!(rig.drain().contains(&Output::Exit(Leaving::Drained)));
}

#[test]
fn a_stopped_harness_ends_on_a_shutdown_and_attaches_again_after_a_lost_session() {
    for (input, wanted) in [
        (Input::Drain, Output::Exit(Leaving::Drained)),
        (Input::Fenced("gone".into()), Output::Attach),
    ] {
        let mut rig = Rig::new();
        rig.drain();
        rig.feed(attached(|agent| agent.stopped = true));
        rig.feed(input);
        assert_eq!(rig.drain(), [wanted]);
    }
}
