//! Shell tasks: commands that an agent runs outside claude, and that continue when its turn ends.
//!
//! Theory of operation. claude's MCP server `bash` is a thin client of the [`service`], which is in
//! the harness, because a task outlives the claude that requested it. A command runs under bash in
//! its own process group; its output goes through one pipe into a file. All its processes inherit a
//! mark in their environment. When the first process exits or the timeout expires, the mark
//! identifies the other processes, which are ended too. Each task is a record on disk. The records
//! of a dead harness are read by the next, which ends what is left of its tasks. If no call waited
//! for a task's end, mail reports it to the agent, in one message for all such tasks.
//!
//! ```text
//!   hive-mcp bash ──► service ──► supervisor ──► run (bash, output, sweep) ──► record ──► announcer ──► mail
//! ```
//!
//! Invariants: no process of a task outlives the task, and no task its harness. An end is reported
//! at least once, by mail or by a call, whichever is first.

pub mod announcer;
pub mod config;
pub mod environment;
pub mod init;
pub mod notice;
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
