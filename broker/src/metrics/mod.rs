//! Metrics: one page of numbers in the text format of Prometheus, over HTTP, off by default.
//!
//! [`door`] has the socket and its limits, [`page`] the numbers, [`text`] the format. Invariant:
//! nothing here waits for the writer, and a client holds a connection for a bounded time.

pub mod door;
pub mod page;
pub mod text;
