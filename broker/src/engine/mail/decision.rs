//! Decisions of the operator about a delivery, which need no lease.
//!
//! Invariant: a decision that the state of the delivery does not allow changes nothing.

use std::sync::Arc;

use hive_core::delivery::{Decision, Progress, RedeliveryCause, State};
use hive_core::event::{DeliveryAcked, Facts, Settler};
use hive_core::id::MessageId;

use crate::engine::error::MailError;
use crate::engine::{Refusal, actor};
use crate::measures::Count;
use crate::store::Tx;
use crate::store::agent::AgentRow;
use crate::store::delivery::{self, DeliveryRow};
use crate::store::event::{Fact, log};

/// Returns a delivery and its recipient, an agent or the operator.
pub(crate) fn by_key(
    tx: &Tx<'_>,
    agent: &str,
    message: MessageId,
) -> Result<(Arc<AgentRow>, DeliveryRow), Refusal> {
    let owner = actor::owner(tx, agent)?;
    let row = delivery::get(tx, owner.key, message)?;
    let row =
        row.ok_or_else(|| MailError::DeliveryNotFound { agent: owner.name.clone(), message })?;
    Ok((owner, row))
}

/// Applies the decision of the operator `who` about a delivery of `owner`.
pub(crate) fn decide_row(
    tx: &Tx<'_>,
    who: &str,
    owner: &AgentRow,
    mut row: DeliveryRow,
    decision: Decision,
) -> Result<(), Refusal> {
    let before = row.progress.state;
    if decision == Decision::Ack && before == State::Acked {
        return Ok(());
    }
    let wrong = || {
        Refusal::from(MailError::WrongState {
            agent: owner.name.clone(),
            message: row.message,
            state: before,
        })
    };
    row.progress = row.progress.decide(decision).ok_or_else(wrong)?;
    row.settled_by = if row.progress.state.is_settled() { who.to_owned() } else { String::new() };
    let row = delivery::save(tx, row, before)?;
    let facts = match decision {
        Decision::Ack => acked_by_operator(row.progress),
        Decision::Drop => Facts::DeliveryDropped,
        Decision::Release => Facts::DeliveryReleased,
        Decision::Redrive => Facts::DeliveryRedriven,
        Decision::Supersede => Facts::DeliverySuperseded,
    };
    match decision {
        Decision::Release => tx.count(|| Count::Redelivery(RedeliveryCause::Released)),
        Decision::Redrive => tx.count(|| Count::Redelivery(RedeliveryCause::Redriven)),
        Decision::Ack | Decision::Drop | Decision::Supersede => {}
    }
    let detail = format!("by {who}");
    log(tx, Fact::about(facts, owner.key).message(row.message).detail(&detail));
    Ok(())
}

/// Returns the facts of a delivery that the operator has acked.
pub(super) fn acked_by_operator(acked: Progress) -> Facts {
    DeliveryAcked { attempt: acked.attempt(true), settler: Settler::Operator }.into()
}
