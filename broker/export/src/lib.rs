//! What the broker posts over HTTP: spans of traces, and the client of webhooks.
//!
//! ```text
//!   event log ──► Follower ──► Queue ──► Export ──► POST to the collector
//! ```
//!
//! A crate of its own, because nothing of it is on the path of a message: it is built for size.
//! Invariant: it does no other IO than posts, and knows no database.

mod derived;
mod export;
mod exporter;
mod follower;
pub mod post;
mod queue;
mod span;
mod tools;
mod wire;

pub use derived::{delivery_span, tool_span};
pub use export::{Export, TracesError};
pub use exporter::ExportError;
pub use follower::{Follower, NOTE, Part, STDOUT, accepted_message, ended_turn, returned_message};
pub use queue::{Counts, Queue};
