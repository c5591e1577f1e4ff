//! Clients: everybody who talks to the broker. Each is a task that outlives brokers and goes by
//! what it hears, like the real ones.
//!
//! Invariant: none of them polls: a client that waits for mail waits in one call, so that a wake
//! that is lost is not made good by the next look.

pub(crate) mod chaos;
pub(crate) mod claude;
pub(crate) mod consumer;
mod duty;
pub(crate) mod harness;
pub(crate) mod operator;
pub(crate) mod script;
pub(crate) mod waker;
