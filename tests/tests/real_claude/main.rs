//! The real Claude Code CLI in the middle: hived, `hive serve`, claude, hive-mcp, and a stand-in for the Messages API that records what the
//! model would have seen.
//!
//! Where the CLI is not installed, every test here fails and says how to install it. Starting claude costs most of a second of CPU time, so
//! each test is a story of a few turns.

mod hostile;
mod journey;
mod questions;
mod stage;
mod trouble;
mod weather;
