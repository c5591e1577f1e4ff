//! The claude CLI as it was measured: how it is called, what it prints, and what its end means.
//!
//! What it is not: it starts no process. Its invariant: the CLI is judged by fields, never by words
//! meant for people, as long as it gives fields.

pub mod command_line;
pub mod environment;
pub mod event;
pub mod fences;
pub mod line;
pub mod outcome;
pub mod program;
pub mod transcript;
pub mod version;
