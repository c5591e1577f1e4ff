//! Inboxes in memory: committed messages that no receive has taken, and the receives that wait.
//!
//! Invariant: a message is here only after its commit.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::Notify;

use crate::wire::Message;

/// The messages of one inbox.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    ready: Mutex<VecDeque<Message>>,
    came: Notify,
}

impl Inbox {
    /// Adds a committed message, and notifies a receive that waits.
    pub(crate) fn push(&self, message: Message) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
        self.came.notify_one();
    }

    /// Waits until there is a message; takes up to `max`.
    pub(crate) async fn take(&self, max: usize) -> Vec<Message> {
        loop {
            let came = self.came.notified();
            {
                let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
                if !ready.is_empty() {
                    let count = ready.len().min(max);
                    return ready.drain(..count).collect();
                }
            }
            came.await;
        }
    }
}

/// All inboxes by name.
#[derive(Debug, Default)]
pub(crate) struct Inboxes(RwLock<HashMap<String, Arc<Inbox>>>);

impl Inboxes {
    /// Returns an inbox; makes it at its first use.
    pub(crate) fn of(&self, name: &str) -> Arc<Inbox> {
        if let Some(inbox) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Arc::clone(inbox);
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(name.to_owned()).or_default())
    }
}
