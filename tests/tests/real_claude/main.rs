//! The real Claude Code CLI in the middle: hived, `hive serve`, claude, hive-mcp, and a stand-in
//! for the Messages API that records what the model would have seen.
//!
//! If the CLI is not installed, every test here fails and says how to install it. Starting
//! claude costs most of a second of CPU time, so each test is a story of a few turns.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

#[macro_use(both)]
extern crate hive_tests;

mod changes;
mod compaction;
mod home;
mod hostile;
mod isolated;
mod journey;
mod orders;
mod plugins;
mod questions;
mod resets;
mod resident;
mod servers;
mod shell;
mod stage;
mod storms;
mod trouble;
mod watermarks;
mod weather;
