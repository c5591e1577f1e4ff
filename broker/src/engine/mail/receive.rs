//! Receiving: leasing mail of an inbox, for a turn or for a consumer without a harness.
//!
//! Invariant: `pick` is the only way to lease a delivery, so lanes, backoff and "served alone"
//! apply to every receiver.

use crate::engine::error::HarnessError;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hive_core::delivery::{Delivery, Lane, State, next_lane, system_run_after};
use hive_core::event::DeliveryLeased;
use hive_core::id::{MessageId, TurnId};
use hive_core::limits::ALONE_FROM_ATTEMPT;
use hive_core::settlement::Entry;
use serde::{Deserialize, Serialize};

use super::handover::Handover;
use super::settlements::{self, Results, settle_all};
use crate::engine::actor::check_started;
use crate::engine::actor::{Actor, check_group};
use crate::engine::once::{keep, replay};
use crate::engine::{Engine, Refusal, token};
use crate::store::agent::AgentRow;
use crate::store::delivery::DeliveryRow;
use crate::store::event::{Fact, log};
use crate::store::lease::Lease;
use crate::store::request::RequestKey;
use crate::store::waiter::Poll;
use crate::store::{AgentKey, Tx, delivery, inbox, turn};

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

/// The stored answer for a replay.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LeaseAnswer {
    pub(super) leases: Vec<(MessageId, String)>,
}

/// Claims the next due delivery, in lane order. `failures_below` leaves out deliveries that are
/// served alone.
pub(crate) fn pick(
    tx: &Tx<'_>,
    agent: AgentKey,
    failures_below: u32,
) -> Result<Option<DeliveryRow>, Refusal> {
    let run = inbox::get(tx, agent)?.system_run;
    let first = if hive_fault::planted!(LanesMixed) { Lane::Normal } else { next_lane(run) };
    let second = if first == Lane::System { Lane::Normal } else { Lane::System };
    for lane in [first, second] {
        if let Some(mut row) = delivery::due(tx, agent, lane, tx.now, failures_below, 1)?.pop() {
            row.progress = row.progress.lease(tx.now).expect("what is due can be leased");
            inbox::set_system_run(tx, agent, system_run_after(run, lane))?;
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Writes a lease.
pub(crate) fn claim(
    tx: &Tx<'_>,
    me: &AgentRow,
    row: &mut DeliveryRow,
    lease: Lease,
) -> Result<(), Refusal> {
    row.turn = lease.turn.or(row.turn);
    row.lease = Some(lease);
    delivery::save(tx, row, State::Ready)?;
    let turn = row.lease.as_ref().and_then(|lease| lease.turn);
    let attempt = row.progress.attempt(false);
    let (leased, detail) =
        (DeliveryLeased { attempt, cause: row.progress.cause }, format!("attempt {attempt}"));
    Ok(log(tx, Fact::about(leased, me.key).message(row.message).turn(turn).detail(&detail))?)
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
        let polled = Arc::new((actor, request, receive));
        let limits = Arc::clone(&self.limits);
        let poll = move |tx: &Tx<'_>, (actor, request, receive): &(Actor, RequestKey, Receive)| {
            if !gate.enter() {
                return Err(Refusal::Draining);
            }
            let polled = poll_receive(tx, actor, request, receive);
            // Leases of an earlier call whose answer was taken stay with their client.
            if !matches!(&polled, Ok((Poll::Ready(_), is_replay)) if is_repeat || !is_replay) {
                gate.leave();
            }
            polled.map(|(polled, _)| polled)
        };
        let received = async {
            let mut results = Vec::new();
            if !entries.is_empty() {
                let (poll, polled) = (poll.clone(), Arc::clone(&polled));
                let first = self.store.write(move |tx| {
                    let me = polled.0.row(tx)?;
                    let results = settle_all(tx, &limits, &polled.0, &me, &entries)?;
                    Ok::<_, Refusal>((results, poll(tx, &polled)?))
                });
                let first = first.await?;
                settled(&first.0);
                match first {
                    (first, Poll::Pending { so_far, .. }) if !waits || so_far.alone => {
                        return Ok((so_far, first));
                    }
                    (first, Poll::Pending { .. }) => results = first,
                    (first, Poll::Ready(received)) => return Ok((received, first)),
                }
            }
            let waiter = self.store.wait(key, move |tx| poll(tx, &polled)).await;
            let worth_waiting = |so_far: &Received| waits && !so_far.alone;
            Ok((self.wait_for(waiter, deadline, worth_waiting).await?, results))
        };
        match self.noting(&caller, "receive", received.await).await {
            Ok((received, results)) => Ok((received, results, handover)),
            // The commit may have happened.
            Err(refusal @ Refusal::Store(_)) => Err(refusal),
            Err(refusal) => {
                handover.close();
                Err(refusal)
            }
        }
    }
}

/// Polls a receive; returns with the result whether it repeats an earlier answer.
fn poll_receive(
    tx: &Tx<'_>,
    actor: &Actor,
    request: &RequestKey,
    receive: &Receive,
) -> Result<(Poll<Received>, bool), Refusal> {
    let me = actor.row(tx)?;
    check_group(&actor.caller, &me, "messaging")?;
    let turn = match (&actor.process_token, &me.session_token) {
        (None, Some(_)) => return Err(Refusal::from(HarnessError::Serving { agent: me.name })),
        (None, None) => None,
        (Some(_), _) => actor.turn(tx, &me)?,
    };
    if let Some(answer) = replay::<LeaseAnswer>(tx, me.key, request)?
        && let Some(received) = leased_before(tx, &me, &answer)?
    {
        return Ok((Poll::Ready(received), true));
    }
    let nothing = |alone, next_due| {
        let pending = delivery::count(tx, me.key, State::Ready)?;
        let so_far = Received { deliveries: Vec::new(), pending, alone };
        Ok((Poll::Pending { so_far, next_due }, false))
    };
    if turn.as_ref().is_some_and(|turn| turn.alone) {
        return nothing(true, None);
    }
    // Mail of a stopped agent waits, for a consumer as for a harness. A running turn may still
    // finish its work.
    if turn.is_none() && check_started(&me).is_err() {
        return nothing(false, None);
    }
    if receive.is_late() {
        return nothing(false, None);
    }
    let rows = lease_due(tx, &me, turn.map(|turn| turn.id), receive)?;
    if rows.is_empty() {
        return nothing(false, delivery::next_due(tx, me.key, tx.now)?);
    }
    let leases = rows
        .iter()
        .filter_map(|row| row.lease.as_ref().map(|lease| (row.message, lease.token.clone())))
        .collect();
    keep(tx, me.key, request, &LeaseAnswer { leases })?;
    let deliveries = rows.iter().map(|row| leased(tx, row)).collect::<Result<_, _>>()?;
    let pending = delivery::count(tx, me.key, State::Ready)?;
    Ok((Poll::Ready(Received { deliveries, pending, alone: false }), false))
}

fn lease_due(
    tx: &Tx<'_>,
    me: &AgentRow,
    turn: Option<TurnId>,
    receive: &Receive,
) -> Result<Vec<DeliveryRow>, Refusal> {
    let mut rows: Vec<DeliveryRow> = Vec::new();
    let mut bytes = 0;
    while rows.len() < receive.max_deliveries as usize {
        // A turn takes no delivery that is served alone; a consumer takes one only as its first and
        // then nothing else.
        let first_of_consumer = turn.is_none() && rows.is_empty();
        let failures_below = if first_of_consumer { u32::MAX } else { ALONE_FROM_ATTEMPT - 1 };
        if let Some(max) = receive.max_bytes
            && !rows.is_empty()
            && let Some(next) = peek(tx, me.key, failures_below)?
            && bytes + next.body_bytes > max
        {
            break;
        }
        let Some(mut row) = pick(tx, me.key, failures_below)? else { break };
        let lease = if hive_fault::planted!(LeaseNeverEnds) {
            Duration::from_secs(1 << 30)
        } else {
            receive.lease
        };
        let token = delivery::lease_token(me.key, row.message, &token::new());
        let lease = match turn {
            Some(turn) => Lease::of_turn(token, turn),
            None => Lease::of_consumer(token, tx.now.boot.after(lease), receive.lease),
        };
        claim(tx, me, &mut row, lease)?;
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

/// Returns the delivery that `pick` would claim.
pub(super) fn peek(
    tx: &Tx<'_>,
    agent: AgentKey,
    failures_below: u32,
) -> Result<Option<DeliveryRow>, Refusal> {
    let first = next_lane(inbox::get(tx, agent)?.system_run);
    let second = if first == Lane::System { Lane::Normal } else { Lane::System };
    for lane in [first, second] {
        if let Some(row) = delivery::due(tx, agent, lane, tx.now, failures_below, 1)?.pop() {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Returns those leases again that still live; `None` if there are none.
fn leased_before(
    tx: &Tx<'_>,
    me: &AgentRow,
    answer: &LeaseAnswer,
) -> Result<Option<Received>, Refusal> {
    let mut deliveries = Vec::new();
    for (message, token) in &answer.leases {
        let row = delivery::get(tx, me.key, *message)?;
        let alive = row.filter(|row| {
            row.progress.state == State::Leased
                && row.lease.as_ref().is_some_and(|lease| lease.token == *token)
        });
        if let Some(row) = alive {
            deliveries.push(leased(tx, &row)?);
        }
    }
    if deliveries.is_empty() {
        return Ok(None);
    }
    let pending = delivery::count(tx, me.key, State::Ready)?;
    Ok(Some(Received { deliveries, pending, alone: false }))
}

pub(super) fn leased(tx: &Tx<'_>, row: &DeliveryRow) -> Result<Leased, Refusal> {
    let lease = row.lease.as_ref().filter(|lease| lease.turn.is_none());
    Ok(Leased {
        delivery: delivery::view(tx, row, tx.now)?,
        token: lease.map(|lease| lease.token.clone()),
        remaining: lease
            .filter(|lease| lease.stream.is_none())
            .and_then(|lease| lease.until)
            .map(|until| until.since(tx.now.boot)),
    })
}
