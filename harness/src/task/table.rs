//! The tasks of this agent, running and ended: the requests, the waiters, and the ends that the
//! agent knows.
//!
//! Invariants: every entry has a record on disk with the same content. After each change, `is_busy`
//! has its new value.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::watch;

use crate::task::output::Output;
use crate::task::record::{End, Record};
use crate::task::store::{Records, Store};

/// Maximum tasks that are remembered.
const RECORDS_MAX: usize = 200;
/// Maximum stored output of ended tasks, as a multiple of the largest output.
const FULL_OUTPUTS_MAX: u64 = 16;

/// A task.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) record: Record,
    /// Its output so far, while it runs.
    pub(super) output: Option<Arc<Output>>,
    /// Becomes true at its end.
    pub(super) ended: watch::Sender<bool>,
    /// Number of calls that will report its end.
    pub(super) waiters: usize,
}

/// All tasks.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) entries: BTreeMap<u64, Entry>,
    requests: HashMap<String, u64>,
    last_id: u64,
    /// Tasks whose ends are in the newest message that the broker took.
    announced: BTreeSet<u64>,
    /// Whether a task runs, or has ended and neither the agent nor the broker knows.
    is_busy: watch::Sender<bool>,
    pub(super) is_allowed: bool,
    pub(super) is_closing: bool,
}

impl Table {
    /// Creates the table from the records of an earlier harness.
    pub(super) fn from_records(records: Records) -> Self {
        let mut table = Self { last_id: records.last_id, ..Self::default() };
        for record in records.by_id.into_values() {
            table.insert(record, None);
        }
        table
    }

    pub(super) fn insert(&mut self, record: Record, output: Option<Arc<Output>>) {
        self.last_id = self.last_id.max(record.id);
        self.requests.insert(record.request_id.clone(), record.id);
        let entry =
            Entry { ended: watch::Sender::new(record.end.is_some()), record, output, waiters: 0 };
        self.entries.insert(entry.record.id, entry);
        self.changed();
    }

    /// Returns an id that was never used.
    pub(super) fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Returns the task that an earlier request with this id started.
    pub(super) fn requested(&self, request_id: &str) -> Option<&Entry> {
        self.requests.get(request_id).and_then(|id| self.entries.get(id))
    }

    pub(super) fn running(&self) -> Vec<u64> {
        self.entries
            .values()
            .filter(|entry| entry.record.end.is_none())
            .map(|entry| entry.record.id)
            .collect()
    }

    /// Records the end of a task.
    pub(super) fn end(&mut self, id: u64, end: End, store: &Store) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.record.end = Some(end);
        entry.output = None;
        save(&entry.record, store);
        entry.ended.send_replace(true);
        self.changed();
    }

    /// Records that the agent knows of a task's end.
    pub(super) fn mark_reported(&mut self, id: u64, store: &Store) {
        self.announced.remove(&id);
        if let Some(entry) = self.entries.get_mut(&id).filter(|entry| !entry.record.is_reported) {
            entry.record.is_reported = true;
            save(&entry.record, store);
        }
        self.changed();
    }

    /// Records that the agent received the newest message.
    pub(super) fn mark_announced_reported(&mut self, store: &Store) {
        for id in std::mem::take(&mut self.announced) {
            self.mark_reported(id, store);
        }
    }

    /// Returns the unreported records, if the newest message lacks any.
    pub(super) fn unreported(&self) -> Option<Vec<Record>> {
        let unreported = self.entries.values().filter(|entry| {
            let Record { end, is_reported, .. } = &entry.record;
            end.is_some() && !is_reported && entry.waiters == 0
        });
        let records: Vec<Record> = unreported.map(|entry| entry.record.clone()).collect();
        records.iter().any(|record| !self.announced.contains(&record.id)).then_some(records)
    }

    /// Records that the broker took a message about these tasks. If it did not supersede the
    /// previous one, the agent has received that one.
    pub(super) fn announced(&mut self, ids: &[u64], has_superseded: bool, store: &Store) {
        if !has_superseded {
            self.mark_announced_reported(store);
        }
        let is_unreported =
            |id: &&u64| self.entries.get(id).is_some_and(|entry| !entry.record.is_reported);
        self.announced = ids.iter().filter(is_unreported).copied().collect();
        self.changed();
    }

    /// Returns whether a task runs, or has ended and neither the agent nor the broker knows.
    pub(super) fn is_busy(&self) -> watch::Receiver<bool> {
        self.is_busy.subscribe()
    }

    fn changed(&self) {
        let is_open = |Entry { record, .. }: &Entry| {
            let is_known = record.is_reported || self.announced.contains(&record.id);
            record.end.is_none() || !is_known
        };
        let is_busy = self.entries.values().any(is_open);
        self.is_busy.send_if_modified(|was| std::mem::replace(was, is_busy) != is_busy);
    }

    /// Removes the oldest ended tasks while there are too many, or too much of their output.
    pub(super) fn prune(&mut self, store: &Store, output_bytes_max: u64) {
        let mut bytes: u64 = self.ended().map(|entry| store.output_bytes(entry.record.id)).sum();
        let bytes_max = output_bytes_max.saturating_mul(FULL_OUTPUTS_MAX);
        while self.entries.len() > RECORDS_MAX || bytes > bytes_max {
            let Some(id) = self.ended().next().map(|entry| entry.record.id) else { return };
            bytes = bytes.saturating_sub(store.output_bytes(id));
            store.remove(id);
            self.announced.remove(&id);
            if let Some(entry) = self.entries.remove(&id) {
                self.requests.remove(&entry.record.request_id);
            }
            self.changed();
        }
    }

    /// Returns the ended tasks without waiters, the oldest first.
    fn ended(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(|entry| entry.record.end.is_some() && entry.waiters == 0)
    }
}

/// Writes a record. If that fails, the next harness at worst reports or ends the task again.
pub(super) fn save(record: &Record, store: &Store) {
    if let Err(error) = store.write(record) {
        tracing::warn!(task = record.id, %error, "the record of a task cannot be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::record::How;
    use crate::task::record::tests::{ended, running};

    async fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().expect("a directory");
        let (store, _) =
            Store::open(dir.path().join("tasks"), std::time::Duration::ZERO).await.expect("opened");
        (dir, store)
    }

    fn table(ids: std::ops::RangeInclusive<u64>) -> Table {
        let by_id = ids.map(|id| (id, ended(id, How::Exited(0), ""))).collect();
        Table::from_records(Records { by_id, last_id: 0 })
    }

    fn unreported(table: &Table) -> Option<Vec<u64>> {
        Some(table.unreported()?.iter().map(|record| record.id).collect())
    }

    #[tokio::test]
    async fn an_end_is_reported_until_the_agent_received_its_message() {
        let (_dir, store) = store().await;
        let mut table = table(1..=2);
        assert_eq!(unreported(&table), Some(vec![1, 2]));
        table.announced(&[1, 2], false, &store);
        assert_eq!(unreported(&table), None, "it is on its way");
        table.insert(ended(3, How::Exited(0), ""), None);
        assert_eq!(unreported(&table), Some(vec![1, 2, 3]), "the newer message has to say all");
        table.announced(&[1, 2, 3], true, &store);
        table.mark_announced_reported(&store);
        table.insert(ended(4, How::Exited(0), ""), None);
        assert_eq!(unreported(&table), Some(vec![4]));
        table.announced(&[4], false, &store);
        table.insert(ended(5, How::Exited(0), ""), None);
        assert_eq!(unreported(&table), Some(vec![4, 5]));
        table.announced(&[4, 5], false, &store);
        assert!(
            table.entries[&4].record.is_reported,
            "the message with 4 was not there to be superseded"
        );
        table.mark_reported(5, &store);
        assert_eq!(unreported(&table), None);
    }

    #[tokio::test]
    async fn tasks_are_busy_until_the_agent_or_the_broker_knows_of_every_end() {
        let (_dir, store) = store().await;
        let mut table = Table::default();
        let is_busy = table.is_busy();
        let is_busy = || *is_busy.borrow();
        assert!(!is_busy());
        table.insert(running(1), None);
        table.insert(running(2), None);
        for (id, waiters) in [(1, 0), (2, 1)] {
            table.entries.get_mut(&id).expect("there").waiters = waiters;
            let end = ended(id, How::Exited(0), "").end.expect("an end");
            table.end(id, end, &store);
            assert!(is_busy(), "no message about {id} was taken yet");
        }
        table.announced(&[1], false, &store);
        assert!(is_busy(), "the caller that waits for 2 has no answer yet");
        table.mark_reported(2, &store);
        assert!(!is_busy());
        table.insert(ended(3, How::Exited(0), ""), None);
        assert!(is_busy(), "an earlier harness has not reported it");
        table.announced(&[1, 3], true, &store);
        assert!(!is_busy());
    }

    #[tokio::test]
    async fn the_oldest_ended_tasks_are_removed_and_their_ids_are_not_reused() {
        let (_dir, store) = store().await;
        let mut table =
            Table::from_records(Records { by_id: BTreeMap::from([(1, running(1))]), last_id: 0 });
        for id in 2..=203 {
            table.insert(ended(id, How::Exited(0), ""), None);
        }
        table.entries.get_mut(&2).expect("there").waiters = 1;
        drop(store.create_output(3).expect("made"));
        table.prune(&store, 1024);
        let ids: Vec<u64> = table.entries.keys().copied().take(3).collect();
        assert_eq!((ids, table.entries.len()), (vec![1, 2, 6], RECORDS_MAX));
        assert!(
            !store.output_path(3).exists()
                && table.requested("r3").is_none()
                && table.requested("r6").is_some()
        );
        assert_eq!(table.fresh_id(), 204);
    }

    #[tokio::test]
    async fn outputs_that_are_too_large_together_go_with_their_tasks() {
        let (_dir, store) = store().await;
        let mut table = table(1..=20);
        for id in 1..=20 {
            std::fs::write(store.output_path(id), [0; 100]).expect("written");
        }
        table.prune(&store, 100);
        assert_eq!(table.entries.keys().next(), Some(&5));
    }
}
