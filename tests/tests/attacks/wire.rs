//! Abuse of HTTP/2 on an agent's socket and on the operator's: what no client of the contract would
//! ever send, or not so much of it.
//!
//! Each attack ends with the code that the protocol has for it or meets a bound, while two
//! neighbours go on talking. What it is not: garbage in requests, which is `bad_input`. Invariant:
//! afterwards the broker is as it was, in memory, files and service.

mod connections;
mod frames;
mod malformed;
mod memory;
pub(crate) mod scene;
mod streams;
