//! Rows that the writer has in memory between commands.
//!
//! What changes them, and all SQL of agents, is in the modules of their tables.

pub(in crate::store) mod agent;
pub(in crate::store) mod inbox;
