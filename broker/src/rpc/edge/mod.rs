//! The edge: the layers that a connection and a call pass before a handler runs.
//!
//! ```text
//!   listen ──► conn (peer, trust, slots) ──► serve ──► caller ──► deadline ──► size ──► fair (permits) ──► handler ──► answer
//! ```
//!
//! `method` describes each RPC, and `services` has their handlers; `layout`, `socket_file`,
//! `handed` and `stored` (with `bound`) make the sockets, `accept` their connections, and `room`
//! limits their files; `request` reads the common parts of requests, `page` those of lists; `later`
//! is the answer of a call that waits for long; `error` maps refusals to the wire.

mod accept;
mod acl;
mod bound;
pub mod caller;
mod closing;
pub mod conn;
pub mod error;
pub mod listen;
mod listen_error;
pub mod method;
pub mod peer;

pub(in crate::rpc) mod answer;
pub(in crate::rpc) mod later;
pub(in crate::rpc) mod page;
pub(in crate::rpc) mod request;

mod deadline;
pub(in crate::rpc) mod fair;
mod handed;
mod layout;
pub(in crate::rpc) mod room;
pub(in crate::rpc) mod serve;
pub(in crate::rpc) mod services;
mod size;
pub(crate) mod socket_file;
mod stored;
mod strangers;
mod together;
mod unit;
