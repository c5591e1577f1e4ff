//! Firing: one message to each target, or one more skipped due time.
//!
//! Invariant: a message of the schedule that its target has not read is superseded, and its due
//! time counted; one that the target reads now or that has failed is left alone, so that no short
//! interval keeps a poisonous text from becoming a dead letter.

use hive_core::delivery::{RedeliveryCause, State};
use hive_core::event::ScheduleFired;
use hive_core::id::MessageId;
use hive_core::limits::Limits;
use hive_core::schedule::Due;

use super::{Fired, texts};
use crate::engine::Refusal;
use crate::engine::mail::admission::may_write;
use crate::engine::mail::notice::supersede;
use crate::engine::mail::send::write_scheduled;
use crate::store::agent::AgentRow;
use crate::store::delivery::DeliveryRow;
use crate::store::event::{Fact, log};
use crate::store::schedule::{self as schedules, ScheduleRow, TargetRow};
use crate::store::{Tx, agent as agents, delivery, inbox};

/// Why a schedule fires.
#[derive(Clone, Copy, Debug)]
pub(super) enum Firing {
    /// It is due.
    Due {
        /// The last due time.
        due: Due,
        /// The due times between the one that it fired for before and this one.
        skipped: u64,
        /// Whether it is too late to send anything.
        is_late: bool,
    },
    /// The owner or the operator asked for it.
    Now,
}

impl Firing {
    /// Returns the due times that it brings, for a target that gets no message.
    fn count(&self) -> u64 {
        match self {
            Self::Due { skipped, .. } => skipped.saturating_add(1),
            Self::Now => 0,
        }
    }
}

/// Fires a schedule; returns what each target got.
pub(super) fn fire(
    tx: &Tx<'_>,
    limits: &Limits,
    row: &ScheduleRow,
    owner: &AgentRow,
    firing: &Firing,
) -> Result<Vec<Fired>, Refusal> {
    let mut fired = Vec::new();
    for mut target in schedules::targets(tx, row.id)? {
        let message = match room(tx, limits, row, owner, &target, firing)? {
            Ok(last) => Ok(send(tx, row, owner, &mut target, last, firing)?),
            Err(problem) => {
                target.skipped = target.skipped.saturating_add(firing.count());
                Err(problem)
            }
        };
        schedules::save_target(tx, row.id, &target)?;
        fired.push(Fired { agent: target.name, message });
    }
    let sent = fired.iter().filter(|fired| fired.message.is_ok()).count();
    let detail = format!("{}, to {sent} of {}", texts::why(firing), fired.len());
    log(tx, Fact::about(ScheduleFired { schedule_id: row.id }, row.owner).detail(&detail));
    Ok(fired)
}

/// Returns the message that a new one supersedes, or why the target gets none.
fn room(
    tx: &Tx<'_>,
    limits: &Limits,
    row: &ScheduleRow,
    owner: &AgentRow,
    target: &TargetRow,
    firing: &Firing,
) -> Result<Result<Option<MessageId>, String>, Refusal> {
    if matches!(firing, Firing::Due { is_late: true, .. }) {
        return Ok(Err("it is too late".to_owned()));
    }
    let to = agents::by_key(tx, target.agent)?;
    // Everyone may remind themselves.
    if to.key != owner.key && !may_write(owner, &to) {
        let problem = format!("the policy of {} does not allow it to send there", owner.name);
        return Ok(Err(problem));
    }
    let last = target.message.map(|id| delivery::get(tx, to.key, id)).transpose()?.flatten();
    match last.as_ref().map(unread) {
        Some(Unread::Untouched) => return Ok(Ok(target.message)),
        Some(Unread::InHand(problem)) => return Ok(Err(problem.to_owned())),
        Some(Unread::Over) | None => {}
    }
    if inbox::get(tx, to.key)?.open_count >= limits.inbox_depth_max {
        return Ok(Err("its inbox is full".to_owned()));
    }
    let max = owner.policy.sender_stored_bytes_max.unwrap_or(limits.sender_stored_bytes_max);
    let bytes = (row.body.len() + texts::HEAD_BYTES_MAX) as u64;
    if inbox::get(tx, owner.key)?.stored_bytes.saturating_add(bytes) > max {
        return Ok(Err(format!("too many bytes of messages of {} are waiting unread", owner.name)));
    }
    Ok(Ok(None))
}

/// What became of the last message of a target.
enum Unread {
    /// It waits, and was never served.
    Untouched,
    /// It is served now, or will be once more.
    InHand(&'static str),
    /// It is settled.
    Over,
}

fn unread(last: &DeliveryRow) -> Unread {
    let progress = last.progress;
    match progress.state {
        State::Leased => Unread::InHand("it reads the last message now"),
        State::Held => Unread::InHand("the last message is held for the operator"),
        // A dead letter waits for the operator, and does not come back by itself.
        State::Dead | State::Acked | State::Dropped | State::Superseded => Unread::Over,
        State::Ready if hive_fault::planted!(FailedFiringSuperseded) => Unread::Untouched,
        State::Ready if progress.failures > 0 => Unread::InHand("the last message has failed"),
        State::Ready => match progress.cause {
            Some(RedeliveryCause::Released | RedeliveryCause::Redriven) => {
                Unread::InHand("the operator has put the last message back")
            }
            Some(
                RedeliveryCause::TurnFailed
                | RedeliveryCause::HarnessVanished
                | RedeliveryCause::RateLimited
                | RedeliveryCause::AuthFailed
                | RedeliveryCause::Unavailable
                | RedeliveryCause::Drained
                | RedeliveryCause::NotReceived
                | RedeliveryCause::Nacked
                | RedeliveryCause::LeaseExpired
                | RedeliveryCause::Restored,
            )
            | None => Unread::Untouched,
        },
    }
}

/// Sends the message to a target, and notes what it states.
fn send(
    tx: &Tx<'_>,
    row: &ScheduleRow,
    owner: &AgentRow,
    target: &mut TargetRow,
    last: Option<MessageId>,
    firing: &Firing,
) -> Result<MessageId, Refusal> {
    let mut stated = target.skipped;
    if let Some(last) = last {
        supersede(tx, target.agent, last)?;
        stated = stated.saturating_add(target.stated).saturating_add(target.is_due.into());
    }
    if let Firing::Due { skipped, .. } = firing {
        stated = stated.saturating_add(*skipped);
    }
    let body = texts::message(row, firing, stated);
    let to = agents::by_key(tx, target.agent)?;
    let message = write_scheduled(tx, owner, &to, &body)?;
    target.message = Some(message);
    target.is_due = matches!(firing, Firing::Due { .. });
    target.stated = stated;
    target.skipped = 0;
    Ok(message)
}
