//! Long runs that try to break the real programs: `torture` kills them, `disks` makes their files
//! fail, `soak` keeps them busy, `leaves` sends mail as they leave.
//!
//! Each is a library module with a program of the same name: the tests run a short slice of what
//! the program runs for hours. Invariant: every run depends on a seed that is printed with a
//! violation, and leaves a line in its ledger.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

pub mod disks;
pub mod leaves;
pub mod ledger;
pub mod soak;
pub mod torture;
