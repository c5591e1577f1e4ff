//! Shared parts of the tests: stand-ins for Hive's peers, and helpers to start the real binaries.
//!
//! What it is not: part of the product. `scripted-claude`, which also serves the demo, is a crate
//! of its own, so that the demo is built without the tests.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

pub mod api;
pub mod binary;
pub mod claude;
pub mod function_order;
pub mod generated;
pub mod rig;
pub mod sandbox_probe;

pub use hive_scripted::{self as scripted, mcp};
