//! A drop-in for the claude CLI as the harness uses it: the same flags, the same stream of events,
//! real MCP servers, but no model.
//!
//! ```text
//!   args ─► files ─► turn, or one turn after another (resident) ──► servers (real MCP children)
//!    │                │  ▲
//!    │     stdin ─►   │  └── script (SCRIPTED_CLAUDE_FILE), or duo: a friendly agent that answers its mail
//!    │                ▼
//!    │              events ─► stdout          session ─► HOME/.claude/projects
//!    └─► commands: auth, plugins
//! ```
//!
//! What it is not: a model of claude's judgement. Invariant: two agents never write to each other
//! without end (see [`duo`]).

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

pub mod appear;
pub mod args;
pub mod auth;
mod commands;
mod compact;
mod deeds;
pub mod duo;
pub mod events;
pub mod failure;
pub mod files;
pub mod fill;
pub mod mail;
pub mod mcp;
pub mod plugins;
mod resident;
pub mod run;
pub mod script;
pub mod servers;
pub mod session;
mod signals;
mod stdin;
pub mod turn;

/// The reported version of the claude CLI.
pub const VERSION: &str = "2.1.330";
