//! Attacks that a hostile agent, a hostile process beside one, or a hostile client would try, and
//! the reason with which each fails.
//!
//! What it is not: the table of callers and rights, which is `authority`, nor the confinement by
//! `hivectl up`, which is `confinement`. Invariant: each attack names the reason with which it is
//! refused, or shows that only the attacker's own objects have changed.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod ask;
#[path = "../authority_table/mod.rs"]
#[allow(
    dead_code,
    reason = "the table is shared; what its rows say of proofs and of the disk is for the test `authority`"
)]
mod authority_table;
mod effects;
mod floods;
mod identity;
mod inside;
mod places;
mod sandbox;
mod schedules;
mod wire;
mod words;
