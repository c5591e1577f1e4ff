//! Writing: one queue, one committer, one transaction for a batch.
//!
//! ```text
//!   writer (thread) or stepped (simulation) ──► committer ──► tx
//!              ▲                                    │
//!            queue ◄── commands, waiters            └──► waiter: polled in the batch that wakes it
//!
//!   seat: the thread runs the batches, or the caller of the only command
//! ```

pub(in crate::store) mod stepped;
pub mod waiter;

mod command;
mod folding;
mod fresh;
mod held;
mod lease_ends;
mod measured;
mod progress;
mod requests;
mod seat;

pub(in crate::store) mod cache;
pub(in crate::store) mod committer;
pub(in crate::store) mod leases;
pub(in crate::store) mod messages;
mod new_traces;
pub(in crate::store) mod queue;
pub(in crate::store) mod request_ids;
pub(in crate::store) mod tx;
pub(in crate::store) mod writer;
