//! Clients of the broker: each is a task that outlives brokers and acts on what it receives, like
//! the real ones.
//!
//! Invariant: no client polls. A client that waits for mail waits in one call, so that no later
//! poll repairs a lost hint.

mod asker;
pub(crate) mod chaos;
pub(crate) mod claude;
pub(crate) mod consumer;
mod decider;
mod duty;
pub(crate) mod harness;
pub(crate) mod operator;
pub(crate) mod restorer;
mod scheduler;
pub(crate) mod script;
pub(crate) mod sender;
pub(crate) mod stream;
pub(crate) mod waker;
