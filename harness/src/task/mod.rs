//! Shell tasks: commands that an agent runs outside claude, and that go on when its turn ends.
//!
//! Theory of operation. claude's MCP server `bash` is a thin client of the [`service`], which lives
//! in the harness, because a task outlives the claude that asked for it. A command runs under bash
//! in a process group of its own; what it writes goes through one pipe into a file. Everything that
//! it starts inherits a mark in its environment; so when its first process exits, or its time is
//! over, the rest is found and ended too, wherever it has fled to. Each task is a record on disk:
//! the records of a harness that died are found by the next, which ends what is left of them. A
//! task that ended while nobody waited for it is told to the agent by mail, one message for all
//! such tasks.
//!
//! ```text
//!   hive-mcp bash ──► service ──► supervisor ──► run (bash, output, sweep) ──► record ──► announcer ──► mail
//! ```
//!
//! Invariants: nothing of a task outlives the task, and no task its harness; an end is told at
//! least once, by whichever way comes first.

pub mod announcer;
pub mod config;
pub mod environment;
pub mod init;
pub mod news;
pub mod output;
pub mod record;
pub mod run;
pub mod sandbox;
pub mod service;
pub mod store;
pub mod supervisor;
pub mod sweep;
mod table;
pub mod wake;

pub use self::config::{InvalidSettings, Settings, TaskConfig};
pub use self::sandbox::{Confinement, Sandbox};
pub use self::supervisor::{StartError, Supervisor};
pub use self::wake::{BrokerWaker, Waker};
