//! What the tests share: stand-ins for what Hive talks to, and helpers to start the real binaries.
//!
//! What it is not: part of the product, but for one program: `scripted-claude` also serves the demo
//! where no claude is installed.

pub mod api;
pub mod binary;
pub mod claude;
pub mod mcp;
pub mod rig;
pub mod sandbox_probe;
pub mod scripted;
