//! The real `hive-mcp` between a hand-written MCP client and the real broker.

mod actions;
mod errors;
mod handshake;
mod leaving;
mod lifecycle;
mod listed;
mod logs;
mod loose_ends;
mod questions;
mod restart;
mod rig;
mod schedules;
mod tools;
