//! The tests of shell tasks again, in the sandboxes of an isolated agent: each promise of a task
//! holds there too.
//!
//! Not those of a killed harness: its sandboxes end with it.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

#[path = "../tasks/bounds.rs"]
mod bounds;
#[path = "../tasks/ends.rs"]
mod ends;
mod inside;
#[path = "../tasks/mail.rs"]
mod mail;
mod servers;
#[path = "../tasks/stage.rs"]
mod stage;

const SANDBOXED: bool = true;
