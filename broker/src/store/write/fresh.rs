//! What the commands of a batch have changed and not written: open deliveries that are new or
//! leased, settled ones, answers to requests, events, and messages.
//!
//! These rows are written together, in the order of their tables, before the commit. Most new
//! deliveries are leased in the batch that accepts them, and are then written once. Invariant: a
//! statement that could read these rows runs after they are written. A command that can be undone
//! begins when all are written, so undoing it removes no row of an earlier one.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hive_core::delivery::State;
use hive_core::id::MessageId;
use hive_core::time::WallTime;
use rusqlite::Result;

use crate::store::key::AgentKey;
use crate::store::row::delivery::{self, DeliveryRow, is_ready, queue_of};
use crate::store::row::event::{self, EventRow};
use crate::store::row::message::MessageRow;
use crate::store::row::request::{Entry, Series};
use crate::store::row::settled;
use crate::store::statement::{ROWS_AT_ONCE, Statements};
use crate::store::write::messages::Messages;
use crate::store::write::requests::Requests;

#[derive(Debug, Default)]
pub(in crate::store) struct Fresh {
    inboxes: RefCell<BTreeMap<AgentKey, Inbox>>,
    settled: RefCell<Vec<Arc<DeliveryRow>>>,
    events: RefCell<Vec<EventRow>>,
    pub(in crate::store) requests: Requests,
    pub(in crate::store) messages: Messages,
    /// Changes since the start.
    changes: Cell<u64>,
}

/// What has changed in an inbox.
#[derive(Debug, Default)]
struct Inbox {
    /// Open deliveries that are not written, or not as they are now.
    open: BTreeMap<MessageId, Arc<DeliveryRow>>,
    /// Rows in the file that are no more, by queue and message.
    gone: BTreeSet<(i64, MessageId)>,
}

impl Inbox {
    /// Notes that a delivery, which had been read in a state, is not as it was.
    fn leave(&mut self, row: &DeliveryRow, before: State) {
        if self.open.remove(&row.message).is_none() {
            self.gone.insert((queue_of(row.lane, before), row.message));
        }
    }
}

impl Fresh {
    fn changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// Returns the number of changes that commands have made so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Returns whether no row is to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.inboxes.borrow().is_empty()
            && self.messages.are_written()
            && self.settled.borrow().is_empty()
            && self.events.borrow().is_empty()
            && self.requests.is_empty()
    }

    /// Returns whether the rows of an inbox are not as memory has them.
    pub(in crate::store) fn has(&self, agent: AgentKey) -> bool {
        self.inboxes.borrow().contains_key(&agent)
    }

    /// Adds a ready delivery of a new message.
    pub(in crate::store) fn add(&self, row: DeliveryRow) {
        self.changed();
        let mut inboxes = self.inboxes.borrow_mut();
        inboxes.entry(row.agent).or_default().open.insert(row.message, Arc::new(row));
    }

    /// Changes an open delivery that had been read in the state `before`.
    pub(in crate::store) fn change(&self, row: Arc<DeliveryRow>, before: State) {
        self.changed();
        let mut inboxes = self.inboxes.borrow_mut();
        let inbox = inboxes.entry(row.agent).or_default();
        inbox.leave(&row, before);
        inbox.open.insert(row.message, row);
    }

    /// Settles a delivery that had been read in the state `before`.
    pub(in crate::store) fn settle(&self, row: Arc<DeliveryRow>, before: State) {
        self.changed();
        self.inboxes.borrow_mut().entry(row.agent).or_default().leave(&row, before);
        self.settled.borrow_mut().push(row);
    }

    pub(in crate::store) fn add_event(&self, row: EventRow) {
        self.changed();
        self.events.borrow_mut().push(row);
    }

    /// Adds the answer to a counted request.
    pub(in crate::store) fn add_answer(&self, series: Series, entry: Entry) {
        self.changed();
        self.requests.add(series, entry);
    }

    /// Adds a message of one recipient, whose text is not longer than [`BODY_BYTES_MAX`].
    ///
    /// [`BODY_BYTES_MAX`]: super::messages::BODY_BYTES_MAX
    pub(in crate::store) fn add_message(&self, row: MessageRow) {
        self.changed();
        self.messages.add(row);
    }

    /// Returns the ready deliveries of an agent that are not written and that are wanted, with the
    /// number of all.
    pub(in crate::store) fn ready_of(
        &self,
        agent: AgentKey,
        wanted: impl Fn(&DeliveryRow) -> bool,
    ) -> (Vec<DeliveryRow>, usize) {
        let inboxes = self.inboxes.borrow();
        let open = inboxes.get(&agent).into_iter().flat_map(|inbox| inbox.open.values());
        let (mut found, mut count) = (Vec::new(), 0);
        for row in open.filter(|row| row.progress.state == State::Ready) {
            count += 1;
            if wanted(row) {
                found.push(DeliveryRow::clone(row));
            }
        }
        (found, count)
    }

    /// Returns how many ready deliveries of an inbox, as the file has them, are no more.
    pub(in crate::store) fn gone_count(&self, agent: AgentKey) -> usize {
        let inboxes = self.inboxes.borrow();
        let gone = inboxes.get(&agent).into_iter().flat_map(|inbox| &inbox.gone);
        gone.filter(|(queue, _)| is_ready(*queue)).count()
    }

    /// Returns whether a ready delivery, as the file has it, is no more.
    pub(in crate::store) fn is_gone(&self, row: &DeliveryRow) -> bool {
        let inboxes = self.inboxes.borrow();
        let key = (queue_of(row.lane, State::Ready), row.message);
        inboxes.get(&row.agent).is_some_and(|inbox| inbox.gone.contains(&key))
    }

    /// Writes all rows. If that fails, the batch is aborted.
    pub(super) fn write_back(&self, to: &impl Statements, now: WallTime) -> Result<()> {
        self.messages.write_back(to)?;
        write_open(to, &self.inboxes.take())?;
        let mut settled = self.settled.take();
        settled.sort_unstable_by_key(|row| (row.message, row.agent));
        settled::insert(to, &settled)?;
        self.requests.write_back(to, now)?;
        event::insert(to, &self.events.take())
    }

    /// Notes that the batch, which was written, is on disk.
    pub(super) fn committed(&self) {
        self.messages.committed();
    }

    /// Forgets what a failed command has made, before which all was written; `requests` is the mark
    /// of the requests at that time.
    pub(super) fn reset(&self, requests: u64) {
        self.forget_rows();
        self.requests.reset(requests);
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.forget_rows();
        self.requests.clear();
    }

    fn forget_rows(&self) {
        self.inboxes.borrow_mut().clear();
        self.settled.borrow_mut().clear();
        self.events.borrow_mut().clear();
        self.messages.clear();
    }
}

/// Writes what has changed in inboxes. Where that is much, rows are removed and added in turns: if
/// all were removed first, SQLite would merge pages that the new rows then split again.
fn write_open(to: &impl Statements, inboxes: &BTreeMap<AgentKey, Inbox>) -> Result<()> {
    let mut few = Vec::new();
    for (agent, inbox) in inboxes {
        let mut open: Vec<&DeliveryRow> = inbox.open.values().map(Arc::as_ref).collect();
        open.sort_unstable_by_key(|row| (queue_of(row.lane, row.progress.state), row.message));
        let remove =
            |(queue, message): &(i64, MessageId)| delivery::delete(to, *agent, *queue, *message);
        // Such as an extended lease: its old row goes before any new one is added.
        let stays = |(queue, message): &&(i64, MessageId)| {
            let row = inbox.open.get(message);
            row.is_some_and(|row| queue_of(row.lane, row.progress.state) == *queue)
        };
        inbox.gone.iter().filter(stays).try_for_each(remove)?;
        let mut gone = inbox.gone.iter().filter(|place| !stays(place));
        let (many, rest) = open.as_chunks::<ROWS_AT_ONCE>();
        for rows in many {
            gone.by_ref().take(ROWS_AT_ONCE).try_for_each(remove)?;
            delivery::insert(to, rows)?;
        }
        gone.try_for_each(remove)?;
        few.extend(rest);
    }
    delivery::insert(to, &few)
}
