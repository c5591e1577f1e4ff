//! A drop-in for the claude CLI as the harness uses it: the same flags, the same stream of events, real MCP servers, but no model.
//!
//! ```text
//!   args ─► files ─► turn ──► servers (real MCP children)
//!                     │  ▲
//!   stdin ─► mail ─►  │  └── script (HIVE_SCRIPT_FILE), or duo: a friendly agent that answers its mail
//!                     ▼
//!                   events ─► stdout          session ─► HOME/.claude/projects
//! ```
//!
//! What it is not: a model of claude's judgement. Invariant: two of them never write to each other without end (see [`duo`]).

pub mod appear;
pub mod args;
pub mod duo;
pub mod events;
pub mod files;
pub mod fill;
pub mod mail;
pub mod run;
pub mod script;
pub mod servers;
pub mod session;
pub mod turn;
