//! New conversations that start because continuing the old ones is a waste.

use hive_core::time_of_day::TimeOfDay;

use super::*;
use crate::turn::reset_rule::ResetRule;

/// A large conversation that has rested for longer than the cache lasts.
fn cold(checkpoint: bool) -> Rig {
    let mut rig = Rig::waiting();
    rig.configure(|settings| settings.defaults.watermarks.reset_checkpoint = checkpoint);
    rig.begin(7);
    rig.work(600);
    rig.pass(Duration::from_secs(3601));
    rig.feed(begun(8));
    rig
}

#[track_caller]
fn assert_launch(launch: &Launch, step: Step, continues: bool, resets: bool) {
    assert_eq!((launch.step, launch.continues, launch.resets), (step, continues, resets));
}

#[test]
fn a_cold_conversation_is_replaced_without_a_reading() {
    let mut rig = cold(false);
    assert_launch(&rig.launch(), Step::Work, false, true);
    rig.work(10);
    let launch = rig.begin(9);
    assert!(launch.continues && !launch.resets);
}

#[test]
fn a_warm_or_a_small_conversation_continues() {
    for (tokens, secs) in [(600, 3599), (499, 100_000)] {
        let mut rig = Rig::running();
        rig.work(tokens);
        rig.pass(Duration::from_secs(secs));
        assert!(rig.begin(8).continues, "{tokens} tokens after {secs} s");
    }
}

#[test]
fn the_broker_remembers_what_a_new_harness_does_not_know() {
    let mut rig = Rig::new();
    rig.drain();
    rig.now.wall = WallTime(4_000_000);
    rig.feed(attached(|agent| {
        (agent.context_tokens, agent.context_time) = (150_000, Some(WallTime(1000)));
    }));
    rig.feed(found(true));
    rig.drain();
    assert!(!rig.begin(7).continues);
}

#[test]
fn notes_before_it_are_a_setting() {
    let mut rig = cold(true);
    assert_launch(&rig.launch(), Step::Checkpoint, true, false);
    rig.succeed(610);
    let launch = rig.launch();
    assert_eq!(launch.turn_id, 8);
    assert_launch(&launch, Step::Work, false, true);
    rig.succeed(10);
    rig.settle();
}

#[test]
fn failed_notes_do_not_delay_the_message_but_an_outage_does() {
    let mut rig = cold(true);
    rig.launch();
    rig.overflow();
    assert_eq!(rig.launch().step, Step::Work);

    let mut rig = cold(true);
    rig.launch();
    rig.fail("rate_limit", 429);
    assert_eq!(rig.ending().outcome, Some(Outcome::RateLimited));
}

#[test]
fn a_retry_continues_the_new_conversation() {
    let mut rig = cold(false);
    rig.launch();
    rig.line(GOOD_INIT);
    rig.fail("authentication_failed", 401);
    let launch = rig.launch();
    assert!(launch.retry && launch.continues && !launch.resets);
}

#[test]
fn a_new_session_by_the_operator_is_no_reset() {
    let mut rig = Rig::running();
    rig.work(600);
    rig.pass(Duration::from_secs(3601));
    rig.feed(command(30, Order::StartNewSession));
    let launch = rig.begin(8);
    assert!(!launch.continues && !launch.resets);
}

#[test]
fn notes_that_do_not_fit_while_shutting_down_start_no_work() {
    let mut rig = cold(true);
    rig.launch();
    rig.feed(Input::Drain);
    rig.overflow();
    assert_eq!(rig.ending().outcome, Some(Outcome::Drained));
}

/// A machine whose rule ends a conversation after an hour of rest, or at 04:00 UTC.
fn ruled(daily_at: Option<&str>, idle_secs: Option<u64>, notes: bool) -> Rig {
    let mut rig = Rig::waiting();
    let daily_at = daily_at.and_then(TimeOfDay::parse);
    let idle = idle_secs.map(Duration::from_secs);
    let rule = ResetRule { daily_at, idle, notes, ..ResetRule::default() };
    rig.configure(|settings| settings.defaults.watermarks.reset_rule = rule);
    rig.begin(7);
    rig.work(10);
    rig
}

#[test]
fn a_rest_ends_a_small_conversation_when_the_next_mail_comes_and_not_before() {
    let mut rig = ruled(None, Some(3600), false);
    rig.pass(Duration::from_secs(3599));
    assert!(rig.begin(8).continues);
    rig.work(10);
    rig.pass(Duration::from_secs(7200));
    rig.feed(Input::Tick);
    assert_eq!(rig.drain(), [], "an agent without mail is left alone");
    assert_launch(&rig.begin(9), Step::Work, false, true);
    rig.work(10);
    assert!(rig.begin(10).continues, "the new conversation goes on");
}

#[test]
fn a_daily_reset_may_ask_for_notes_first() {
    let mut rig = ruled(Some("04:00"), None, true);
    // The clock of the rig began at 00:16:40.
    rig.pass(Duration::from_secs(3 * 3600));
    assert!(rig.begin(8).continues);
    rig.work(10);
    rig.pass(Duration::from_secs(3600));
    assert_launch(&rig.begin(9), Step::Checkpoint, true, false);
    rig.succeed(20);
    let launch = rig.launch();
    assert_eq!(launch.turn_id, 9);
    assert_launch(&launch, Step::Work, false, true);
}
