//! Logins: missing at the start, waited for, and made by an operator.

use super::*;
use crate::turn::input::{LoginWanted, Terminal};

fn wanted() -> LoginWanted {
    wanted_as(5)
}

fn wanted_as(login_id: u64) -> LoginWanted {
    LoginWanted { login_id, terminal: Terminal::default() }
}

fn hold_dialogue(rig: &mut Rig) {
    rig.feed(Input::LoginWanted(wanted()));
    rig.drain();
}

fn end_dialogue(rig: &mut Rig) {
    rig.feed(Input::LoginEnded(true));
    rig.drain();
}

#[track_caller]
fn assert_refused(rig: &mut Rig, says: &str) {
    let outputs = rig.drain();
    let is_refused =
        matches!(&outputs[..], [Output::RefuseLogin(_, reason)] if reason.contains(says));
    assert!(is_refused, "{outputs:?}");
}

fn park_until_login() -> park::View {
    let cause = Outcome::AuthFailed;
    park::View { cause, until: None, remaining: None, error: String::new() }
}

/// A login was refused in a turn, twice; the broker waits for another.
fn refused() -> Rig {
    let mut rig = Rig::running();
    rig.fail_login_twice();
    rig.drain();
    rig.feed(parked(Outcome::AuthFailed, None, rig.now));
    assert!(rig.drain().contains(&NEEDS_LOGIN));
    rig
}

fn without_login() -> Rig {
    let mut rig = Rig::starting();
    rig.feed(found(false));
    assert_eq!(rig.drain(), [Output::WatchLogin, NEEDS_LOGIN, Output::Begin]);
    rig
}

#[test]
fn a_harness_that_starts_without_a_login_reports_that_and_waits() {
    let mut rig = without_login();
    rig.feed(Input::LoggedIn);
    assert_eq!(rig.drain(), [IDLE]);
    rig.begin(7);
}

#[test]
fn a_login_that_was_made_while_no_harness_ran_ends_the_wait() {
    let mut rig = Rig::new();
    rig.drain();
    rig.feed(attached(|agent| agent.park = Some(park_until_login())));
    rig.feed(found(true));
    assert!(rig.drain().contains(&IDLE));
}

#[test]
fn a_probe_follows_the_operators_dialogue() {
    let mut rig = without_login();
    rig.feed(Input::LoginWanted(wanted()));
    assert_eq!(rig.drain(), [Output::Login(wanted())]);
    // A stream that was opened again shows it again.
    rig.feed(Input::LoginWanted(wanted()));
    assert_eq!(rig.drain(), []);
    rig.feed(Input::LoginWanted(wanted_as(6)));
    assert_refused(&mut rig, "another");
    rig.feed(Input::LoginEnded(true));
    assert_eq!(rig.drain(), [Output::Probe]);
    rig.feed(found(true));
    assert_eq!(rig.drain(), [IDLE]);
}

#[test]
fn a_dialogue_without_a_login_restarts_the_watch() {
    let mut rig = without_login();
    hold_dialogue(&mut rig);
    end_dialogue(&mut rig);
    rig.feed(found(false));
    assert_eq!(rig.drain(), [Output::WatchLogin]);
}

#[test]
fn a_turn_that_comes_during_the_dialogue_waits_for_it() {
    let mut rig = Rig::waiting();
    hold_dialogue(&mut rig);
    rig.feed(begun(7));
    assert_eq!(rig.drain(), []);
    end_dialogue(&mut rig);
    rig.feed(found(true));
    assert_eq!(rig.launch().turn_id, 7);
}

#[test]
fn no_dialogue_while_a_turn_runs() {
    let mut rig = Rig::running();
    rig.feed(Input::LoginWanted(wanted()));
    assert_refused(&mut rig, "turn runs");
}

#[test]
fn a_login_that_went_away_is_seen_before_a_turn_costs_anything() {
    let mut rig = Rig::waiting();
    rig.begin(7);
    rig.feed(Input::NotStarted("no such file".into()));
    rig.drain_and_settle();
    rig.drain();
    rig.feed(begun(8));
    rig.drain();
    rig.feed(found(false));
    rig.assert_ended(8, Outcome::AuthFailed);
}

#[test]
fn a_dialogue_that_is_broken_off_proves_no_login() {
    let mut rig = refused();
    hold_dialogue(&mut rig);
    rig.feed(Input::LoginEnded(false));
    // claude would say that it has one: the one that was refused.
    assert_eq!(rig.drain(), [Output::WatchLogin]);
}

#[test]
fn a_new_session_does_not_forget_that_a_login_is_waited_for() {
    let mut rig = refused();
    rig.feed(Input::Fenced("taken over".into()));
    rig.drain();
    rig.feed(attached(|agent| agent.park = Some(park_until_login())));
    assert!(!rig.drain().contains(&IDLE));
}

#[test]
fn after_a_compaction_by_order_the_login_is_waited_for_as_before() {
    let mut rig = refused();
    rig.feed(command(30, Order::CompactSession));
    rig.drain();
    rig.open(8);
    rig.compacted(Err("Not enough messages to compact."));
    rig.drain();
    rig.feed(parked(Outcome::AuthFailed, None, rig.now));
    let outputs = rig.drain();
    assert!(outputs.contains(&Output::WatchLogin) && outputs.contains(&NEEDS_LOGIN), "{outputs:?}");
}

#[test]
fn a_probe_from_before_the_dialogue_is_repeated() {
    let mut rig = Rig::starting();
    rig.feed(Input::LoginWanted(wanted()));
    end_dialogue(&mut rig);
    rig.feed(found(false));
    assert_eq!(rig.drain(), [Output::Probe]);
    rig.feed(found(true));
    assert_eq!(rig.drain(), [IDLE, Output::Begin]);
}

#[test]
fn no_turn_starts_during_a_dialogue_or_a_probe() {
    let mut rig = Rig::waiting();
    rig.feed(Input::LoginWanted(wanted()));
    end_dialogue(&mut rig);
    rig.feed(begun(7));
    assert_eq!(rig.drain(), []);
    rig.feed(found(true));
    assert_eq!(rig.launch().turn_id, 7);

    let mut rig = Rig::waiting();
    rig.feed(Input::LoginWanted(wanted()));
    rig.feed(Input::LoginEnded(true));
    rig.feed(Input::LoginWanted(wanted_as(6)));
    rig.feed(begun(7));
    rig.drain();
    rig.feed(found(true));
    assert_eq!(rig.drain(), []);
    end_dialogue(&mut rig);
    rig.feed(found(true));
    assert_eq!(rig.launch().turn_id, 7);
}
