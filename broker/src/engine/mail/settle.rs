//! Settling: the end of the lease on a delivery.

use hive_core::delivery::{Progress, RedeliveryCause, Settlement, State};
use hive_core::event::{
    DeliveryAcked, DeliveryDead, DeliveryHeld, DeliveryReturned, Facts, Settler,
};
use hive_core::limits::Limits;
use hive_core::message::SystemKind;

use super::notice::{self, Notice, parent};
use super::outbox;
use super::text::quoted;
use crate::engine::Refusal;
use crate::measures::Count;
use crate::store::agent::AgentRow;
use crate::store::delivery::DeliveryRow;
use crate::store::event::{Fact, log};
use crate::store::{Tx, delivery, message};

/// Settles one leased delivery; returns its new state.
pub(crate) fn settle(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    mut row: DeliveryRow,
    settlement: Settlement,
) -> Result<State, Refusal> {
    let settlement = planted(settlement, row.progress.failures, limits);
    let attempt = row.progress.attempt(false);
    let progress = row.progress.settle(settlement, tx.now, limits).ok_or(Refusal::LeaseLost)?;
    row.progress = progress;
    let row = delivery::save(tx, row, State::Leased)?;
    let (facts, detail): (Facts, String) = match progress.state {
        State::Acked => (DeliveryAcked { attempt, settler: Settler::Holder }.into(), String::new()),
        State::Dead => (
            DeliveryDead { attempt, cause: cause(progress) }.into(),
            format!("after {} failed attempts: {}", progress.failures, row.last_error),
        ),
        State::Held => (DeliveryHeld { attempt }.into(), String::new()),
        State::Ready | State::Leased | State::Dropped | State::Superseded => {
            (DeliveryReturned { attempt, cause: cause(progress) }.into(), String::new())
        }
    };
    count(tx, progress);
    let turn = row.lease.as_ref().and_then(|lease| lease.turn);
    log(tx, Fact::about(facts, me.key).message(row.message).turn(turn).detail(&detail));
    if progress.state == State::Dead && !hive_fault::planted!(DeadLetterUntold) {
        notify_parent_of_dead_letter(tx, limits, me, &row)?;
    }
    Ok(progress.state)
}

/// Counts a dead letter, or a delivery that is ready again.
fn count(tx: &Tx<'_>, settled: Progress) {
    match settled.state {
        State::Ready => tx.count(|| Count::Redelivery(cause(settled))),
        State::Dead => tx.count(|| Count::DeadLetter),
        State::Leased | State::Acked | State::Held | State::Dropped | State::Superseded => {}
    }
}

fn cause(settled: Progress) -> RedeliveryCause {
    settled.cause.expect("a settlement that does not ack or hold a delivery has a cause")
}

/// Returns the settlement that a planted bug makes of this one; without a bug, the same one.
#[inline(always)]
fn planted(settlement: Settlement, failures: u32, limits: &Limits) -> Settlement {
    use hive_core::delivery::RedeliveryCause as Cause;
    let last = matches!(settlement, Settlement::Fail(_)) && failures + 1 == limits.attempts_max;
    if hive_fault::planted!(NeverDead) && last {
        return Settlement::GiveBack(Cause::TurnFailed);
    }
    if hive_fault::planted!(RateLimitUsesAttempt)
        && settlement == Settlement::GiveBack(Cause::RateLimited)
    {
        return Settlement::Fail(Cause::RateLimited);
    }
    if hive_fault::planted!(VanishedForgiven)
        && settlement == Settlement::Fail(Cause::HarnessVanished)
    {
        return Settlement::GiveBack(Cause::HarnessVanished);
    }
    settlement
}

fn notify_parent_of_dead_letter(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    row: &DeliveryRow,
) -> Result<(), Refusal> {
    let body = format!(
        "Message {} to {} is a dead letter after {} failed attempts:\n\n{}\n\nThe operator can look at it with \
         `hivectl dead-letters show {} --agent {}`, and redrive or drop it.",
        row.message,
        me.name,
        row.progress.failures,
        quoted(&row.last_error),
        row.message,
        me.name
    );
    let notice = Notice {
        in_reply_to: Some(row.message),
        turn: row.turn,
        parent: message::trace_of(tx, row.message)?,
        ..Notice::about(&me.name, parent(me), SystemKind::DeadLetter, &body)
    };
    notice::put(tx, limits, notice)?;
    // Regardless of its parent: only the operator can redrive or drop it.
    outbox::add(tx, outbox::Kind::DeadLetter, me.key, row.message.get(), &body)
}
