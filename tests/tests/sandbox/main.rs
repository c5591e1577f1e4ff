//! Sandboxes: what an agent can reach at each level of isolation, from claude's place and from a
//! shell task, one attempt for each mechanism.
//!
//! `hivectl up` runs as a user without rights, beside a session of that user with a terminal, keys,
//! a desktop and a screen. The harnesses and the broker are real; the scripted claude starts the
//! attempts.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod connections;
mod degraded;
mod grants;
mod journeys;
mod levels;
mod matrix;
mod servers;
mod session;
mod stage;
mod traps;
