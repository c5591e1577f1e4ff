//! Child processes.
//!
//! - `start`: what is decided at each start
//! - `child`: one process and the registry of all; `tree`: the host's process table
//! - `tied`: a program that ends with this one
//! - `supervised`: a child that is kept running
//! - `log`: the output of a child, bounded and printable
//!
//! Invariant: a child that is dropped is dead, and all that it started with it.

pub(super) mod child;
mod log;
pub(super) mod start;
pub(super) mod supervised;
pub(super) mod tied;
mod tree;
