//! The streams that are open, and those that broke.
//!
//! Invariant: an agent and an id have one newest stream; what a connection has taken is handed over
//! to the stream that replaces its own.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hive_core::limits::STREAMS_OPEN_MAX;
use hive_core::time::BootTime;
use tokio_util::sync::CancellationToken;

use crate::hints::Hints;
use crate::map::Map;
use crate::store::AgentKey;
use crate::store::delivery::DeliveryRow;

/// The name of a stream: the agent and the client's id.
pub(super) type Key = (AgentKey, String);

/// The leases that the transport has taken.
#[derive(Clone, Debug)]
pub struct Taken(Arc<Mutex<Noted>>);

#[derive(Debug)]
struct Noted {
    /// Whether these are all leases of the stream, because it has only those that a client took on
    /// an earlier one, and has not listed them yet.
    is_all: bool,
    /// Otherwise their tokens.
    tokens: HashSet<String>,
}

impl Taken {
    /// Returns the note of a stream whose leases, if any, were taken before it was opened.
    pub(super) fn all() -> Self {
        Self(Arc::new(Mutex::new(Noted { is_all: true, tokens: HashSet::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the transport has taken these leases.
    pub fn add(&self, tokens: impl IntoIterator<Item = String>) {
        self.lock().tokens.extend(tokens);
    }

    /// Notes the leases with which a stream was opened. From now on there are others.
    pub(super) fn listed(&self, tokens: impl IntoIterator<Item = String>) {
        let mut noted = self.lock();
        if std::mem::take(&mut noted.is_all) {
            noted.tokens.extend(tokens);
        }
    }

    pub(super) fn has(&self, row: &DeliveryRow) -> bool {
        let noted = self.lock();
        noted.is_all || token_of(row).is_some_and(|token| noted.tokens.contains(token))
    }

    /// Returns how many leases it knows.
    pub(super) fn count(&self) -> usize {
        self.lock().tokens.len()
    }

    /// Forgets all leases but these.
    pub(super) fn keep(&self, rows: &[DeliveryRow]) {
        let live: HashSet<&str> = rows.iter().filter_map(token_of).collect();
        self.lock().tokens.retain(|token| live.contains(token.as_str()));
    }
}

/// Returns the token of a delivery's lease.
pub(super) fn token_of(row: &DeliveryRow) -> Option<&str> {
    row.lease.as_ref().map(|lease| lease.token.as_str())
}

/// The newest stream of an id.
#[derive(Debug)]
struct Newest {
    number: u64,
    replaced: CancellationToken,
    taken: Taken,
}

/// A stream that ended otherwise than by its client.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) key: Key,
    pub(super) number: u64,
    pub(super) since: BootTime,
    pub(super) grace: Duration,
    pub(super) taken: Taken,
}

#[derive(Debug, Default)]
struct Registry {
    last: u64,
    newest: Map<AgentKey, HashMap<String, Newest>>,
    broken: Vec<Broken>,
}

impl Registry {
    fn is_newest(&self, (agent, id): &Key, number: u64) -> bool {
        let newest = self.newest.get(agent).and_then(|own| own.get(id));
        newest.is_some_and(|newest| newest.number == number)
    }
}

/// The open streams of deliveries.
#[derive(Debug)]
pub(crate) struct Streams {
    open: Mutex<Registry>,
    hints: Arc<Hints>,
}

impl Streams {
    pub(crate) fn new(hints: Arc<Hints>) -> Self {
        Self { open: Mutex::default(), hints }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a stream. An older one with its id is replaced, and hands over what it knows.
    /// Returns `None` if the agent has too many.
    pub(super) fn begin(&self, key: &Key) -> Option<(u64, CancellationToken, Taken)> {
        let mut open = self.lock();
        open.last += 1;
        let (number, replaced) = (open.last, CancellationToken::new());
        let own = open.newest.entry(key.0).or_default();
        let older = own.remove(&key.1);
        if own.len() >= STREAMS_OPEN_MAX {
            return None;
        }
        let taken = older.as_ref().map_or_else(Taken::all, |older| older.taken.clone());
        let newest = Newest { number, replaced: replaced.clone(), taken: taken.clone() };
        own.insert(key.1.clone(), newest);
        drop(open);
        if let Some(older) = &older {
            older.replaced.cancel();
        }
        Some((number, replaced, taken))
    }

    pub(super) fn is_newest(&self, key: &Key, number: u64) -> bool {
        self.lock().is_newest(key, number)
    }

    /// Forgets a stream, unless a newer one has its id.
    pub(super) fn forget(&self, key: &Key, number: u64) {
        let mut open = self.lock();
        if open.is_newest(key, number)
            && let Some(own) = open.newest.get_mut(&key.0)
        {
            own.remove(&key.1);
            if own.is_empty() {
                open.newest.remove(&key.0);
            }
        }
    }

    /// Notes a stream that broke; the sweep of leases is notified.
    pub(super) fn broke(&self, broken: Broken) {
        self.put_back(vec![broken]);
        self.hints.due.now();
    }

    /// Notes streams whose end could not be written. The sweep retries in its own time.
    pub(super) fn put_back(&self, broken: Vec<Broken>) {
        self.lock().broken.extend(broken);
    }

    pub(super) fn take_broken(&self) -> Vec<Broken> {
        std::mem::take(&mut self.lock().broken)
    }
}
