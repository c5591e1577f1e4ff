//! Spans that wait for the collector.
//!
//! Invariant: no more than [`SPANS_MAX`] spans of [`BYTES_MAX`] bytes wait; then the oldest are
//! dropped, and counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::wire::Span;

/// Maximum spans that wait.
const SPANS_MAX: usize = 8192;
/// Maximum bytes of the spans that wait, as they are sent.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum spans of one post.
const BATCH_SPANS_MAX: usize = 512;
/// Maximum bytes of the spans of one post.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// How many spans were exported, and how many dropped.
#[derive(Debug, Default)]
pub struct Counts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    /// Returns the number of spans that a collector has taken, and of those that were dropped.
    #[must_use]
    pub fn get(&self) -> [(&'static str, u64); 2] {
        [("exported", &self.exported), ("dropped", &self.dropped)]
            .map(|(result, count)| (result, count.load(Ordering::Relaxed)))
    }

    /// Counts spans that a collector has taken.
    pub fn add_exported(&self, spans: usize) {
        self.exported.fetch_add(spans as u64, Ordering::Relaxed);
    }

    /// Counts spans that were dropped.
    pub fn add_dropped(&self, spans: usize) {
        self.dropped.fetch_add(spans as u64, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<Span>,
    bytes: usize,
}

impl Waiting {
    fn pop(&mut self) -> Option<Span> {
        let span = self.spans.pop_front()?;
        self.bytes -= span.len();
        Some(span)
    }
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    added: Notify,
    counts: Arc<Counts>,
}

impl Queue {
    pub(crate) fn new(counts: Arc<Counts>) -> Self {
        Self { waiting: Mutex::default(), added: Notify::new(), counts }
    }

    /// Adds spans.
    pub(crate) fn extend(&self, spans: impl IntoIterator<Item = Span>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for span in spans {
            waiting.bytes += span.len();
            waiting.spans.push_back(span);
            while waiting.spans.len() > SPANS_MAX || waiting.bytes > BYTES_MAX {
                waiting.pop();
                self.counts.add_dropped(1);
            }
        }
        drop(waiting);
        self.added.notify_one();
    }

    /// Counts spans that were dropped before they were added.
    pub(crate) fn add_dropped(&self, spans: usize) {
        self.counts.add_dropped(spans);
    }

    /// Takes the oldest spans, as many as one post may have.
    pub(crate) fn take(&self) -> Vec<Span> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_SPANS_MAX
            && let Some(next) = waiting.spans.front()
            && (batch.is_empty() || bytes + next.len() <= BATCH_BYTES_MAX)
        {
            bytes += next.len();
            batch.extend(waiting.pop());
        }
        batch
    }

    /// Waits until a span was added since the last wait.
    pub async fn added(&self) {
        self.added.notified().await;
    }

    /// Drops all that waits; returns how many spans that were.
    pub fn clear(&self) -> usize {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { spans, .. } = std::mem::take(&mut *waiting);
        self.counts.add_dropped(spans.len());
        spans.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_spans_are_dropped_and_counted() {
        let queue = Queue::new(Arc::default());
        let numbered = |number: usize| Span::of_bytes(number.to_be_bytes().to_vec());
        for number in 0..SPANS_MAX + 3 {
            queue.extend([numbered(number)]);
        }
        assert_eq!(queue.counts.get()[1], ("dropped", 3));
        assert_eq!(queue.take().first(), Some(&numbered(3)));
        assert_eq!((queue.clear(), queue.take().len()), (SPANS_MAX - BATCH_SPANS_MAX, 0));
    }

    #[test]
    fn bytes_are_bounded_as_well_and_a_batch_is_no_longer_than_a_post() {
        let queue = Queue::new(Arc::default());
        let of_bytes = |bytes| Span::of_bytes(vec![0; bytes]);
        for _ in 0..20 {
            queue.extend([of_bytes(BATCH_BYTES_MAX / 2)]);
        }
        let waits = 2 * BYTES_MAX / BATCH_BYTES_MAX;
        assert_eq!(queue.counts.get()[1], ("dropped", 20 - waits as u64));
        assert_eq!((queue.take().len(), queue.take().len()), (2, 2));
        queue.clear();
        queue.extend([of_bytes(2 * BATCH_BYTES_MAX)]);
        assert_eq!(queue.take().len(), 1, "a span that is longer than a batch is one");
    }
}
