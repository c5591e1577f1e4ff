//! Deliveries: one message on its way to one recipient.
//!
//! ```text
//!            lease                       ack
//!   READY ───────────────► LEASED ─────────────────► ACKED
//!    ▲  ▲                    │ │
//!    │  └──── given back ────┘ ├── attempts used up ──► DEAD ── redrive ──► READY
//!    │                         └── turn cancelled ────► HELD ── release ──► READY
//!    └── superseded ──► SUPERSEDED;  READY, HELD, DEAD ── operator ──► ACKED | DROPPED
//! ```
//!
//! Invariant: every change of a delivery's state is one of the functions here, and `failures`
//! counts only what may be the message's fault.

use crate::limits::Limits;
use crate::message::Message;
use crate::time::{BootTime, Now, WallTime};

/// Where a delivery stands.
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
    /// Done.
    Acked,
    /// Dropped by the operator.
    Dropped,
    /// A newer message took its place.
    Superseded,
}

impl State {
    /// Whether nothing can happen to it any more.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Acked | Self::Dropped | Self::Superseded)
    }
}

/// In which order an inbox is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Notices of the broker: first.
    System,
    /// Everything else.
    Normal,
}

/// Which lane is served next, when both have mail: system first, with one normal delivery after
/// `SYSTEM_RUN_MAX` system ones in a row.
#[must_use]
pub fn next_lane(system_run: u32) -> Lane {
    if system_run >= crate::limits::SYSTEM_RUN_MAX { Lane::Normal } else { Lane::System }
}

/// The length of the run of system deliveries after one of this lane was served.
#[must_use]
pub fn system_run_after(system_run: u32, served: Lane) -> u32 {
    match served {
        Lane::System => system_run.saturating_add(1),
        Lane::Normal => 0,
    }
}

/// Why a delivery came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedeliveryCause {
    /// The turn failed.
    TurnFailed,
    /// The harness vanished in mid-turn.
    HarnessVanished,
    /// The model's rate limit was hit.
    RateLimited,
    /// No valid login.
    AuthFailed,
    /// The model's API, or claude, was not available.
    Unavailable,
    /// The harness was shut down, taken over, or its host rebooted.
    Drained,
    /// The operator ended the try: cancelled its turn and released the delivery later, or settled
    /// it.
    Released,
    /// The operator redrove it.
    Redriven,
    /// The tool result that carried it never reached the model.
    NotReceived,
    /// A consumer gave it back.
    Nacked,
    /// A consumer's lease ran out.
    LeaseExpired,
}

impl RedeliveryCause {
    /// Whether the next try has the number of the last one, which used no attempt. A redriven
    /// delivery begins with its first.
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
            | Self::NotReceived => true,
        }
    }
}

/// What the end of a lease does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Done.
    Ack,
    /// Back to the inbox, no attempt used.
    GiveBack(RedeliveryCause),
    /// Back to the inbox with backoff, one attempt used; dead when none is left.
    Fail(RedeliveryCause),
    /// Dead at once.
    FailForGood(RedeliveryCause),
    /// Out of the queue until the operator decides.
    Hold,
}

/// The part of a delivery that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Where it stands.
    pub state: State,
    /// Failed attempts.
    pub failures: u32,
    /// Why it came back last.
    pub cause: Option<RedeliveryCause>,
    /// Not served before this time.
    pub not_before: Option<BootTime>,
}

impl Progress {
    /// A delivery that was just accepted.
    #[must_use]
    pub fn new() -> Self {
        Self { state: State::Ready, failures: 0, cause: None, not_before: None }
    }

    /// Numbers the try that holds the delivery, or held it last; 0 before the first. `by_operator`
    /// says whether the operator settled it.
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

    /// Whether it is served alone, so that it does not burn the attempts of its neighbours.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.failures.saturating_add(1) >= crate::limits::ALONE_FROM_ATTEMPT
    }

    /// Whether it may be leased now.
    #[must_use]
    pub fn is_due(&self, now: Now) -> bool {
        self.state == State::Ready && self.not_before.is_none_or(|due| due <= now.boot)
    }

    /// Claims it. Only a due delivery can be claimed.
    #[must_use]
    pub fn lease(self, now: Now) -> Option<Self> {
        self.is_due(now).then_some(Self { state: State::Leased, not_before: None, ..self })
    }

    /// Ends a claim. Only a leased delivery has one.
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
                let dead = failures >= limits.attempts_max;
                Self {
                    state: if dead { State::Dead } else { State::Ready },
                    failures,
                    cause: Some(cause),
                    not_before: (!dead).then(|| now.boot.after(limits.retry_backoff(failures))),
                }
            }
        })
    }

    /// What the operator does to it without holding a claim; `None` where its state does not allow
    /// it.
    #[must_use]
    pub fn decide(self, decision: Decision) -> Option<Self> {
        use State::{Acked, Dead, Dropped, Held, Leased, Ready, Superseded};
        let released = Some(RedeliveryCause::Released);
        match (decision, self.state) {
            // An operator's settlement ends a lease too: its holder then finds it lost. It ends the
            // try that held the delivery.
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

/// A change that needs no claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Done, says the operator.
    Ack,
    /// Dropped by the operator.
    Drop,
    /// Released by the operator.
    Release,
    /// Sent round again by the operator.
    Redrive,
    /// Replaced by a newer message with its coalescing key.
    Supersede,
}

/// A delivery as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: Message,
    /// The recipient; `operator` for the operator's inbox.
    pub agent: String,
    /// Its lane.
    pub lane: Lane,
    /// Where it stands.
    pub state: State,
    /// The number of the try that holds it, or held it last; 0 before the first.
    pub attempt: u32,
    /// Why it came back last.
    pub cause: Option<RedeliveryCause>,
    /// What the last failed run said.
    pub last_error: String,
    /// The end of the last failed run's output.
    pub output_tail: String,
    /// The turn that holds it, or held it last.
    pub turn_id: Option<crate::id::TurnId>,
    /// Not served before this time.
    pub not_before: Option<WallTime>,
    /// When its state last changed.
    pub state_time: WallTime,
    /// Which operator settled it; empty where none did.
    pub settled_by: String,
}

#[cfg(test)]
mod tests;
