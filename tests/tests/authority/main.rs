//! Authority: every RPC of the table on both sockets, by every kind of caller. The socket and the
//! kernel identify the caller, and tokens that only their holder has; never a request.
//!
//! The table drives it: an RPC without a request in `requests` or without an answer in `expected`
//! fails, so no RPC stays untried.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

#[path = "../authority_table/mod.rs"]
mod authority_table;
mod calls;
mod expected;
mod lifecycle;
#[path = "../listed/mod.rs"]
mod listed;
mod login;
mod logs;
mod peers;
mod policy;
mod questions;
mod reflection;
mod requests;
mod rows;
mod scene;
mod search;
mod tokens;
mod wrong_inputs;
