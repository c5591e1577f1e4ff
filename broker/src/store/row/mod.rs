//! Rows that the writer has in memory.
//!
//! What changes them, and most of their SQL, is in the modules of their tables.

pub(in crate::store) mod agent;
pub(in crate::store) mod delivery;
pub(in crate::store) mod event;
pub(in crate::store) mod inbox;
pub(in crate::store) mod lease;
pub(in crate::store) mod message;
pub(in crate::store) mod request;
pub(in crate::store) mod settled;
