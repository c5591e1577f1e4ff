//! `hived`, the broker of a hive: it owns every inbox and topology lookup, keeps them in SQLite,
//! and serves them as typed gRPC on one unix socket per agent and one for the operator.
//!
//! `rpc` decodes and encodes, `engine` decides, `store` keeps the data, `task` runs due work,
//! `metrics` shows numbers to collectors, `supervisor` listens to `hivectl up`; only `app` and
//! `doors` know them all. The library exists for the binary and for tests; it is no public
//! interface.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "the runtime of a test ends the tasks that it spawned"
    )
)]

pub mod app;
#[cfg(any(test, feature = "faults"))]
pub mod audit;
pub mod changes;
pub mod cli;
pub mod clock;
pub mod config;
mod doors;
pub mod due;
pub mod engine;
pub mod files;
pub mod hints;
pub mod kernel;
pub mod launches;
mod map;
pub mod measures;
pub mod metrics;
pub mod namespace;
pub mod notify;
mod preview;
mod program;
pub mod rpc;
pub mod service_manager;
mod spawn;
pub mod spill;
pub mod store;
pub mod supervisor;
pub mod sync;
pub mod task;
