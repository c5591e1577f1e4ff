//! Ends of streams: a client that closes its side, a connection that breaks, a harness that
//! attaches.
//!
//! Invariant: what the transport took has its grace unless the client closed its side; the rest is
//! requeued without an attempt.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hive_core::delivery::{LeaseEnd, RedeliveryCause, Settlement, State};
use hive_core::limits::Limits;

use super::registry::Broken;
use super::{DeliveryStream, STEP};
use crate::engine::mail::settle;
use crate::engine::{Engine, Refusal};
use crate::store::agent::{self, AgentRow};
use crate::store::delivery::DeliveryRow;
use crate::store::{Tx, stream};

impl DeliveryStream {
    /// Requeues some of its leases for its client, which takes no more; returns whether more are
    /// left. From the first call on it leases nothing.
    pub async fn release_some(&mut self) -> Result<bool, Refusal> {
        self.over.store(true, Ordering::SeqCst);
        let (streams, limits) = (Arc::clone(&self.streams), Arc::clone(&self.engine.limits));
        let (key, number) = (self.key.clone(), self.number);
        let released = self.engine.store.write(move |tx| {
            if !streams.is_newest(&key, number) {
                return Ok(false);
            }
            let me = agent::by_key(tx, key.0)?;
            let rows = stream::leased(tx, key.0, Some(&key.1))?;
            let is_more = rows.len() > STEP as usize;
            for row in rows.into_iter().take(STEP as usize) {
                release(tx, &limits, &me, row)?;
            }
            Ok::<_, Refusal>(is_more)
        });
        released.await
    }

    /// Ends it for its client, which takes no more: the rest of its leases is requeued.
    pub async fn close(mut self) -> Result<(), Refusal> {
        while self.release_some().await? {}
        self.is_closed = true;
        self.streams.forget(&self.key, self.number);
        Ok(())
    }
}

impl Drop for DeliveryStream {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        self.over.store(true, Ordering::SeqCst);
        let broken = Broken {
            key: self.key.clone(),
            number: self.number,
            since: self.engine.clock.now().boot,
            grace: self.grace,
            taken: self.taken.clone(),
        };
        self.streams.broke(broken);
    }
}

impl Engine {
    /// Requeues what broken streams leased and no connection took, and begins the grace of the
    /// rest.
    pub async fn sweep_streams(&self) -> Result<(), Refusal> {
        let mut broken = self.delivery_streams.take_broken();
        while let Some(next) = broken.last().cloned() {
            match self.orphan_some(next.clone()).await {
                Ok(true) => {}
                Ok(false) => {
                    self.delivery_streams.forget(&next.key, next.number);
                    broken.pop();
                }
                Err(refusal) => {
                    self.delivery_streams.put_back(broken);
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }

    /// Requeues some of what a broken stream leased and no connection took; once none is left, the
    /// grace of the rest begins. Returns whether more is left.
    async fn orphan_some(&self, broken: Broken) -> Result<bool, Refusal> {
        let (streams, limits) = (Arc::clone(&self.delivery_streams), Arc::clone(&self.limits));
        let orphaned = self.store.write(move |tx| {
            if streams.is_newest(&broken.key, broken.number) {
                return orphan(tx, &limits, &broken);
            }
            Ok(false)
        });
        orphaned.await
    }
}

/// Requeues all leases of streams of an agent, without an attempt.
pub(crate) fn requeue_all(tx: &Tx<'_>, limits: &Limits, me: &AgentRow) -> Result<(), Refusal> {
    for row in stream::leased(tx, me.key, None)? {
        settle::settle(tx, limits, me, row, Settlement::GiveBack(RedeliveryCause::Drained))?;
    }
    Ok(())
}

fn orphan(tx: &Tx<'_>, limits: &Limits, broken: &Broken) -> Result<bool, Refusal> {
    let (agent, id) = &broken.key;
    let me = agent::by_key(tx, *agent)?;
    let (taken, untaken): (Vec<_>, Vec<_>) =
        stream::leased(tx, *agent, Some(id))?.into_iter().partition(|row| broken.taken.has(row));
    let is_more = untaken.len() > STEP as usize;
    for row in untaken.into_iter().take(STEP as usize) {
        let cause = RedeliveryCause::NotReceived;
        settle::settle(tx, limits, &me, row, Settlement::GiveBack(cause))?;
    }
    if !is_more && !taken.is_empty() && !hive_fault::planted!(GraceNeverEnds) {
        let until = broken.since.after(broken.grace);
        stream::begin_grace(tx, *agent, id, until)?;
    }
    Ok(is_more)
}

/// Requeues a delivery that its holder did not begin.
fn release(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    mut row: DeliveryRow,
) -> Result<State, Refusal> {
    if let Some(lease) = &mut row.lease {
        lease.end = Some(LeaseEnd::Released);
    }
    settle::settle(tx, limits, me, row, Settlement::GiveBack(RedeliveryCause::NotReceived))
}
