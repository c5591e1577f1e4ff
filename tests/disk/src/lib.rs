//! A disk for SQLite that fails on demand, and loses unsynced data when its power is cut.
//!
//! ```text
//!   SQLite ──► shim (a VFS, the default one of the process) ──► the host's VFS ──► files
//!                │ a file below a directory that is under a Disk
//!                └──► asks the Disk for a verdict, and reports writes and syncs to it
//! ```
//!
//! The code under test needs no change: `Disk::over(dir)`, then open the database below `dir` as
//! usual. The files hold what a running system shows (its page cache); the disk also remembers what
//! would be left of each after a power cut now. Nothing is really synced. A name is on disk with
//! the first sync of its file, and a removed name may come back until its directory is synced.
//! Invariant: a file under no disk is unaffected; the host's VFS opens it as if this crate did not
//! exist.

mod cut;
mod disk;
mod fault;
mod files;
mod model;
mod op;
mod shim;

pub use disk::Disk;
pub use fault::Fault;
pub use op::{Action, Error, Kind, Op, Verdict};
pub use shim::seed;
