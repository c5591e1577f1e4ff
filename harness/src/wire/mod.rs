//! The broker's contract as the harness uses it: one function for each call, from values of
//! `hive-core` to values of `hive-core`.
//!
//! Map: [`session`] is the stream of an attached session, [`turn`] the calls of a session.
//! [`output`] is the stream of a turn's output, [`login`] that of a login dialogue. [`beside`] has
//! the calls of programs beside the agent. [`read`] makes values of `hive-core` from answers.
//!
//! Invariant: no other module of the harness knows a message of `hive.v1`. An unreadable answer is
//! a refusal; an unknown value of a newer broker ends no turn.

pub mod beside;
pub mod login;
pub mod output;
pub mod read;
pub mod session;
pub mod turn;

use hive_core::agent::HarnessState;
use hive_core::time::WallTime;
use hive_proto::convert::time::timestamp;
use hive_proto::convert::{IntoWire as _, Invalid};
use hive_proto::handshake::Program;
use tonic::Status;

/// This program, for the handshake.
pub const PROGRAM: Program = Program { name: "hive", version: env!("CARGO_PKG_VERSION") };

/// Returns a time in RFC 3339, with as many digits as it needs.
pub fn rfc3339(time: WallTime) -> String {
    timestamp(time).to_string()
}

/// Returns the name of a state in the contract, for the log.
pub fn state_name(state: HarnessState) -> &'static str {
    state.into_wire().as_str_name()
}

/// Returns the refusal that represents an answer with this fault. It is not worth a retry.
fn unreadable(fault: Invalid) -> Status {
    Status::internal(format!("the broker's answer cannot be read: {fault}"))
}
