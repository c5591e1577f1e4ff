//! Mail: what is accepted into an inbox, and how it leaves it.
//!
//! - [`admission`]: the checks before anything is accepted by [`send`], [`question`], [`reminder`]
//!   or [`wake`].
//! - [`send_stream`]: sends in order on one stream; [`receipt`]: the answer to a send.
//! - [`notice`]: mail of the broker itself; [`outbox`]: the items on which the operator has to act;
//!   [`text`]: their parts.
//! - [`serving`]: the order in which mail is leased; [`receive`]: the leases; [`handover`]: their
//!   way to the client; [`stream`]: leases that last as long as a connection; [`settlements`] and
//!   [`settle`]: the end of a lease.
//! - [`decision`]: what the operator decides about a delivery.
//! - [`messages`], [`search`] and [`loose_end`]: reading.
//!
//! Nothing here knows how a turn begins or ends, or what the operator orders of an agent.

pub mod admission;
pub(crate) mod decision;
pub mod handover;
pub mod loose_end;
pub mod messages;
pub mod notice;
pub mod outbox;
pub mod question;
mod receipt;
pub mod receive;
pub mod reminder;
pub mod search;
pub mod send;
pub mod send_stream;
pub(crate) mod serving;
pub mod settle;
pub mod settlements;
pub mod stream;
pub mod text;
pub mod wake;
