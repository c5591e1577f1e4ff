//! Abuse of HTTP/2 on an agent's socket and on the operator's: frames that no client of the
//! contract would send, or not in such numbers.
//!
//! Each attack ends with the code that the protocol has for it or meets a limit, while two
//! neighbours continue to exchange messages. What it is not: garbage in requests, which is
//! `bad_input`. Invariant: afterwards the broker is as before, in memory, files and service.

mod connections;
mod frames;
mod malformed;
mod memory;
pub(crate) mod scene;
mod streams;
