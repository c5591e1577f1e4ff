//! The services: one file for each. A method decodes, calls the engine once, and encodes.
//!
//! `backup` and `login` are the streams of `admin` and `turn`, `stats` a part of `history`, and
//! `agents` one of `topology`. All watches share `watching`. `deliveries` is the stream of `inbox`,
//! `sends` that of `message`, and `settlement` their common part.

mod admin;
mod agents;
mod backup;
mod deliveries;
mod event;
mod history;
mod inbox;
mod login;
mod loose_end;
mod message;
mod question;
mod reminder;
mod sends;
mod server_info;
mod settlement;
mod stats;
mod status;
mod topology;
mod turn;
mod wake;
mod watching;
