//! Settlements: what the holders of leases decide about their deliveries, many in one commit.
//!
//! A settlement needs no request id: the row of the delivery knows how the holder of its last lease
//! ended it. Invariant: a repeated settlement has the result of the first until the delivery is
//! leased again; another settlement of a lease that has ended is refused and changes nothing.

use std::time::Duration;

use hive_core::caller::Caller;
use hive_core::delivery::{Decision, LeaseEnd, RedeliveryCause, Settlement, State};
use hive_core::id::MessageId;
use hive_core::limits::{ERROR_BYTES_MAX, Limits, SETTLEMENTS_MAX};
use hive_core::settlement::{Action, Entry, Settled, Target};

use super::decision::{by_key, decide_row};
use super::settle;
use crate::engine::Actor;
use crate::engine::error::MailError;
use crate::engine::{Engine, Refusal};
use crate::store::agent::AgentRow;
use crate::store::delivery::DeliveryRow;
use crate::store::lease::Lease;
use crate::store::{CommandError as _, Tx, delivery};

/// The results of settlements, in order.
pub type Results = Vec<Result<Settled, Refusal>>;

impl Engine {
    /// Settles deliveries in one commit. Each entry has its own result: an entry that is refused
    /// changes nothing, and the others stand.
    pub async fn settle(&self, actor: Actor, entries: Vec<Entry>) -> Result<Results, Refusal> {
        self.check_open()?;
        check(&actor, &entries)?;
        let limits = std::sync::Arc::clone(&self.limits);
        self.store
            .write_after_checks(move |tx| {
                let me = actor.row(tx)?;
                settle_all(tx, &limits, &actor, &me, &entries)
            })
            .await
    }

    /// Settles one delivery.
    pub async fn settle_one(&self, actor: Actor, entry: Entry) -> Result<Settled, Refusal> {
        let result = self.settle(actor, vec![entry]).await?.pop();
        result.unwrap_or(Err(Refusal::Fault("a settlement has no result")))
    }
}

/// Refuses settlements that no state of the mail could make right. Nothing was changed then.
pub(crate) fn check(actor: &Actor, entries: &[Entry]) -> Result<(), Refusal> {
    let wrong = |problem: String| Refusal::Field { field: "settlements", problem };
    if entries.len() > SETTLEMENTS_MAX {
        let problem =
            format!("it has {} entries; at most {SETTLEMENTS_MAX} are allowed", entries.len());
        return Err(wrong(problem));
    }
    for (at, Entry { target, action }) in entries.iter().enumerate() {
        match (target, action) {
            (Target::Key(..), _) if actor.caller.agent().is_some() => {
                return Err(Refusal::NotYours { what: "a delivery that you name by its key" });
            }
            (Target::Key(..), Action::Nack { .. } | Action::Extend(_) | Action::Release) => {
                let problem = "a delivery without a lease can only be acked";
                return Err(wrong(format!("entry {at}: {problem}")));
            }
            (_, Action::Nack { error, .. }) if error.len() > ERROR_BYTES_MAX => {
                let bytes = error.len();
                let problem =
                    format!("it has {bytes} bytes; at most {ERROR_BYTES_MAX} are allowed");
                return Err(Refusal::Field { field: "error", problem });
            }
            (Target::Key(..) | Target::Lease(_), _) => {}
        }
    }
    Ok(())
}

/// Settles deliveries, in order. A fault of the database fails all of them.
pub(crate) fn settle_all(
    tx: &Tx<'_>,
    limits: &Limits,
    actor: &Actor,
    me: &AgentRow,
    entries: &[Entry],
) -> Result<Results, Refusal> {
    let settle = |entry: &Entry| match settle_one(tx, limits, actor, me, entry) {
        Err(refusal) if refusal.storage().is_some() => Err(refusal),
        result => Ok(result),
    };
    entries.iter().map(settle).collect()
}

fn settle_one(
    tx: &Tx<'_>,
    limits: &Limits,
    actor: &Actor,
    me: &AgentRow,
    entry: &Entry,
) -> Result<Settled, Refusal> {
    let token = match (&entry.target, &actor.caller) {
        (Target::Key(agent, message), Caller::Operator(who)) => {
            return ack_by_key(tx, who.as_str(), agent, *message);
        }
        (Target::Key(..), Caller::Agent(_)) => {
            return Err(Refusal::NotYours { what: "that delivery" });
        }
        (Target::Lease(token), _) => token,
    };
    let mut row = of_token(tx, me, token)?;
    let (settlement, end) = match &entry.action {
        Action::Extend(length) => return extend(tx, me, row, *length),
        Action::Ack => (Settlement::Ack, LeaseEnd::Acked),
        Action::Nack { permanent: true, .. } => {
            (Settlement::FailForGood(RedeliveryCause::Nacked), LeaseEnd::GivenUp)
        }
        Action::Nack { permanent: false, .. } => {
            let is_last = row.progress.is_last_attempt(limits);
            let end = if is_last { LeaseEnd::Dead } else { LeaseEnd::Nacked };
            (Settlement::Fail(RedeliveryCause::Nacked), end)
        }
        Action::Release => (Settlement::GiveBack(RedeliveryCause::NotReceived), LeaseEnd::Released),
    };
    let lease = row.lease.as_mut().ok_or(Refusal::LeaseLost)?;
    if hive_fault::planted!(SettledTwice) && lease.end.is_some() {
        row.progress.state = State::Leased;
    }
    if row.progress.state != State::Leased {
        let repeated = lease.end.filter(|end| is_repeat(*end, &entry.action));
        return repeated.map(|end| Settled::State(end.state())).ok_or(Refusal::LeaseLost);
    }
    lease.end = Some(end);
    if let Action::Nack { error, .. } = &entry.action {
        row.last_error.clone_from(error);
    }
    settle::settle(tx, limits, me, row, settlement).map(Settled::State)
}

/// Returns whether a lease that ended in this way was ended by an equal settlement.
fn is_repeat(end: LeaseEnd, action: &Action) -> bool {
    matches!(
        (end, action),
        (LeaseEnd::Acked, Action::Ack)
            | (LeaseEnd::Nacked | LeaseEnd::Dead, Action::Nack { permanent: false, .. })
            | (LeaseEnd::GivenUp, Action::Nack { permanent: true, .. })
            | (LeaseEnd::Released, Action::Release)
    )
}

/// Returns a consumer's delivery by the token of its present or last lease.
fn of_token(tx: &Tx<'_>, me: &AgentRow, token: &str) -> Result<DeliveryRow, Refusal> {
    let row = delivery::by_lease_token(tx, me.key, token)?;
    let row = row.filter(|row| row.lease.as_ref().is_some_and(|lease| lease.turn.is_none()));
    row.ok_or(Refusal::LeaseLost)
}

/// Extends a consumer's lease to `length` from now.
fn extend(
    tx: &Tx<'_>,
    me: &AgentRow,
    mut row: DeliveryRow,
    length: Duration,
) -> Result<Settled, Refusal> {
    let leased = row.lease.as_mut().filter(|_| row.progress.state == State::Leased);
    let lease = leased.ok_or(Refusal::LeaseLost)?;
    if lease.stream.is_some() {
        let (agent, message) = (me.name.clone(), row.message);
        return Err(MailError::LeaseOfStream { agent, message }.into());
    }
    let request = lease.request.take();
    *lease = Lease {
        request,
        ..Lease::of_consumer(lease.token.clone(), tx.now.boot.after(length), length)
    };
    delivery::save(tx, row, State::Leased)?;
    Ok(Settled::Extended(length))
}

/// Settles a delivery as done for the operator; one that is done already stays so.
fn ack_by_key(tx: &Tx<'_>, who: &str, agent: &str, message: MessageId) -> Result<Settled, Refusal> {
    let (owner, row) = by_key(tx, agent, message)?;
    decide_row(tx, who, &owner, row, Decision::Ack)?;
    Ok(Settled::State(State::Acked))
}
