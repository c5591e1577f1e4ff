//! The claude CLI as measured: its command line, its output, and the meaning of its end.
//!
//! This module starts no process. Invariant: the CLI is judged by fields, never by text for people,
//! if it has fields.

pub mod command_line;
pub mod environment;
pub mod event;
pub mod fences;
pub mod line;
pub mod outcome;
pub mod program;
pub mod transcript;
pub mod version;
