//! The MCP bridge: turns claude's tool calls into calls of the broker.
//!
//! ```text
//!   claude ──stdio, MCP──► server ──► tool/<name> ──► call (request id, progress, cancellation) ──► broker (retry) ──► hived
//!                             ▲                                                                        │
//!                             └────────── compact text, or error: one sentence with its reason ◄───────┘
//! ```
//!
//! What it is not: no permission is enforced here. Tools outside the agent's groups are not listed, and the broker refuses them besides.
//! Invariants: `initialize` and `tools/list` never wait for the broker; a call carries one request id however often it is tried.

pub mod broker;
pub mod call;
pub mod cli;
pub mod entry;
pub mod error;
pub mod group;
pub mod server;
pub mod stdio;
pub mod telemetry;
pub mod tool;
pub mod words;
