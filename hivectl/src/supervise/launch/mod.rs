//! What every launcher shares, whatever it starts harnesses with.
//!
//! ```text
//!   broker ──► wanted ──► decide ──► the launcher: child processes, or units of systemd
//!   broker ◄── report, purged ◄──────┘
//! ```
//!
//! - `wanted`: what the broker wants; `decide`: what is to be done for that
//! - `report`: the reports about harnesses; `purged`: the report that a purge is finished
//!
//! Invariant: nothing here starts or ends a process.

pub(super) mod decide;
pub(super) mod purged;
pub(super) mod report;
pub(super) mod wanted;
