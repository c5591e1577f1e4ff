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
//! and the moment at which the transport takes the last piece of the answer. Invariant: only the
//! newest call with a request id requeues the leases of that id, and only if no answer of the id
//! was taken. What the transport has taken counts as received, because no unary call can know more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hive_core::delivery::{RedeliveryCause, Settlement, State};

use super::receive::LeaseAnswer;
use super::settle;
use crate::engine::once::kept;
use crate::engine::{Engine, Refusal};
use crate::hints::Hints;
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Tx, agent, delivery, turn};

/// The name of a receive: the caller and the request id.
type Key = (AgentKey, String);

/// The newest open call with a request id.
#[derive(Clone, Copy, Debug)]
struct Newest {
    number: u64,
    /// Whether the transport took an answer of an earlier call with the id.
    is_taken: bool,
}

#[derive(Debug, Default)]
struct Calls {
    last: u64,
    newest: HashMap<Key, Newest>,
    /// Calls that ended before their answer was taken.
    missed: Vec<(RequestKey, AgentKey, u64)>,
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

    /// Notes that a call begins. It takes over the leases of an earlier call with the same id.
    pub(crate) fn begin(self: &Arc<Self>, agent: AgentKey, request: RequestKey) -> Handover {
        let mut calls = self.lock();
        calls.last += 1;
        let number = calls.last;
        let newest = calls.newest.entry((agent, request.id.clone()));
        let is_repeat = matches!(newest, std::collections::hash_map::Entry::Occupied(_));
        newest.or_insert(Newest { number, is_taken: false }).number = number;
        drop(calls);
        Handover {
            handovers: Arc::clone(self),
            request,
            agent,
            number,
            is_repeat,
            phase: Arc::default(),
            is_over: false,
        }
    }

    /// Returns whether the leases of this call go back: no newer call has taken them over, and no
    /// answer with them was taken.
    fn is_missed(&self, agent: AgentKey, id: &str, number: u64) -> bool {
        if hive_fault::planted!(LateReset) {
            return true;
        }
        let newest = self.lock().newest.get(&(agent, id.to_owned())).copied();
        newest.is_some_and(|newest| newest.number == number && !newest.is_taken)
    }

    /// Forgets a call, unless a newer one has its id.
    fn forget(&self, agent: AgentKey, id: &str, number: u64) {
        let mut calls = self.lock();
        let key = (agent, id.to_owned());
        if calls.newest.get(&key).is_some_and(|newest| newest.number == number) {
            calls.newest.remove(&key);
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
    number: u64,
    /// Whether an earlier call with the id had not ended when this one began.
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
        self.is_over = true;
        let key = (self.agent, self.request.id.clone());
        if let Some(newest) = self.handovers.lock().newest.get_mut(&key) {
            newest.is_taken = true;
        }
        self.handovers.forget(self.agent, &self.request.id, self.number);
    }

    /// Ends the call of an answer without leases.
    pub(crate) fn close(mut self) {
        self.is_over = true;
        self.handovers.forget(self.agent, &self.request.id, self.number);
    }

    /// Returns whether an earlier call may still have to requeue the leases of this id.
    pub(crate) fn is_repeat(&self) -> bool {
        self.is_repeat
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        let phase = self.phase.swap(ENDED, Ordering::AcqRel);
        if self.is_over {
            return;
        }
        // An earlier call whose leases this one took over may have leased before.
        if phase == WAITING && !self.is_repeat {
            return self.handovers.forget(self.agent, &self.request.id, self.number);
        }
        self.handovers.lock().missed.push((self.request.clone(), self.agent, self.number));
        self.handovers.hints.due.notify_one();
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
                for (request, agent, number) in &calls {
                    if handovers.is_missed(*agent, &request.id, *number) {
                        requeue(tx, &limits, request, *agent)?;
                    }
                }
                Ok::<_, Refusal>(())
            })
            .await;
        match &written {
            Ok(()) => {
                for (request, agent, number) in &missed {
                    self.handovers.forget(*agent, &request.id, *number);
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
    let Some(LeaseAnswer { leases }) = kept(tx, owner, request)? else { return Ok(()) };
    let me = agent::by_key(tx, owner)?;
    for (message, token) in leases {
        let Some(row) = delivery::get(tx, owner, message)? else { continue };
        let lease = row.lease.as_ref().filter(|lease| lease.token == token);
        let Some(lease) = lease.filter(|_| row.progress.state == State::Leased) else { continue };
        if let Some(turn) = lease.turn {
            turn::uncarry(tx, turn, message)?;
        }
        let cause = RedeliveryCause::NotReceived;
        settle::settle(tx, limits, &me, row, Settlement::GiveBack(cause))?;
    }
    Ok(())
}
