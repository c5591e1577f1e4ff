//! Authority: every RPC of the table on both sockets, as everybody. Who calls is told by the socket
//! and the kernel, and by tokens that only their holder has; never by a request.
//!
//! Driven by the table: an RPC without a request in `requests` or without an answer in `expected`
//! fails, so none can be added untried.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

#[path = "../authority_table/mod.rs"]
mod authority_table;
mod calls;
mod expected;
mod login;
mod peers;
mod policy;
mod questions;
mod reflection;
mod requests;
mod rows;
mod scene;
mod search;
mod tokens;
