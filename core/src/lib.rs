//! The vocabulary of Hive: its nouns and the rules that hold for them.
//!
//! It has no async, IO, SQL, protobuf, clock or random numbers. `now` is always an argument, so
//! plain tests cover every rule. Invariant of the crate: a value that exists is valid; parsing
//! happens once, at the border.

pub mod action;
pub mod agent;
pub mod caller;
pub mod command;
pub mod config;
pub mod delivery;
pub mod effect;
pub mod event;
pub mod heartbeat;
pub mod hidden;
pub mod id;
pub mod isolation;
pub mod limits;
pub mod loose_end;
pub mod message;
pub mod name;
pub mod park;
pub mod question;
pub mod reason;
pub mod refused;
pub mod reminder;
pub mod schedule;
pub mod secret;
pub mod settlement;
pub mod span;
pub mod time;
pub mod time_of_day;
pub mod trace;
pub mod traced;
pub mod tree;
pub mod turn;
pub mod version;

mod display;
