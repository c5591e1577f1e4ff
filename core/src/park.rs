//! Parks: why an agent starts no turns for now, and what ends that.
//!
//! The broker decides; a harness shows the park and obeys it. Invariant: the rules are pure and
//! total, and all are in this file: which end of a turn parks ([`after_turn`]), what a report of
//! the harness changes ([`after_report`]), how long a park holds ([`Park::holds`]), and the state
//! that it shows ([`state_of`]). Two
//! facts are elsewhere: a reboot ends parks by the boot clock (the store, when it opens), and an
//! ordered compaction runs while parked (the engine's turns).

use std::time::Duration;

use crate::agent::HarnessState;
use crate::limits::Limits;
use crate::time::{BootTime, Now, WallTime};
use crate::turn::{Ended, Kind, Outcome};

/// Length of a park after a failed login; `None`: until claude has a login.
pub const LOGIN_PARK: Option<Duration> = None;
/// Maximum delay until a wall clock that was set forward is noticed.
const WALL_CHECK_MAX: Duration = Duration::from_secs(60);
/// Maximum consecutive failed turns before they park the agent: each failed delivery has its own
/// backoff.
const FAILED_MAX: u32 = 2;

/// The duration of a park. A boot time bounds the rate of retries; a wall time is the end of
/// a limit that the model stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Park {
    /// Until claude has a login; at most until both times have passed, if there is one.
    Login {
        /// By the wall clock.
        wall: Option<WallTime>,
        /// By the boot clock.
        boot: Option<BootTime>,
    },
    /// Until both times have passed.
    Until {
        /// By the wall clock.
        wall: Option<WallTime>,
        /// By the boot clock.
        boot: Option<BootTime>,
    },
}

impl Park {
    /// Returns the park that an outcome causes, with these times.
    #[must_use]
    pub fn new(cause: Outcome, wall: Option<WallTime>, boot: Option<BootTime>) -> Self {
        if ends_by_login(cause) { Self::Login { wall, boot } } else { Self::Until { wall, boot } }
    }

    /// Returns the park that begins now because claude has no login.
    #[must_use]
    pub fn login(now: Now) -> Self {
        Self::Login { wall: LOGIN_PARK.map(|length| now.wall.after(length)), boot: None }
    }

    /// Returns its times, by the wall clock and by the boot clock.
    #[must_use]
    pub fn times(&self) -> (Option<WallTime>, Option<BootTime>) {
        let (Self::Login { wall, boot } | Self::Until { wall, boot }) = *self;
        (wall, boot)
    }

    /// Returns whether it still holds.
    #[must_use]
    pub fn holds(&self, now: Now) -> bool {
        match (self, self.times()) {
            (Self::Login { .. }, (None, None)) => true,
            (_, (wall, boot)) => {
                wall.is_some_and(|at| at > now.wall) || boot.is_some_and(|at| at > now.boot)
            }
        }
    }

    /// Returns the wall time of its end; `None` if only a login ends it.
    #[must_use]
    pub fn until(&self, now: Now) -> Option<WallTime> {
        let (wall, boot) = self.times();
        wall.max(boot.map(|boot| now.wall_at(boot)))
    }

    /// Returns when to check whether it still holds; `None` if only a login ends it.
    #[must_use]
    pub fn due(&self, now: Now) -> Option<BootTime> {
        let (wall, boot) = self.times();
        let check = |at: WallTime| now.boot.after(at.since(now.wall).min(WALL_CHECK_MAX));
        wall.map(check).max(boot)
    }
}

/// A park with its cause and error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// The outcome that caused it.
    pub cause: Outcome,
    /// The duration of the park.
    pub park: Park,
    /// Error of the turn.
    pub error: String,
}

impl Parked {
    /// Returns the park as callers see it.
    #[must_use]
    pub fn view(&self, now: Now) -> View {
        let until = self.park.until(now);
        View {
            cause: self.cause,
            until,
            remaining: until.map(|until| until.since(now.wall)),
            error: self.error.clone(),
        }
    }

    /// Returns whether no turn of the agent can run, so that the operator is notified.
    #[must_use]
    pub fn stops_all_turns(&self) -> bool {
        matches!(self.cause, Outcome::Unavailable | Outcome::AuthFailed)
    }
}

/// A park as callers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The outcome that caused it.
    pub cause: Outcome,
    /// The end of the park; `None` if only a login ends it.
    pub until: Option<WallTime>,
    /// Duration from the time of the read to `until`.
    pub remaining: Option<Duration>,
    /// Error of the turn.
    pub error: String,
}

/// Returns whether a login ends a park with this cause.
#[must_use]
pub fn ends_by_login(cause: Outcome) -> bool {
    cause == Outcome::AuthFailed
}

/// Returns the state that an agent with a harness shows while it is parked.
#[must_use]
pub fn state_of(cause: Outcome) -> HarnessState {
    match cause {
        Outcome::RateLimited => HarnessState::RateLimited,
        Outcome::AuthFailed => HarnessState::NeedsLogin,
        Outcome::Ok
        | Outcome::Failed
        | Outcome::Unavailable
        | Outcome::Cancelled
        | Outcome::Drained
        | Outcome::Vanished
        | Outcome::Fenced => HarnessState::Unavailable,
    }
}

/// The effect of a turn's end on the park.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No change.
    Nothing,
    /// The agent runs: it is not parked, and has no consecutive failures.
    Runs,
    /// Another turn could not run.
    Failed {
        /// Consecutive failed turns, with this one.
        failures: u32,
        /// The park, if the agent is parked now.
        park: Option<Park>,
    },
}

/// Decides whether the end of a turn parks the agent, and how long. `has_dead_letter` is whether a
/// delivery of the turn became a dead letter; `failures` consecutive ones were before it.
#[must_use]
pub fn after_turn(
    kind: Kind,
    ended: &Ended,
    has_dead_letter: bool,
    failures: u32,
    limits: &Limits,
    now: Now,
) -> Change {
    let Ended { outcome, compacted, retry_time, .. } = *ended;
    let failures = failures.saturating_add(1);
    let backoff = |failures| Some(now.boot.after(limits.park_backoff().after(failures)));
    let (wall, boot) = match outcome {
        // A compaction that did nothing asked no model, so it does not show that one answers.
        Outcome::Ok if kind == Kind::Compact && !compacted => return Change::Nothing,
        Outcome::Ok => return Change::Runs,
        // A checkpoint or compaction that failed changes nothing; the next turn for mail shows
        // whether more is wrong.
        Outcome::Failed if kind.is_upkeep() => return Change::Nothing,
        Outcome::Cancelled | Outcome::Drained | Outcome::Fenced => return Change::Nothing,
        Outcome::RateLimited => {
            let limit = Duration::from_millis(limits.rate_limit_park_ms);
            match retry_time {
                None => (None, Some(now.boot.after(limit))),
                Some(_) if failures == 1 => (retry_time, None),
                // The stated end was wrong before, so the boot clock bounds the rate of retries.
                Some(_) => (retry_time, backoff(failures - 1)),
            }
        }
        Outcome::AuthFailed => Park::login(now).times(),
        Outcome::Unavailable => (None, backoff(failures)),
        // A dead letter ends the row, and one bad message waits out its own backoff.
        Outcome::Failed | Outcome::Vanished if has_dead_letter || failures <= FAILED_MAX => {
            let failures = if has_dead_letter { 0 } else { failures };
            return Change::Failed { failures, park: None };
        }
        Outcome::Failed | Outcome::Vanished => (None, backoff(failures - FAILED_MAX)),
    };
    let failures = if has_dead_letter { 0 } else { failures };
    Change::Failed { failures, park: Some(Park::new(outcome, wall, boot)) }
}

/// The effect of a harness's report on the park.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// No change.
    Nothing,
    /// claude has no login: the agent is parked until it has one.
    NeedsLogin,
    /// The park is over, because claude has a login.
    LoggedIn,
    /// The park is over, because the agent lacks something other than a login.
    OtherTrouble,
}

/// Decides the effect of a harness's report of this state on a park.
#[must_use]
pub fn after_report(park: Option<&Park>, state: HarnessState, now: Now) -> Reported {
    let park = park.filter(|park| park.holds(now));
    match (matches!(park, Some(Park::Login { .. })), state) {
        // This replaces any other park: without a login, no retry helps.
        (false, HarnessState::NeedsLogin) => Reported::NeedsLogin,
        // Only a harness that waits for mail has checked the login.
        (true, HarnessState::Idle) => Reported::LoggedIn,
        (true, HarnessState::RateLimited | HarnessState::Unavailable) => Reported::OtherTrouble,
        // A harness that starts has not checked yet, and a compaction by order runs while parked.
        (
            _,
            HarnessState::Offline
            | HarnessState::Starting
            | HarnessState::Idle
            | HarnessState::Thinking
            | HarnessState::Compacting
            | HarnessState::RateLimited
            | HarnessState::NeedsLogin
            | HarnessState::Unavailable
            | HarnessState::Stopped,
        ) => Reported::Nothing,
    }
}

#[cfg(test)]
mod tests;
