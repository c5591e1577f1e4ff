//! Receiving: leasing mail of an inbox, for a turn or for a consumer without a harness.
//!
//! Invariant: a turn takes no delivery that is served alone, and a consumer takes one only by
//! itself.

use crate::engine::error::HarnessError;
use std::borrow::Borrow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hive_core::delivery::{Delivery, State};
use hive_core::event::DeliveryLeased;
use hive_core::id::TurnId;
use hive_core::limits::ALONE_FROM_ATTEMPT;
use hive_core::settlement::Entry;

use super::handover::{Gate, Handover};
use super::serving::{Serving, take};
use super::settlements::{self, Results, settle_all};
use crate::engine::actor::check_started;
use crate::engine::actor::{Actor, check_group};
use crate::engine::{Engine, Refusal, token};
use crate::store::agent::AgentRow;
use crate::store::delivery::DeliveryRow;
use crate::store::event::{Fact, log};
use crate::store::lease::{self, Lease, LeaseRequest};
use crate::store::request::RequestKey;
use crate::store::waiter::Poll;
use crate::store::{Tx, delivery, inbox, turn};

/// The limits of a receive.
#[derive(Clone, Debug)]
pub struct Receive {
    /// At most this many, at least 1.
    pub max_deliveries: u32,
    /// At most this many bytes of bodies; the first always fits.
    pub max_bytes: Option<u64>,
    /// Maximum wait for the first delivery.
    pub wait: Duration,
    /// The duration of a consumer's lease.
    pub lease: Duration,
    /// The id of the tool call that receives.
    pub tool_use: Option<String>,
    /// The moment from which it leases nothing, because its answer would come too late.
    pub leases_until: Option<Instant>,
}

impl Receive {
    fn is_late(&self) -> bool {
        self.leases_until.is_some_and(|until| Instant::now() >= until)
    }
}

/// A delivery and its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The leased delivery.
    pub delivery: Delivery,
    /// The token of a consumer's lease; `None` if the turn settles it.
    pub token: Option<String>,
    /// The time until a consumer's lease ends; `None` if it lasts as long as its stream.
    pub remaining: Option<Duration>,
}

/// The deliveries of one receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The leased deliveries, in serving order.
    pub deliveries: Vec<Leased>,
    /// The number of further ready deliveries.
    pub pending: u32,
    /// Whether this turn's delivery is served alone.
    pub alone: bool,
}

/// Writes a lease, and returns the leased delivery.
pub(crate) fn claim(
    tx: &Tx<'_>,
    me: &AgentRow,
    mut row: DeliveryRow,
    lease: Lease,
) -> Result<Arc<DeliveryRow>, Refusal> {
    row.turn = lease.turn.or(row.turn);
    row.lease = Some(lease);
    let row = delivery::save(tx, row, State::Ready)?;
    let turn = row.lease.as_ref().and_then(|lease| lease.turn);
    let attempt = row.progress.attempt(false);
    let leased = DeliveryLeased { attempt, cause: row.progress.cause };
    log(tx, Fact::about(leased, me.key).message(row.message).turn(turn));
    Ok(row)
}

impl Engine {
    /// Leases mail, and waits for it if the request says so. The leases are requeued unless the
    /// handover is notified that the transport took the answer.
    pub async fn receive(
        &self,
        actor: Actor,
        request: RequestKey,
        receive: Receive,
    ) -> Result<(Received, Handover), Refusal> {
        let (received, _, handover) =
            self.settle_and_receive(actor, request, Vec::new(), |_| {}, receive).await?;
        Ok((received, handover))
    }

    /// Settles deliveries and leases what is ready, in one commit; only then it waits, if nothing
    /// was. The settlements stand, however the wait ends. `settled` is called after that commit.
    pub async fn settle_and_receive(
        &self,
        actor: Actor,
        request: RequestKey,
        entries: Vec<Entry>,
        settled: impl FnOnce(&Results) + Send,
        receive: Receive,
    ) -> Result<(Received, Results, Handover), Refusal> {
        actor.check_agent()?;
        settlements::check(&actor, &entries)?;
        let key = self.key_of(&actor.caller).await?;
        self.check_open()?;
        let deadline = Some(tokio::time::Instant::now() + receive.wait);
        let waits = !receive.wait.is_zero();
        let caller = actor.caller.clone();
        let handover = self.handovers.begin(key, request.clone());
        let (gate, is_repeat) = (handover.gate(), handover.is_repeat());
        let polled = Polled { actor, request, receive, gate, is_repeat };
        let results = Arc::new(Mutex::new(Results::new()));
        let poll = self.poll_receive(polled, entries, Arc::clone(&results));
        let waiter = self.store.wait_after_checks(key, poll).await;
        let mut settled = Some(settled);
        let mut note_settled = || {
            if let Some(settled) = settled.take() {
                settled(&results.lock().unwrap_or_else(PoisonError::into_inner));
            }
        };
        let received = self.wait_for(waiter, deadline, |_| {
            note_settled();
            waits
        });
        match self.noting(&caller, "receive", received.await).await {
            Ok(received) => {
                note_settled();
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                Ok((received, std::mem::take(&mut *results), handover))
            }
            // The commit may have happened.
            Err(refusal @ Refusal::Store(_)) => Err(refusal),
            Err(refusal) => {
                handover.close();
                Err(refusal)
            }
        }
    }
}

impl Engine {
    /// Returns the poll of a receive. The first one settles, and a receive that does not wait is
    /// over after it.
    fn poll_receive(
        &self,
        polled: Polled,
        entries: Vec<Entry>,
        results: Arc<Mutex<Results>>,
    ) -> impl FnMut(&Tx<'_>) -> Result<Poll<Received>, Refusal> + Send + 'static {
        let waits = !polled.receive.wait.is_zero();
        let limits = Arc::clone(&self.limits);
        let mut entries = Some(entries).filter(|entries| !entries.is_empty());
        move |tx| {
            let settle = |me: &AgentRow| {
                if let Some(entries) = entries.take() {
                    let settled = settle_all(tx, &limits, &polled.actor, me, &entries)?;
                    *results.lock().unwrap_or_else(PoisonError::into_inner) = settled;
                }
                Ok(())
            };
            Ok(match polled.poll(tx, settle)? {
                Poll::Pending { so_far, .. } if !waits || so_far.alone => Poll::Ready(so_far),
                polled @ (Poll::Ready(_) | Poll::Pending { .. } | Poll::Unchanged) => polled,
            })
        }
    }
}

/// A receive at the writer.
struct Polled {
    actor: Actor,
    request: RequestKey,
    receive: Receive,
    gate: Gate,
    /// Whether an earlier call with the id may still have to requeue its leases.
    is_repeat: bool,
}

impl Polled {
    /// Checks the receive, does the work that comes `before`, and leases what is due. Everything
    /// that can refuse the receive is checked before that work.
    fn poll(
        &self,
        tx: &Tx<'_>,
        before: impl FnOnce(&AgentRow) -> Result<(), Refusal>,
    ) -> Result<Poll<Received>, Refusal> {
        if !self.gate.enter() {
            return Err(Refusal::Draining);
        }
        let polled = self.poll_inside(tx, before);
        // Leases of an earlier call whose answer was taken stay with their client.
        if !matches!(&polled, Ok((Poll::Ready(_), is_replay)) if self.is_repeat || !is_replay) {
            self.gate.leave();
        }
        polled.map(|(polled, _)| polled)
    }

    /// Does the same inside the gate; also returns whether the answer repeats an earlier one.
    fn poll_inside(
        &self,
        tx: &Tx<'_>,
        before: impl FnOnce(&AgentRow) -> Result<(), Refusal>,
    ) -> Result<(Poll<Received>, bool), Refusal> {
        let Self { actor, request, receive, .. } = self;
        let me = actor.row(tx)?;
        check_group(&actor.caller, &me, "messaging")?;
        let turn = match (&actor.process_token, &me.session_token) {
            (None, Some(_)) => {
                return Err(Refusal::from(HarnessError::Serving { agent: me.name.clone() }));
            }
            (None, None) => None,
            (Some(_), _) => actor.turn(tx, &me)?,
        };
        let given_by = LeaseRequest::new(&request.fingerprint, &request.id);
        let is_given = !given_before(tx, &me, request, &given_by)?.is_empty();
        before(&me)?;
        // Read again, because the work before may have settled some.
        let rows = if is_given { lease::given_by(tx, me.key, &given_by)? } else { Vec::new() };
        if !rows.is_empty() {
            return Ok((Poll::Ready(received(tx, &me, &rows)?), true));
        }
        let nothing = |alone, next_due| {
            let pending = inbox::get(tx, me.key)?.ready_count;
            let so_far = Received { deliveries: Vec::new(), pending, alone };
            Ok((Poll::Pending { so_far, next_due }, false))
        };
        if turn.as_ref().is_some_and(|turn| turn.alone) {
            return nothing(true, None);
        }
        // Mail of a stopped agent waits, for a consumer as for a harness. A running turn may still
        // finish its work.
        if turn.is_none() && check_started(&me).is_err() || receive.is_late() {
            return nothing(false, None);
        }
        let rows = lease_due(tx, &me, turn.map(|turn| turn.id), receive, &given_by)?;
        if rows.is_empty() {
            return nothing(false, delivery::next_due(tx, me.key, tx.now)?);
        }
        Ok((Poll::Ready(received(tx, &me, &rows)?), false))
    }
}

/// Returns the live leases that an earlier receive with the same id gave; refuses another content.
fn given_before(
    tx: &Tx<'_>,
    me: &AgentRow,
    request: &RequestKey,
    given_by: &LeaseRequest,
) -> Result<Vec<DeliveryRow>, Refusal> {
    let rows = lease::given_by(tx, me.key, given_by)?;
    let same = |row: &DeliveryRow| {
        row.lease.as_ref().is_some_and(|lease| lease.request.as_ref() == Some(given_by))
    };
    if rows.iter().all(same) || hive_fault::planted!(RequestContentUnchecked) {
        Ok(rows)
    } else {
        Err(Refusal::RequestIdReused { id: request.id.clone() })
    }
}

/// Returns leased deliveries as the answer to a receive.
fn received(
    tx: &Tx<'_>,
    me: &AgentRow,
    rows: &[impl Borrow<DeliveryRow>],
) -> Result<Received, Refusal> {
    let deliveries =
        rows.iter().map(|row| leased(tx, me, row.borrow())).collect::<Result<_, _>>()?;
    let pending = inbox::get(tx, me.key)?.ready_count;
    Ok(Received { deliveries, pending, alone: false })
}

fn lease_due(
    tx: &Tx<'_>,
    me: &AgentRow,
    turn: Option<TurnId>,
    receive: &Receive,
    given_by: &LeaseRequest,
) -> Result<Vec<Arc<DeliveryRow>>, Refusal> {
    let mut rows: Vec<Arc<DeliveryRow>> = Vec::new();
    let mut bytes = 0;
    let most = receive.max_deliveries;
    let others = |most| Serving::new(tx, me.key, ALONE_FROM_ATTEMPT - 1, most);
    // A turn takes no delivery that is served alone; a consumer takes one only as its first and
    // then nothing else.
    let mut serving = match turn {
        Some(_) => others(most),
        None => Serving::new(tx, me.key, u32::MAX, most),
    };
    while rows.len() < most as usize {
        let Some(mut row) = serving.next()? else { break };
        if turn.is_none() && !rows.is_empty() && row.progress.is_alone() {
            serving = others(most - u32::try_from(rows.len()).unwrap_or(most));
            continue;
        }
        let is_full = receive.max_bytes.is_some_and(|max| bytes + row.body_bytes > max);
        if is_full && !rows.is_empty() {
            break;
        }
        take(tx, &mut row)?;
        let lease = if hive_fault::planted!(LeaseNeverEnds) {
            Duration::from_secs(1 << 30)
        } else {
            receive.lease
        };
        let token = delivery::lease_token(me.key, row.message, &token::of_lease());
        let lease = match turn {
            Some(turn) => Lease::of_turn(token, turn),
            None => Lease::of_consumer(token, tx.now.boot.after(lease), receive.lease),
        };
        let lease = lease::give(tx, me.key, lease, given_by);
        let row = claim(tx, me, row, lease)?;
        if let Some(turn) = turn {
            turn::carry(
                tx,
                turn,
                me.key,
                row.message,
                Some(receive.tool_use.as_deref().unwrap_or("")),
            )?;
        }
        bytes += row.body_bytes;
        let alone = row.progress.is_alone();
        rows.push(row);
        if alone {
            break;
        }
    }
    Ok(rows)
}

pub(super) fn leased(tx: &Tx<'_>, me: &AgentRow, row: &DeliveryRow) -> Result<Leased, Refusal> {
    let lease = row.lease.as_ref().filter(|lease| lease.turn.is_none());
    Ok(Leased {
        delivery: delivery::view_leased(tx, row, &me.name)?,
        token: lease.map(|lease| lease.token.clone()),
        remaining: lease
            .filter(|lease| lease.stream.is_none())
            .and_then(|lease| lease.until)
            .map(|until| until.since(tx.now.boot)),
    })
}
