//! Searching: the words of messages and questions, found by the index and shown as the mail has
//! them.
//!
//! The index is brought up to date by steps of its own, after the commits and never inside one.
//! Invariant: an agent finds what it sent, received, asked or was asked, and of anything else not
//! even that it exists; what a caller may see is read from the mail, hit by hit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::caller::Caller;
use hive_core::limits::PAGE_BYTES_MAX;
use tokio::sync::Semaphore;

use super::{Engine, Refusal, messages};
use crate::store::search::{Fault, Index, Query, after, gone, hit};
pub use crate::store::search::{Hit, SearchError};

/// Most searches at once; more callers wait. Each takes a thread, and mail is read on the same
/// ones.
const SEARCHES_MAX: usize = 2;
/// How many proposals of the index are looked at in one go.
const PROPOSALS: u32 = 64;
/// After so many proposals a page ends, however few of them were shown.
const PROPOSALS_MAX: u32 = 16 * PROPOSALS;
/// Most rows of one step of taking pruned mail out of the index.
const PRUNE_ROWS: u32 = 500;

/// What to search for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Words, phrases, beginnings of words.
    pub query: String,
    /// Only what concerns this agent; empty: everything that the caller may see.
    pub agent: String,
    /// Only what is older than this number.
    pub before: Option<u64>,
    /// At most this many.
    pub rows: u32,
}

/// The index, and who uses it now.
#[derive(Debug)]
pub(super) struct Searching {
    index: Arc<Index>,
    places: Semaphore,
    /// Held during a step.
    step: tokio::sync::Mutex<()>,
    /// Where taking out goes on.
    pruned: Mutex<u64>,
}

impl Searching {
    pub(super) fn new(index: Index) -> Self {
        let places = Semaphore::new(SEARCHES_MAX);
        Self {
            index: Arc::new(index),
            places,
            step: tokio::sync::Mutex::default(),
            pruned: Mutex::default(),
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Field { field: "query", problem: fault.to_string() }
    }
}

impl Engine {
    /// What has these words, newest first; and behind which number the next page begins, if there
    /// is one.
    pub async fn search_messages(
        &self,
        caller: Caller,
        search: Search,
    ) -> Result<(Vec<Hit>, Option<u64>), Refusal> {
        let query = Query::parse(&search.query)?;
        let place = self.searching.places.acquire().await;
        let index = Arc::clone(&self.searching.index);
        let found =
            self.store.read(move |conn, _| page(conn, &index, &caller, &query, &search)).await;
        drop(place);
        found
    }

    /// Brings the index one step further; answers whether there is more.
    pub async fn index_search(&self) -> Result<bool, Refusal> {
        let _step = self.searching.step.lock().await;
        let place = self.on_index(Index::place).await?;
        let behind = place.clone();
        let Some(batch) =
            self.store.read(move |conn, _| Ok::<_, Refusal>(after(conn, &behind)?)).await?
        else {
            tracing::info!("the search index does not fit the mail and is made anew from it");
            self.on_index(|index| {
                index.forget();
                Ok(())
            })
            .await?;
            return Ok(true);
        };
        let more = batch.more;
        self.on_index(move |index| index.put(&place, &batch)).await?;
        Ok(more)
    }

    /// Takes one step of what was pruned out of the index; answers whether there is more. Nothing
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

    /// Waits until the index has to be made anew.
    pub async fn index_wanted(&self) {
        self.searching.index.wanted.notified().await;
    }

    /// Works on the index, on a thread that may block.
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
            // What was pruned, and what the index has and the caller may not see, is passed over as
            // if it were not there.
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
