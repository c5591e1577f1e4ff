//! The services: one file for each. A method decodes, calls the engine once, and encodes.
//!
//! `backup` is the stream of `admin`, `attach` and `login` are those of `turn`, `stats` is a part
//! of `history`, and `agents` one of `topology`. All watches share `watching`, and `resting` is a
//! stream without a task. `deliveries` is the stream of `inbox`,
//! `sends` that of `message`, and `settlement` their common part.

mod action;
mod admin;
mod agents;
mod attach;
mod backup;
mod deliveries;
mod diagnostics;
mod event;
mod history;
mod inbox;
mod launcher;
mod lifecycle;
mod login;
mod loose_end;
mod message;
mod question;
mod reminder;
mod resting;
mod schedule;
mod sends;
mod server_info;
mod settlement;
mod stats;
mod status;
mod topology;
mod turn;
mod wake;
mod watching;
