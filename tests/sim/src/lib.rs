//! A hive simulated on one thread: the real engine and store, a manual clock, and all choices made
//! by a seed.
//!
//! ```text
//!   clients (harnesses, consumers, co-processes, operator) ──► network that delays, loses, repeats ──► engine ──► writer's queue
//!                │                                                                                       ▲            │ steps of the hand
//!                └──► history ──► check                          scheduler, by the dice ─────────────────┴────────────┴──► disk that fails
//! ```
//!
//! What it is not: a model of the broker, or a test of the RPC layer above the engine. Invariant: a
//! seed determines its run to the last line of the event log, on any machine, beside any other
//! runs.

pub mod bugs;
pub mod campaign;

mod approvals;
mod attached;
mod audit;
mod books;
mod broker;
mod call;
mod client;
mod clock;
mod dice;
mod effect;
mod exec;
mod finale;
mod firings;
mod grace;
mod host;
mod lanes;
mod line;
mod log;
mod net;
mod plan;
mod run;
mod seen;
mod serve;
mod settle;
mod shrink;
mod watch;
mod world;

pub use host::directory;
pub use log::Echo;
pub use plan::{Fault, Plan};
pub use run::{Report, run};
pub use shrink::shrink;
pub use world::Figures;
