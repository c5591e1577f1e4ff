//! The harness of one agent: it waits for a turn, runs claude for it, and reports the result to the
//! broker.
//!
//! It owns no mail and no state; the broker and claude's own files have all that it loses when it
//! dies. Invariant of the crate: at most one claude runs in an agent's state directory, and none
//! outlives its turn.
//!
//! ```text
//!   broker ──► driver ──► turn::Machine (decides, touches nothing) ──► driver ──► process (runs claude), broker
//! ```

// The runtime of a test ends the tasks that the test spawned.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod boot;
pub mod claude;
pub mod cli;
pub mod config;
pub mod confine;
pub mod driver;
pub mod exit;
pub mod fence;
pub mod guard;
pub mod heartbeat;
mod inherited;
pub mod isolation;
pub mod login;
pub mod plugins;
pub mod process;
pub mod prompt;
pub mod publish;
#[cfg(test)]
mod samples;
pub mod scrub;
mod secrets;
pub mod session;
pub mod settings;
mod spawn;
mod stdin;
pub mod task;
pub mod token;
pub mod tool_groups;
pub mod turn;
pub mod wake;
pub mod wire;
