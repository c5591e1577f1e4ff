//! Agents that run on demand: their harness asks after a rest whether it may end.

use super::*;
use crate::turn::input::{LeaveAnswer, LoginWanted, Terminal};

/// The time without work after which the harness asks.
const REST: Duration = Duration::from_secs(300);
const LEFT: Input = Input::LeaveAnswered(LeaveAnswer::Left);
const STAYS: Input = Input::LeaveAnswered(LeaveAnswer::Stays);

/// A new session of an agent that differs from [`bob`] in this.
fn session(differ: impl FnOnce(&mut Agent)) -> Input {
    let mut agent = bob();
    differ(&mut agent);
    let facts = Attachment { agent: Some(agent), leave_after: Some(REST), ..Attachment::default() };
    Input::Attached(Box::new(facts))
}

fn on_demand() -> Input {
    session(|agent| agent.on_demand = true)
}

fn changed(on_demand: bool) -> Input {
    Input::AgentChanged(Box::new(Agent { on_demand, ..bob() }))
}

fn lost() -> Input {
    Input::Fenced("SESSION_LOST".into())
}

/// Waits for a turn in this session.
fn waiting_in(session: Input) -> Rig {
    let mut rig = Rig::new();
    rig.drain();
    rig.feed(session);
    rig.drain();
    rig.feed(found(true));
    assert_eq!(rig.drain(), [IDLE, Output::Begin]);
    rig
}

fn resting() -> Rig {
    waiting_in(on_demand())
}

/// The question is open.
fn asking() -> Rig {
    let mut rig = resting();
    assert_asks_after_a_rest(&mut rig);
    rig
}

/// Asserts that the machine asks after the whole rest, and not before.
#[track_caller]
fn assert_asks_after_a_rest(rig: &mut Rig) {
    rig.pass(REST - Duration::from_millis(1));
    assert_eq!(rig.drain(), []);
    rig.sleep();
    assert_eq!(rig.drain(), [Output::AskToLeave]);
}

#[track_caller]
fn assert_never_asks(rig: &mut Rig) {
    assert_eq!(rig.machine.deadline(), None);
    rig.pass(10 * REST);
    assert_eq!(rig.drain(), []);
}

#[test]
fn a_harness_without_work_asks_after_the_rest_and_ends_when_it_has_left() {
    let mut rig = asking();
    assert_never_asks(&mut rig);
    rig.feed(LEFT);
    assert_eq!(rig.drain(), [Output::Exit(Leaving::NoWork)]);
    rig.feed(lost());
    assert_eq!((rig.drain(), rig.machine.deadline()), (vec![], None));
}

#[test]
fn a_harness_that_is_needed_waits_the_whole_rest_again() {
    let mut rig = asking();
    for _ in 0..2 {
        rig.pass(REST / 2);
        rig.feed(STAYS);
        assert_eq!(rig.drain(), []);
        assert_asks_after_a_rest(&mut rig);
    }
}

#[test]
fn a_turn_begins_the_rest_again() {
    let mut rig = resting();
    rig.pass(REST / 2);
    rig.begin(7);
    assert!(rig.machine.deadline().is_some_and(|due| due < rig.now.boot.after(REST)));
    rig.line(GOOD_INIT);
    rig.finish();
    rig.settle();
    rig.drain();
    assert_asks_after_a_rest(&mut rig);
}

#[test]
fn only_an_agent_on_demand_that_is_not_stopped_leaves() {
    assert_never_asks(&mut waiting_in(session(|_| {})));
    // The broker has not set the rest.
    assert_never_asks(&mut waiting_in(attached(|agent| agent.on_demand = true)));

    let mut rig = Rig::new();
    rig.drain();
    rig.feed(session(|agent| (agent.on_demand, agent.stopped) = (true, true)));
    assert_never_asks(&mut rig);
}

#[test]
fn a_change_of_the_agent_takes_effect_at_once() {
    let mut rig = waiting_in(session(|_| {}));
    rig.pass(REST);
    rig.feed(changed(true));
    rig.pass(REST / 2);
    rig.feed(changed(true));
    rig.pass(REST / 2 - Duration::from_millis(1));
    assert_eq!(rig.drain(), []);
    rig.feed(changed(false));
    assert_never_asks(&mut rig);
    rig.feed(changed(true));
    assert_asks_after_a_rest(&mut rig);
    // The broker may have ended the session before the change.
    rig.feed(changed(false));
    rig.feed(LEFT);
    assert_eq!(rig.drain(), [Output::Exit(Leaving::NoWork)]);
}

#[test]
fn a_shell_task_keeps_its_harness() {
    let mut rig = resting();
    rig.pass(REST / 2);
    rig.feed(Input::TasksRun(true));
    assert_never_asks(&mut rig);
    rig.feed(Input::TasksRun(false));
    assert_asks_after_a_rest(&mut rig);
}

#[test]
fn an_order_that_waits_for_a_turn_keeps_the_harness() {
    for order in [Order::StartNewSession, cancel_turn(9)] {
        let mut rig = resting();
        rig.feed(command(30, order));
        assert_never_asks(&mut rig);
    }
    // A command that is carried out at once keeps it for no longer.
    let mut rig = resting();
    rig.feed(command(30, Order::SetModel("opus".into())));
    rig.drain();
    assert_asks_after_a_rest(&mut rig);
}

#[test]
fn a_harness_that_waits_for_a_login_stays() {
    let mut rig = Rig::new();
    rig.feed(on_demand());
    rig.feed(found(false));
    rig.drain();
    assert_never_asks(&mut rig);
    rig.feed(Input::LoggedIn);
    rig.drain();
    assert_asks_after_a_rest(&mut rig);

    let mut rig = resting();
    let wanted = LoginWanted { login_id: 5, terminal: Terminal::default() };
    rig.feed(Input::LoginWanted(wanted));
    rig.drain();
    assert_never_asks(&mut rig);
    rig.feed(Input::LoginEnded(true));
    rig.feed(found(true));
    rig.drain();
    assert_asks_after_a_rest(&mut rig);
}

#[test]
fn a_park_for_another_cause_does_not_keep_the_harness() {
    let mut rig = resting();
    rig.begin(7);
    rig.fail("rate_limit", 429);
    rig.drain();
    rig.feed(parked(Outcome::RateLimited, Some(3600), rig.now));
    rig.drain();
    assert_asks_after_a_rest(&mut rig);
}

#[test]
fn a_session_that_is_lost_before_the_answer_may_have_been_left() {
    let mut rig = asking();
    // The wait for a turn and the stream both end.
    rig.feed(lost());
    rig.feed(lost());
    rig.feed(Input::Refused("TURN_OPEN".into()));
    assert_never_asks(&mut rig);
    rig.feed(LEFT);
    assert_eq!(rig.drain(), [Output::Exit(Leaving::NoWork)]);
}

#[test]
fn a_session_that_is_lost_for_another_reason_is_replaced_after_the_answer() {
    for (loss, answer) in [
        (lost(), LeaveAnswer::Stays),
        (lost(), LeaveAnswer::Unserved),
        (Input::Refused("TURN_OPEN".into()), LeaveAnswer::Stays),
    ] {
        let mut rig = asking();
        rig.feed(loss);
        assert_eq!(rig.drain(), []);
        rig.feed(Input::LeaveAnswered(answer));
        assert_eq!(rig.drain(), [Output::Attach]);
        rig.feed(on_demand());
        assert_eq!(rig.drain(), [Output::Begin]);
    }
}

#[test]
fn a_loss_without_a_question_is_repaired_as_always() {
    let mut rig = asking();
    rig.feed(STAYS);
    rig.feed(lost());
    assert_eq!(rig.drain(), [Output::Attach]);
}

#[test]
fn a_question_ends_with_its_session() {
    // The stream broke, and was opened again after the session had ended.
    for is_known in [false, true] {
        let mut rig = asking();
        if is_known {
            rig.feed(lost());
        }
        rig.feed(on_demand());
        assert_eq!(rig.drain(), [Output::Begin]);
        rig.feed(LEFT);
        assert_eq!(rig.drain(), []);
        assert_asks_after_a_rest(&mut rig);
    }
    let mut rig = asking();
    let agent = Some(Agent { on_demand: true, ..bob() });
    let facts = Attachment { resumed: true, agent, leave_after: Some(REST), ..facts() };
    rig.feed(Input::Attached(Box::new(facts)));
    rig.feed(LEFT);
    assert_eq!(rig.drain(), [Output::Exit(Leaving::NoWork)], "the same session continued");
}

#[test]
fn a_turn_that_begins_before_the_answer_is_run() {
    for answer in [STAYS, LEFT] {
        let mut rig = asking();
        rig.begin(7);
        rig.line(GOOD_INIT);
        rig.feed(answer);
        rig.finish();
        rig.settle();
        assert_eq!(rig.drain(), [IDLE, Output::Begin]);
        assert_asks_after_a_rest(&mut rig);
    }
}

#[test]
fn a_session_that_is_lost_during_a_turn_is_replaced_although_it_was_asked_before() {
    let mut rig = asking();
    rig.begin(7);
    rig.feed(lost());
    assert_eq!(rig.drain(), [Output::Signal(Signal::Kill)]);
    rig.feed(Input::Exited(Exit::Signal(9)));
    assert_eq!(rig.drain(), [Output::Attach]);
}

#[test]
fn an_order_that_comes_before_the_answer_is_not_lost_with_the_session() {
    let mut rig = asking();
    rig.feed(command(30, Order::CompactSession));
    assert_eq!(rig.drain(), [Output::Open(Kind::Compact)]);
    // The broker keeps the command open for the next harness.
    rig.feed(lost());
    rig.feed(LEFT);
    assert_eq!(rig.drain(), [Output::Exit(Leaving::NoWork)]);

    let mut rig = asking();
    rig.feed(command(30, Order::CompactSession));
    rig.drain();
    rig.open(8);
    rig.feed(STAYS);
    assert_eq!(rig.drain(), []);
}

#[test]
fn a_drain_before_the_answer_ends_the_harness_as_usual() {
    const DRAINED: Output = Output::Exit(Leaving::Drained);
    let asked_and_drained = || {
        let mut rig = asking();
        rig.feed(Input::Drain);
        assert_eq!(rig.drain(), [Output::Leave]);
        rig
    };
    for answer in [LEFT, lost(), Input::Left(Vec::new())] {
        let mut rig = asked_and_drained();
        rig.feed(answer);
        assert_eq!(rig.drain(), [DRAINED]);
    }
    let mut rig = asked_and_drained();
    rig.feed(STAYS);
    assert_eq!(rig.drain(), []);
    rig.sleep();
    assert_eq!(rig.drain(), [DRAINED], "the broker does not answer");

    let mut rig = asking();
    rig.feed(lost());
    rig.feed(Input::Drain);
    assert_eq!(rig.drain(), [DRAINED]);
}

#[test]
fn a_stop_before_the_answer_restarts_the_harness() {
    let mut rig = asking();
    rig.feed(Input::AgentChanged(Box::new(Agent { on_demand: true, stopped: true, ..bob() })));
    assert_eq!(rig.drain(), [Output::Leave]);
    rig.feed(LEFT);
    assert_eq!(rig.drain(), [Output::Exit(Leaving::Restart)]);
}

#[test]
fn an_older_broker_is_asked_once() {
    let mut rig = asking();
    rig.feed(Input::LeaveAnswered(LeaveAnswer::Unserved));
    assert_never_asks(&mut rig);
    rig.begin(7);
    rig.line(GOOD_INIT);
    rig.finish();
    rig.settle();
    rig.drain();
    assert_never_asks(&mut rig);

    let mut rig = asking();
    rig.begin(7);
    rig.feed(Input::LeaveAnswered(LeaveAnswer::Unserved));
    rig.line(GOOD_INIT);
    rig.finish();
    rig.settle();
    rig.drain();
    assert_never_asks(&mut rig);
}

#[test]
fn a_broker_that_sets_no_rest_is_not_asked_in_a_loop() {
    let agent = Some(Agent { on_demand: true, ..bob() });
    let session = Attachment { agent, leave_after: Some(Duration::ZERO), ..Attachment::default() };
    let mut rig = waiting_in(Input::Attached(Box::new(session)));
    for _ in 0..2 {
        let before = rig.now.boot;
        rig.sleep();
        assert_eq!(rig.drain(), [Output::AskToLeave]);
        assert!(rig.now.boot.since(before) >= Duration::from_millis(100));
        rig.feed(STAYS);
        assert_eq!(rig.drain(), []);
    }
}
