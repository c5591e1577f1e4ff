//! Tests of the states of a delivery.

use super::*;
use crate::turn::Outcome;

fn at(boot: i64) -> Now {
    Now { wall: WallTime(1_000_000 + boot), boot: BootTime(boot) }
}

fn leased(failures: u32) -> Progress {
    Progress { state: State::Leased, failures, cause: None, not_before: None }
}

#[test]
fn only_faults_use_attempts() {
    let limits = Limits::default();
    for outcome in [
        Outcome::RateLimited,
        Outcome::AuthFailed,
        Outcome::Unavailable,
        Outcome::Drained,
        Outcome::Fenced,
    ] {
        for _ in 0..100 {
            let after = leased(4).settle(outcome.settlement(true), at(0), &limits).expect("leased");
            assert_eq!(
                (after.state, after.failures, after.not_before),
                (State::Ready, 4, None),
                "{outcome:?}"
            );
        }
    }
    for outcome in [Outcome::Failed, Outcome::Vanished] {
        let after = leased(0).settle(outcome.settlement(true), at(0), &limits).expect("leased");
        assert_eq!(
            (after.state, after.failures, after.not_before),
            (State::Ready, 1, Some(BootTime(5_000)))
        );
    }
}

#[test]
fn the_fifth_failure_is_the_last() {
    let limits = Limits::default();
    let fourth = leased(3)
        .settle(Settlement::Fail(RedeliveryCause::TurnFailed), at(0), &limits)
        .expect("leased");
    assert_eq!((fourth.state, fourth.attempt(false)), (State::Ready, 4));
    let fifth = leased(4)
        .settle(Settlement::Fail(RedeliveryCause::TurnFailed), at(0), &limits)
        .expect("leased");
    assert_eq!((fifth.state, fifth.failures, fifth.not_before), (State::Dead, 5, None));
    assert_eq!(fifth.attempt(false), 5);
    let redriven = fifth.decide(Decision::Redrive).expect("dead");
    assert_eq!(redriven.attempt(false), 0);
}

#[test]
fn the_attempt_is_that_of_the_try_that_holds_the_delivery_or_held_it_last() {
    let limits = Limits::default();
    assert_eq!(Progress::new().attempt(false), 0);
    assert_eq!(Progress::new().decide(Decision::Ack).expect("ready").attempt(true), 0);
    assert_eq!(Progress::new().decide(Decision::Supersede).expect("ready").attempt(false), 0);
    for failures in 0..4 {
        let before = leased(failures);
        let number = failures + 1;
        assert_eq!(before.attempt(false), number);
        let settlements = [
            Settlement::Ack,
            Settlement::Hold,
            Settlement::FailForGood(RedeliveryCause::Nacked),
            Settlement::Fail(RedeliveryCause::TurnFailed),
            Settlement::Fail(RedeliveryCause::LeaseExpired),
            Settlement::GiveBack(RedeliveryCause::RateLimited),
            Settlement::GiveBack(RedeliveryCause::Drained),
            Settlement::GiveBack(RedeliveryCause::NotReceived),
        ];
        for settlement in settlements {
            let after = before.settle(settlement, at(0), &limits).expect("leased");
            assert_eq!(after.attempt(false), number, "{settlement:?}");
            for decision in [Decision::Ack, Decision::Drop] {
                if let Some(settled) = after.decide(decision) {
                    assert_eq!(settled.attempt(true), number, "{settlement:?} {decision:?}");
                }
            }
            if let Some(again) = after.lease(at(1_000_000)) {
                let counts = matches!(settlement, Settlement::Fail(_));
                assert_eq!(again.attempt(false), number + u32::from(counts), "{settlement:?}");
            }
        }
        for decision in [Decision::Ack, Decision::Drop] {
            assert_eq!(
                before.decide(decision).expect("leased").attempt(true),
                number,
                "{decision:?}"
            );
        }
    }
}

#[test]
fn a_delivery_in_backoff_is_not_leased() {
    let waiting = Progress { not_before: Some(BootTime(10)), ..Progress::new() };
    assert_eq!(waiting.lease(at(9)), None);
    assert_eq!(waiting.lease(at(10)).map(|leased| leased.state), Some(State::Leased));
}

#[test]
fn an_unseen_result_is_requeued_without_an_attempt() {
    assert_eq!(Outcome::Ok.settlement(true), Settlement::Ack);
    assert_eq!(Outcome::Ok.settlement(false), Settlement::GiveBack(RedeliveryCause::NotReceived));
}

#[test]
fn settled_is_final() {
    for state in [State::Acked, State::Dropped, State::Superseded] {
        let settled = Progress { state, ..Progress::new() };
        for decision in [
            Decision::Ack,
            Decision::Drop,
            Decision::Release,
            Decision::Redrive,
            Decision::Supersede,
        ] {
            assert_eq!(settled.decide(decision), None, "{state:?} {decision:?}");
        }
        assert_eq!(settled.lease(at(0)), None);
        assert_eq!(settled.settle(Settlement::Ack, at(0), &Limits::default()), None);
    }
}

#[test]
fn one_normal_delivery_after_eight_system_ones() {
    let mut run = 0;
    let mut served = Vec::new();
    for _ in 0..18 {
        let lane = next_lane(run);
        served.push(lane);
        run = system_run_after(run, lane);
    }
    assert_eq!(served.iter().filter(|lane| **lane == Lane::Normal).count(), 2);
    assert_eq!(served[8], Lane::Normal);
    assert_eq!(served[17], Lane::Normal);
}
