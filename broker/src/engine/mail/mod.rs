//! Mail: what is accepted into an inbox, and how it leaves it.
//!
//! - [`admission`]: the checks before anything is accepted by [`send`], [`question`], [`reminder`]
//!   or [`wake`].
//! - [`notice`]: mail of the broker itself; [`outbox`]: the items on which the operator has to act;
//!   [`text`]: their parts.
//! - [`receive`]: the leases; [`handover`]: their way to the client; [`settle`]: the end of a
//!   lease.
//! - [`messages`], [`search`] and [`loose_end`]: reading.
//!
//! Nothing here knows how a turn begins or ends, or what the operator orders.

pub mod admission;
pub mod handover;
pub mod loose_end;
pub mod messages;
pub mod notice;
pub mod outbox;
pub mod question;
pub mod receive;
pub mod reminder;
pub mod search;
pub mod send;
pub mod settle;
pub mod text;
pub mod wake;
