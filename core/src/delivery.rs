//! Deliveries: one message to one recipient, with state and attempts.
//!
//! ```text
//!            lease                       ack
//!   READY ───────────────► LEASED ─────────────────► ACKED
//!    ▲  ▲                    │ │
//!    │  └───── requeued ─────┘ ├── attempts used up ──► DEAD ── redrive ──► READY
//!    │                         └── turn cancelled ────► HELD ── release ──► READY
//!    └── superseded ──► SUPERSEDED;  READY, HELD, DEAD ── operator ──► ACKED | DROPPED
//! ```
//!
//! Invariant: only the functions here change a delivery's state, and `failures` counts only
//! failures that may be the message's fault.

use crate::limits::Limits;
use crate::message::Message;
use crate::time::{BootTime, Now, WallTime};

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum State {
    /// Waiting in the inbox.
    Ready,
    /// Claimed.
    Leased,
    /// Taken out of the queue by an operator's cancel.
    Held,
    /// A dead letter.
    Dead,
    /// Settled as done.
    Acked,
    /// Dropped by the operator.
    Dropped,
    /// A newer message took its place.
    Superseded,
}

impl State {
    /// Returns whether the state is final.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Acked | Self::Dropped | Self::Superseded)
    }
}

/// Class of a delivery that decides the order in which an inbox is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Notices of the broker; served first.
    System,
    /// All other messages.
    Normal,
}

/// Returns the lane to serve when both have mail: system first, with one normal delivery after
/// `SYSTEM_RUN_MAX` system ones in a row.
#[must_use]
pub fn next_lane(system_run: u32) -> Lane {
    if system_run >= crate::limits::SYSTEM_RUN_MAX { Lane::Normal } else { Lane::System }
}

/// Returns the length of the run of system deliveries after one of this lane was served.
#[must_use]
pub fn system_run_after(system_run: u32, served: Lane) -> u32 {
    match served {
        Lane::System => system_run.saturating_add(1),
        Lane::Normal => 0,
    }
}

/// Why a delivery was requeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedeliveryCause {
    /// The turn failed.
    TurnFailed,
    /// The harness vanished during the turn.
    HarnessVanished,
    /// The model's rate limit was hit.
    RateLimited,
    /// No valid login.
    AuthFailed,
    /// The model's API, or claude, was not available.
    Unavailable,
    /// The harness was shut down, taken over, or its host rebooted.
    Drained,
    /// The operator ended the attempt: cancelled its turn and released the delivery later, or
    /// settled it.
    Released,
    /// The operator redrove it.
    Redriven,
    /// The tool result that carried it never reached the model.
    NotReceived,
    /// A consumer requeued it.
    Nacked,
    /// A consumer's lease expired.
    LeaseExpired,
    /// It was leased in a backup that has replaced the database.
    Restored,
}

impl RedeliveryCause {
    /// Returns whether the next attempt has the number of the last one, which used no attempt. A
    /// redriven delivery starts at 1.
    #[must_use]
    pub fn repeats_attempt(self) -> bool {
        match self {
            Self::TurnFailed
            | Self::HarnessVanished
            | Self::Nacked
            | Self::LeaseExpired
            | Self::Redriven => false,
            Self::RateLimited
            | Self::AuthFailed
            | Self::Unavailable
            | Self::Drained
            | Self::Released
            | Self::NotReceived
            | Self::Restored => true,
        }
    }
}

/// The effect of the end of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The delivery is done.
    Ack,
    /// Requeue; no attempt used.
    GiveBack(RedeliveryCause),
    /// Requeue with backoff, one attempt used; dead if none is left.
    Fail(RedeliveryCause),
    /// Dead letter at once.
    FailForGood(RedeliveryCause),
    /// Held until the operator decides.
    Hold,
}

/// How the holder of a lease ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseEnd {
    /// Acked.
    Acked,
    /// Nacked and requeued.
    Nacked,
    /// Nacked, and no attempt was left.
    Dead,
    /// Nacked as permanent.
    GivenUp,
    /// Released: not begun.
    Released,
}

impl LeaseEnd {
    /// Returns the state that the end gave to the delivery.
    #[must_use]
    pub fn state(self) -> State {
        match self {
            Self::Acked => State::Acked,
            Self::Nacked | Self::Released => State::Ready,
            Self::Dead | Self::GivenUp => State::Dead,
        }
    }
}

/// The mutable part of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Current state.
    pub state: State,
    /// Number of failed attempts.
    pub failures: u32,
    /// Why it was last requeued.
    pub cause: Option<RedeliveryCause>,
    /// Earliest time at which it is served.
    pub not_before: Option<BootTime>,
}

impl Progress {
    /// Creates the progress of a delivery that was just accepted.
    #[must_use]
    pub fn new() -> Self {
        Self { state: State::Ready, failures: 0, cause: None, not_before: None }
    }

    /// Returns the number of the attempt that holds the delivery, or held it last; 0 before the
    /// first. `by_operator` says whether the operator settled it.
    #[must_use]
    pub fn attempt(&self, by_operator: bool) -> u32 {
        let next = self.failures.saturating_add(1);
        match self.state {
            State::Leased | State::Held => next,
            State::Acked if !by_operator => next,
            State::Dead => self.failures,
            State::Ready | State::Acked | State::Dropped | State::Superseded => match self.cause {
                Some(cause) if cause.repeats_attempt() => next,
                Some(_) | None => self.failures,
            },
        }
    }

    /// Returns whether it is served alone, so that it does not use up the attempts of its
    /// neighbours.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.failures.saturating_add(1) >= crate::limits::ALONE_FROM_ATTEMPT
    }

    /// Returns whether a failure now is the last one: the delivery becomes a dead letter.
    #[must_use]
    pub fn is_last_attempt(&self, limits: &Limits) -> bool {
        self.failures.saturating_add(1) >= limits.attempts_max
    }

    /// Returns whether it may be leased now.
    #[must_use]
    pub fn is_due(&self, now: Now) -> bool {
        self.state == State::Ready && self.not_before.is_none_or(|due| due <= now.boot)
    }

    /// Leases it; `None` unless it is due.
    #[must_use]
    pub fn lease(self, now: Now) -> Option<Self> {
        self.is_due(now).then_some(Self { state: State::Leased, not_before: None, ..self })
    }

    /// Ends its lease; `None` if it is not leased.
    #[must_use]
    pub fn settle(self, settlement: Settlement, now: Now, limits: &Limits) -> Option<Self> {
        if self.state != State::Leased {
            return None;
        }
        Some(match settlement {
            Settlement::Ack => Self { state: State::Acked, ..self },
            Settlement::Hold => Self { state: State::Held, ..self },
            Settlement::GiveBack(cause) => Self { state: State::Ready, cause: Some(cause), ..self },
            Settlement::FailForGood(cause) => Self {
                state: State::Dead,
                failures: self.failures.saturating_add(1),
                cause: Some(cause),
                not_before: None,
            },
            Settlement::Fail(cause) => {
                let failures = self.failures.saturating_add(1);
                let dead = self.is_last_attempt(limits);
                Self {
                    state: if dead { State::Dead } else { State::Ready },
                    failures,
                    cause: Some(cause),
                    not_before: (!dead).then(|| now.boot.after(limits.retry_backoff(failures))),
                }
            }
        })
    }

    /// Applies an operator's decision, which needs no lease; `None` if its state does not allow it.
    #[must_use]
    pub fn decide(self, decision: Decision) -> Option<Self> {
        use State::{Acked, Dead, Dropped, Held, Leased, Ready, Superseded};
        let released = Some(RedeliveryCause::Released);
        match (decision, self.state) {
            // An operator's settlement also ends a lease, which its holder then finds lost. It ends
            // the attempt that held the delivery.
            (Decision::Ack, Leased | Held) => {
                Some(Self { state: Acked, cause: released, not_before: None, ..self })
            }
            (Decision::Drop, Leased | Held) => {
                Some(Self { state: Dropped, cause: released, not_before: None, ..self })
            }
            (Decision::Ack, Ready | Dead) => Some(Self { state: Acked, not_before: None, ..self }),
            (Decision::Drop, Ready | Dead) => {
                Some(Self { state: Dropped, not_before: None, ..self })
            }
            (Decision::Supersede, Ready) => {
                Some(Self { state: Superseded, not_before: None, ..self })
            }
            (Decision::Release, Held) => {
                Some(Self { state: Ready, cause: released, not_before: None, ..self })
            }
            (Decision::Redrive, Dead) => Some(Self {
                state: Ready,
                failures: 0,
                cause: Some(RedeliveryCause::Redriven),
                not_before: None,
            }),
            (Decision::Ack | Decision::Drop, Acked | Dropped | Superseded)
            | (Decision::Supersede, Leased | Held | Dead | Acked | Dropped | Superseded)
            | (Decision::Release, Ready | Leased | Dead | Acked | Dropped | Superseded)
            | (Decision::Redrive, Ready | Leased | Held | Acked | Dropped | Superseded) => None,
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// A change that needs no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Settled as done by the operator.
    Ack,
    /// Dropped by the operator.
    Drop,
    /// Released by the operator.
    Release,
    /// Redriven by the operator.
    Redrive,
    /// Replaced by a newer message with its coalescing key.
    Supersede,
}

/// A delivery as callers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: Message,
    /// The recipient; `operator` for the operator's inbox.
    pub agent: String,
    /// Lane in which it is served.
    pub lane: Lane,
    /// Current state.
    pub state: State,
    /// Number of the attempt that holds it, or held it last; 0 before the first.
    pub attempt: u32,
    /// Why it was last requeued.
    pub cause: Option<RedeliveryCause>,
    /// Error of the last failed run.
    pub last_error: String,
    /// The end of the last failed run's output.
    pub output_tail: String,
    /// The turn that holds it, or held it last.
    pub turn_id: Option<crate::id::TurnId>,
    /// Earliest time at which it is served.
    pub not_before: Option<WallTime>,
    /// When its state last changed.
    pub state_time: WallTime,
    /// The operator that settled it; empty if none did.
    pub settled_by: String,
}

#[cfg(test)]
mod tests;
