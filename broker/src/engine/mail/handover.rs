//! Handovers: the leases of a receive, until the transport has taken the answer that carries them.
//!
//! ```text
//!   call ──► Waiting ──► Leasing ──► answer ──► taken
//!               │           │          │
//!             dropped    dropped    dropped ──► missed ──► requeued by the sweep, NOT_RECEIVED
//!               └──► nothing is leased any more
//! ```
//!
//! A call may end by its deadline, by a cancel or with its client between the commit of its leases
//! and the moment at which the transport takes the last piece of the answer. Calls with the same
//! request id share their leases. Invariant: these are requeued only once no call with the id is
//! open, and only if no answer of the id was taken. What the transport has taken counts as
//! received, because no unary call can know more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hive_core::delivery::{RedeliveryCause, Settlement};

use super::settle;
use crate::engine::{Engine, Refusal};
use crate::hints::Hints;
use crate::store::lease::{self, LeaseRequest};
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Tx, agent, turn};

/// The name of a receive: the caller and the request id.
type Key = (AgentKey, String);

/// The calls with a request id.
#[derive(Debug, Default)]
struct Shared {
    /// The number of open calls.
    open: usize,
    /// Whether the transport took an answer of one.
    is_taken: bool,
    /// Whether one that may have leased ended before its answer was taken.
    is_missed: bool,
}

#[derive(Debug, Default)]
struct Calls {
    shared: HashMap<Key, Shared>,
    /// Ids whose last call has ended and that may have leases which no client got.
    missed: Vec<(RequestKey, AgentKey)>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Taken,
    Missed,
    WithoutLeases,
}

/// The receives whose answers are on their way.
#[derive(Debug)]
pub(crate) struct Handovers {
    calls: Mutex<Calls>,
    hints: Arc<Hints>,
}

impl Handovers {
    pub(crate) fn new(hints: Arc<Hints>) -> Self {
        Self { calls: Mutex::default(), hints }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a call begins. It shares the leases of earlier calls with the same id.
    pub(crate) fn begin(self: &Arc<Self>, agent: AgentKey, request: RequestKey) -> Handover {
        let mut calls = self.lock();
        let shared = calls.shared.entry((agent, request.id.clone()));
        let is_repeat = matches!(shared, std::collections::hash_map::Entry::Occupied(_));
        shared.or_default().open += 1;
        drop(calls);
        Handover {
            handovers: Arc::clone(self),
            request,
            agent,
            is_repeat,
            phase: Arc::default(),
            is_over: false,
        }
    }

    /// Notes that a call has ended.
    fn end(&self, agent: AgentKey, request: &RequestKey, ended: Ended) {
        let key = (agent, request.id.clone());
        let mut calls = self.lock();
        let Some(shared) = calls.shared.get_mut(&key) else { return };
        shared.open = shared.open.saturating_sub(1);
        shared.is_taken |= ended == Ended::Taken;
        shared.is_missed |= ended == Ended::Missed;
        if shared.open > 0 && !hive_fault::planted!(LateReset) {
            return;
        }
        if shared.is_missed && !shared.is_taken {
            calls.missed.push((request.clone(), agent));
            drop(calls);
            self.hints.due.now();
        } else {
            calls.shared.remove(&key);
        }
    }

    /// Returns whether the leases of an id go back: no call with it is open any more, and no answer
    /// was taken.
    fn is_missed(&self, agent: AgentKey, id: &str) -> bool {
        if hive_fault::planted!(LateReset) {
            return true;
        }
        let calls = self.lock();
        let shared = calls.shared.get(&(agent, id.to_owned()));
        shared.is_some_and(|shared| shared.open == 0 && !shared.is_taken)
    }

    /// Forgets an id, unless a call with it is open again.
    fn forget(&self, agent: AgentKey, id: &str) {
        let mut calls = self.lock();
        let key = (agent, id.to_owned());
        if calls.shared.get(&key).is_some_and(|shared| shared.open == 0) {
            calls.shared.remove(&key);
        }
    }
}

/// The phases of a call, for its poll and for its end.
const WAITING: u8 = 0;
/// The poll is leasing, or has leased.
const LEASING: u8 = 1;
/// The call has ended: the poll leases nothing any more.
const ENDED: u8 = 2;

/// The poll's end of a handover.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<AtomicU8>);

impl Gate {
    /// Begins to lease; returns `false` if the call has ended.
    pub(crate) fn enter(&self) -> bool {
        // A poll that is repeated after an aborted batch has entered before.
        self.0
            .compare_exchange(WAITING, LEASING, Ordering::AcqRel, Ordering::Acquire)
            .map_or_else(|phase| phase == LEASING, |_| true)
    }

    /// Notes that nothing was leased.
    pub(crate) fn leave(&self) {
        // A call that has ended in the meantime was noted as missed, which does no harm.
        let _ = self.0.compare_exchange(LEASING, WAITING, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A receive whose answer the transport has not taken yet. If it is dropped, its leases are
/// requeued.
#[derive(Debug)]
#[must_use = "the leases are requeued if it is dropped"]
pub struct Handover {
    handovers: Arc<Handovers>,
    request: RequestKey,
    agent: AgentKey,
    /// Whether an earlier call with the id may still have to requeue its leases.
    is_repeat: bool,
    phase: Arc<AtomicU8>,
    is_over: bool,
}

impl Handover {
    pub(crate) fn gate(&self) -> Gate {
        Gate(Arc::clone(&self.phase))
    }

    /// Notes that the transport took the last piece of the answer: the client has the leases.
    pub fn taken(mut self) {
        self.end(Ended::Taken);
    }

    /// Ends the call of an answer without leases.
    pub(crate) fn close(mut self) {
        self.end(Ended::WithoutLeases);
    }

    fn end(&mut self, ended: Ended) {
        self.is_over = true;
        self.handovers.end(self.agent, &self.request, ended);
    }

    /// Returns whether an earlier call may still have to requeue the leases of this id.
    pub(crate) fn is_repeat(&self) -> bool {
        self.is_repeat
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        let phase = self.phase.swap(ENDED, Ordering::AcqRel);
        if !self.is_over {
            self.end(if phase == WAITING { Ended::WithoutLeases } else { Ended::Missed });
        }
    }
}

impl Engine {
    /// Requeues the leases of receives whose answer was never taken.
    pub async fn sweep_handovers(&self) -> Result<(), Refusal> {
        let missed = std::mem::take(&mut self.handovers.lock().missed);
        if missed.is_empty() {
            return Ok(());
        }
        let (handovers, limits) = (Arc::clone(&self.handovers), Arc::clone(&self.limits));
        let calls = missed.clone();
        let written = self
            .store
            .write(move |tx| {
                for (request, agent) in &calls {
                    if handovers.is_missed(*agent, &request.id) {
                        requeue(tx, &limits, request, *agent)?;
                    }
                }
                Ok::<_, Refusal>(())
            })
            .await;
        match &written {
            Ok(()) => {
                for (request, agent) in &missed {
                    self.handovers.forget(*agent, &request.id);
                }
            }
            Err(_) => self.handovers.lock().missed.extend(missed),
        }
        written
    }
}

/// Requeues the leases that a receive gave and that still live.
fn requeue(
    tx: &Tx<'_>,
    limits: &hive_core::limits::Limits,
    request: &RequestKey,
    owner: AgentKey,
) -> Result<(), Refusal> {
    let me = agent::by_key(tx, owner)?;
    for row in lease::given_by(tx, owner, &LeaseRequest::new(&request.fingerprint, &request.id))? {
        if let Some(turn) = row.lease.as_ref().and_then(|lease| lease.turn) {
            turn::uncarry(tx, turn, row.message)?;
        }
        let cause = RedeliveryCause::NotReceived;
        settle::settle(tx, limits, &me, row, Settlement::GiveBack(cause))?;
    }
    Ok(())
}
