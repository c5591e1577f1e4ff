//! Searching: the index finds messages and questions by their words, and the mail provides the
//! hits.
//!
//! Separate steps update the index after the commits, never inside one. Invariant: an agent finds
//! what it sent, received, asked or was asked, and cannot tell whether anything else exists. The
//! mail decides hit by hit what a caller may see.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::caller::Caller;
use hive_core::limits::PAGE_BYTES_MAX;
use tokio::sync::Semaphore;

use super::messages;
use crate::engine::{Engine, Refusal};
use crate::store::search::{Fault, Index, Query, after, gone, hit};
pub use crate::store::search::{Hit, SearchError};

/// Most searches at once; more callers wait. Each takes a thread, and mail is read on the same
/// ones.
const SEARCHES_MAX: usize = 2;
/// Proposals of the index that one step checks.
const PROPOSALS: u32 = 64;
/// Most proposals for one page; at this number it ends, however few were shown.
const PROPOSALS_MAX: u32 = 16 * PROPOSALS;
/// How long the first search waits until the index is made.
const FIRST_MAX: Duration = Duration::from_secs(2);
/// Most rows of one step that removes pruned mail from the index.
const PRUNE_ROWS: u32 = 500;

/// The query and the filters of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Words, phrases, beginnings of words.
    pub query: String,
    /// Only items that concern this agent; empty: all that the caller may see.
    pub agent: String,
    /// Only items older than this number.
    pub before: Option<u64>,
    /// At most this many items.
    pub rows: u32,
}

/// The index and its users.
#[derive(Debug)]
pub(crate) struct Searching {
    index: Arc<Index>,
    slots: Semaphore,
    /// Held during a step.
    step: tokio::sync::Mutex<()>,
    /// The number at which the next removal step begins.
    pruned: Mutex<u64>,
}

impl Searching {
    pub(crate) fn new(index: Index) -> Self {
        let slots = Semaphore::new(SEARCHES_MAX);
        Self {
            index: Arc::new(index),
            slots,
            step: tokio::sync::Mutex::default(),
            pruned: Mutex::default(),
        }
    }

    /// Deletes the index; it is made again from the mail.
    pub(crate) fn forget(&self) {
        self.index.forget();
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Field { field: "query", problem: fault.to_string() }
    }
}

impl Engine {
    /// Returns the items that match, newest first, and the number after which the next page begins,
    /// if there is one.
    pub async fn search_messages(
        &self,
        caller: Caller,
        search: Search,
    ) -> Result<(Vec<Hit>, Option<u64>), Refusal> {
        let query = Query::parse(&search.query)?;
        if self.searching.index.begin_use() {
            self.make_index().await?;
        }
        let slot = self.searching.slots.acquire().await;
        let index = Arc::clone(&self.searching.index);
        let found =
            self.store.read(move |conn, _| page(conn, &index, &caller, &query, &search)).await;
        drop(slot);
        found
    }

    /// Makes the index for the first search. If there is much mail, the search ends before, and the
    /// index is completed in the background.
    async fn make_index(&self) -> Result<(), Refusal> {
        let made = tokio::time::timeout(FIRST_MAX, async {
            while self.index_search().await? {}
            Ok(())
        });
        let made = made.await;
        self.searching.index.wanted.notify_one();
        // A search in an index that is not complete is refused.
        made.unwrap_or(Ok(()))
    }

    /// Returns whether anything was ever searched, so that the index is kept up to date.
    #[must_use]
    pub fn is_search_used(&self) -> bool {
        self.searching.index.is_used()
    }

    /// Updates the index by one step; returns whether there is more.
    pub async fn index_search(&self) -> Result<bool, Refusal> {
        let _step = self.searching.step.lock().await;
        let position = self.on_index(Index::position).await?;
        let behind = position.clone();
        let Some(batch) =
            self.store.read(move |conn, _| Ok::<_, Refusal>(after(conn, &behind)?)).await?
        else {
            tracing::info!("the search index does not fit the mail and is rebuilt from it");
            self.on_index(|index| {
                index.forget();
                Ok(())
            })
            .await?;
            return Ok(true);
        };
        let more = batch.more;
        self.on_index(move |index| index.put(&position, &batch)).await?;
        Ok(more)
    }

    /// Removes pruned mail from the index by one step; returns whether there is more. Nothing
    /// younger than `keep` was pruned.
    pub async fn prune_search(&self, keep: Duration) -> Result<bool, Refusal> {
        let from = *self.searching.pruned.lock().unwrap_or_else(PoisonError::into_inner);
        let ids = self.on_index(move |index| index.ids_after(from, PRUNE_ROWS)).await?;
        let (last, young) = (ids.last().copied(), self.clock.now().wall.before(keep));
        let (gone, end) =
            self.store.read(move |conn, _| Ok::<_, Refusal>(gone(conn, &ids, young)?)).await?;
        if !gone.is_empty() {
            self.on_index(move |index| index.remove(&gone)).await?;
        }
        let next = last.filter(|_| !end);
        *self.searching.pruned.lock().unwrap_or_else(PoisonError::into_inner) = next.unwrap_or(0);
        Ok(next.is_some())
    }

    /// Waits until the index has to be made or rebuilt.
    pub async fn index_wanted(&self) {
        self.searching.index.wanted.notified().await;
    }

    /// Runs work on the index, on a thread that may block.
    async fn on_index<T, F>(&self, work: F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: FnOnce(&Index) -> Result<T, SearchError> + Send + 'static,
    {
        let index = Arc::clone(&self.searching.index);
        Ok(self.store.blocking(move || work(&index)).await??)
    }
}

fn page(
    conn: &rusqlite::Connection,
    index: &Index,
    caller: &Caller,
    query: &Query,
    search: &Search,
) -> Result<(Vec<Hit>, Option<u64>), Refusal> {
    let scope = messages::scope(conn, caller, &search.agent)?;
    let words = query.expression(scope);
    let (mut hits, mut bytes, mut looked_at, mut before) = (Vec::<Hit>::new(), 0, 0, search.before);
    loop {
        let ids = index.find(&words, before, PROPOSALS)?;
        for id in &ids {
            // Pruned items, and items that the caller may not see, are skipped as if they did not
            // exist.
            let Some(hit) = hit(conn, *id, scope)? else { continue };
            bytes += hit.bytes();
            if hits.len() == search.rows as usize || (bytes > PAGE_BYTES_MAX && !hits.is_empty()) {
                let next = hits.last().map(Hit::id);
                return Ok((hits, next));
            }
            hits.push(hit);
        }
        looked_at += PROPOSALS;
        before = ids.last().copied();
        if ids.len() < PROPOSALS as usize {
            return Ok((hits, None));
        }
        if looked_at >= PROPOSALS_MAX {
            return Ok((hits, before));
        }
    }
}
