//! Shell tasks with real bash and real processes, asked for over the supervisor's socket.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod bounds;
mod ends;
mod lost;
mod mail;
mod stage;

/// Whether tasks run in sandboxes; the tests of `sandboxed` are the same ones, in sandboxes.
const SANDBOXED: bool = false;
