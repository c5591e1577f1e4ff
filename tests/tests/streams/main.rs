//! Streams of deliveries and of messages against the real `hived`, by generated clients: what a
//! client gets, and what becomes of its leases at each end of a stream.
//!
//! The engine's own tests have the same rules with a clock of their own. Invariant: what is checked
//! here has passed a real socket, so a lease counts as taken when this connection took it.

#[macro_use(cases)]
extern crate hive_tests;

mod breaks;
mod consumer;
mod ends;
mod messages;
mod pings;
mod receives;
mod restarts;
mod settlements;
mod windows;
