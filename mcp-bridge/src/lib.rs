//! The MCP bridge: turns claude's tool calls into calls to the broker, or, as the server `bash`, to
//! the agent's harness.
//!
//! ```text
//!   claude ──stdio, MCP──► server ──► tool/<name> ──► call (request id, progress, cancellation) ──► peer (retry) ──► hived or hive
//!                             ▲                                                                      │
//!                             └────────── compact text, or error: one sentence with its reason ◄─────┘
//! ```
//!
//! What it is not: no permission is enforced here. Tools outside the agent's groups are not listed,
//! and the peer also refuses them. Invariants: `initialize` and `tools/list` never wait for a peer;
//! every attempt of a call has the same request id.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "the runtime of a test ends the tasks that it spawned"
    )
)]

pub mod call;
pub mod call_log;
pub mod cli;
pub mod entry;
pub mod error;
pub mod group;
pub mod peer;
pub mod render;
pub mod server;
pub mod stdio;
pub mod telemetry;
pub mod tool;
