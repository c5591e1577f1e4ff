//! Threads: a message, the messages that it answers, and all replies to it.
//!
//! Invariant: a reply has a greater id than the message that it answers, so every walk ends. If the
//! first message of a thread is no longer stored, the oldest stored one takes its place.

use std::collections::BTreeMap;

use hive_core::reason::Reason;

use crate::connect::Broker;
use crate::error::Failure;
use crate::fetch;
use crate::view::delivery::Delivery;
use crate::view::message::Message;
use crate::view::thread::Thread;

/// Reads the message with which the thread of a message begins, and everything below it, in order.
pub(super) async fn whole(broker: &Broker, message: Message) -> Result<Vec<Message>, Failure> {
    let mut roots = Roots::default();
    roots.note(&message);
    let root = roots.find(broker, message.id).await?;
    Ok(below(broker, root).await?.into_values().collect())
}

/// Reads a message and all replies to it, and to those.
pub(crate) async fn below(broker: &Broker, id: u64) -> Result<BTreeMap<u64, Message>, Failure> {
    let (mut known, mut open) = (BTreeMap::new(), vec![id]);
    while let Some(thread_of) = open.pop() {
        for message in fetch::messages::<Message>(broker, thread_of, fetch::ALL).await? {
            if message.id != thread_of {
                open.push(message.id);
            }
            known.insert(message.id, message);
        }
    }
    Ok(known)
}

/// Groups the mail of an inbox by threads; the thread with the newest mail is last.
pub(super) async fn threads(
    broker: &Broker,
    deliveries: Vec<Delivery>,
) -> Result<Vec<Thread>, Failure> {
    let mut roots = Roots::default();
    deliveries.iter().for_each(|delivery| roots.note(&delivery.message));
    let mut threads = BTreeMap::<u64, Thread>::new();
    for delivery in deliveries {
        let root = roots.find(broker, delivery.message.id).await?;
        match threads.get_mut(&root) {
            Some(thread) => thread.add(delivery),
            None => drop(threads.insert(root, Thread::new(root, delivery))),
        }
    }
    let mut threads: Vec<Thread> = threads.into_values().collect();
    threads.sort_by_key(Thread::last);
    Ok(threads)
}

/// The message that each message answers, if known; a message without one begins a thread.
#[derive(Debug, Default)]
struct Roots(BTreeMap<u64, Option<u64>>);

impl Roots {
    fn note(&mut self, message: &Message) {
        self.0.insert(message.id, message.in_reply_to);
    }

    async fn find(&mut self, broker: &Broker, id: u64) -> Result<u64, Failure> {
        let (mut root, mut path) = (id, Vec::new());
        while let Some(above) = self.above(broker, root).await? {
            path.push(root);
            root = above;
        }
        // The next walk from any of these messages is one step.
        self.0.extend(path.into_iter().map(|id| (id, Some(root))));
        Ok(root)
    }

    /// Returns the message that this one answers; `None` at the beginning.
    async fn above(&mut self, broker: &Broker, id: u64) -> Result<Option<u64>, Failure> {
        let Some(above) = self.0.get(&id).copied().flatten() else { return Ok(None) };
        if !self.0.contains_key(&above) {
            match fetch::message(broker, above).await {
                Ok(found) => self.note(&found),
                Err(failure) if failure.reason() == Some(Reason::MessageNotFound) => {
                    self.0.insert(id, None);
                    return Ok(None);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(Some(above))
    }
}
