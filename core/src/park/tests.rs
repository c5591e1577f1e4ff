//! The rules of parks as tables.

use super::*;

const NOW: Now = Now { wall: WallTime(1_000_000), boot: BootTime(5_000) };

/// A boot time this many seconds from now.
fn in_seconds(seconds: u64) -> Option<BootTime> {
    Some(NOW.boot.after(Duration::from_secs(seconds)))
}

fn failed(failures: u32, park: Option<Park>) -> Change {
    Change::Failed { failures, park }
}

#[test]
fn each_end_of_a_turn_has_its_park() {
    let until = |wall, boot| Some(Park::Until { wall, boot });
    let login = Some(Park::Login { wall: None, boot: None });
    let limit = Some(WallTime(9_000_000));
    let limited = Ended { retry_time: limit, ..Ended::new(Outcome::RateLimited) };
    let mail = |outcome| (Kind::Mail, Ended::new(outcome), false);
    let dead = |outcome| (Kind::Mail, Ended::new(outcome), true);
    let of = |kind, outcome, compacted| (kind, Ended { compacted, ..Ended::new(outcome) }, false);
    for ((kind, ended, has_dead_letter), failures, wanted) in [
        (mail(Outcome::Ok), 7, Change::Runs),
        (of(Kind::Compact, Outcome::Ok, true), 7, Change::Runs),
        (of(Kind::Compact, Outcome::Ok, false), 7, Change::Nothing),
        (of(Kind::Checkpoint, Outcome::Ok, false), 7, Change::Runs),
        (mail(Outcome::Cancelled), 7, Change::Nothing),
        (mail(Outcome::Drained), 7, Change::Nothing),
        (mail(Outcome::Fenced), 7, Change::Nothing),
        (mail(Outcome::AuthFailed), 0, failed(1, login)),
        (of(Kind::Compact, Outcome::AuthFailed, false), 1, failed(2, login)),
        (mail(Outcome::Unavailable), 0, failed(1, until(None, in_seconds(10)))),
        (mail(Outcome::Unavailable), 2, failed(3, until(None, in_seconds(40)))),
        (mail(Outcome::Unavailable), u32::MAX, failed(u32::MAX, until(None, in_seconds(600)))),
        (dead(Outcome::Unavailable), 2, failed(0, until(None, in_seconds(40)))),
        (mail(Outcome::RateLimited), 4, failed(5, until(None, in_seconds(300)))),
        ((Kind::Mail, limited.clone(), false), 0, failed(1, until(limit, None))),
        ((Kind::Mail, limited, false), 2, failed(3, until(limit, in_seconds(20)))),
        (mail(Outcome::Failed), 0, failed(1, None)),
        (mail(Outcome::Failed), 1, failed(2, None)),
        (mail(Outcome::Failed), 2, failed(3, until(None, in_seconds(10)))),
        (mail(Outcome::Vanished), 3, failed(4, until(None, in_seconds(20)))),
        (dead(Outcome::Failed), 5, failed(0, None)),
        (of(Kind::Checkpoint, Outcome::Failed, false), 5, Change::Nothing),
        (of(Kind::Compact, Outcome::Failed, false), 5, Change::Nothing),
        (of(Kind::Compact, Outcome::Vanished, false), 2, failed(3, until(None, in_seconds(10)))),
    ] {
        let change = after_turn(kind, &ended, has_dead_letter, failures, &Limits::default(), NOW);
        assert_eq!(change, wanted, "{kind:?} {has_dead_letter} {failures} {ended:?}");
    }
}

#[test]
fn a_park_holds_until_both_clocks_have_passed_its_times() {
    let (wall, boot) = (WallTime(1_000_500), BootTime(6_000));
    let until = |wall, boot| Park::Until { wall, boot };
    for (park, at_once, after_wall, after_boot) in [
        (until(None, None), false, false, false),
        (until(Some(wall), None), true, false, true),
        (until(None, Some(boot)), true, true, false),
        (until(Some(wall), Some(boot)), true, true, true),
        (Park::Login { wall: None, boot: None }, true, true, true),
        (Park::Login { wall: None, boot: Some(boot) }, true, true, false),
    ] {
        let found = [NOW, Now { wall, ..NOW }, Now { boot, ..NOW }].map(|now| park.holds(now));
        assert_eq!(found, [at_once, after_wall, after_boot], "{park:?}");
        let limited = park.times() != (None, None);
        assert_eq!((park.until(NOW).is_some(), park.due(NOW).is_some()), (limited, limited));
    }
    assert_eq!(until(Some(wall), None).due(NOW), Some(BootTime(5_500)));
    let far = until(Some(NOW.wall.after(Duration::from_secs(3600))), None);
    assert_eq!(far.due(NOW), in_seconds(60), "a wall clock may be set");
}

#[test]
fn a_login_ends_its_park_whether_that_has_a_time_limit_or_not() {
    use HarnessState as H;
    let other = Park::Until { wall: None, boot: in_seconds(10) };
    let all = [
        H::Offline,
        H::Starting,
        H::Idle,
        H::Thinking,
        H::Compacting,
        H::RateLimited,
        H::NeedsLogin,
        H::Unavailable,
        H::Stopped,
    ];
    for boot in [None, in_seconds(10)] {
        let login = Park::Login { wall: None, boot };
        for state in all {
            let wanted = match state {
                H::Idle => Reported::LoggedIn,
                H::RateLimited | H::Unavailable => Reported::OtherTrouble,
                H::Offline
                | H::Starting
                | H::Thinking
                | H::Compacting
                | H::NeedsLogin
                | H::Stopped => Reported::Nothing,
            };
            assert_eq!(after_report(Some(&login), state, NOW), wanted, "{boot:?} {state:?}");
        }
    }
    for state in all {
        let wanted = if state == H::NeedsLogin { Reported::NeedsLogin } else { Reported::Nothing };
        for park in [None, Some(&other), Some(&Park::Login { wall: None, boot: Some(NOW.boot) })] {
            assert_eq!(after_report(park, state, NOW), wanted, "{park:?} {state:?}");
        }
    }
}

#[test]
fn a_view_has_the_wall_time_of_the_end_and_what_remains() {
    let park = Park::new(Outcome::Unavailable, None, in_seconds(7));
    let parked = Parked { cause: Outcome::Unavailable, park, error: "no network".to_owned() };
    let seven = Duration::from_secs(7);
    let view = parked.view(NOW);
    assert_eq!((view.until, view.remaining), (Some(NOW.wall.after(seven)), Some(seven)));
    let past = parked.view(Now { boot: BootTime(100_000), ..NOW });
    assert_eq!(past.remaining, Some(Duration::ZERO));
    let login = Parked { park: Park::new(Outcome::AuthFailed, None, None), ..parked };
    assert_eq!((login.view(NOW).until, login.view(NOW).remaining), (None, None));
}
