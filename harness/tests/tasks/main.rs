//! Shell tasks with real bash and real processes, asked for over the supervisor's socket.

mod bounds;
mod ends;
mod lost;
mod mail;
mod stage;

/// Whether tasks run in sandboxes; the tests of `sandboxed` are the same ones, in sandboxes.
const SANDBOXED: bool = false;
