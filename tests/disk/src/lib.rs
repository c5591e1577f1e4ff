//! A disk for SQLite that fails as it is told, and loses what was not synced when its power is cut.
//!
//! ```text
//!   SQLite ──► shim (a VFS, the default one of the process) ──► the host's VFS ──► files
//!                │ a file below a directory that is under a Disk
//!                └──► asks the Disk for a verdict, and tells it what was written and synced
//! ```
//!
//! What is under test needs no change: `Disk::over(dir)`, then open the database below `dir` as
//! ever. The files that are there hold what a running system shows (its page cache); the disk
//! remembers beside them what would be left of each if the power went now. Nothing is really
//! synced. A name is on disk with the first sync of its file, and one that was taken away may come
//! back until its directory is synced. Invariant: a file that is under no disk is not concerned;
//! the host's VFS opens it as if this crate were not there.

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
