//! Journeys: the real binaries over real sockets, each a scenario.

mod asked;
mod attention;
mod backup;
mod cancel;
mod command;
mod completion;
mod conversation;
mod drain;
mod killed;
mod next_turn;
mod parked;
mod poison;
mod questions;
mod recv;
mod reminders;
mod restart;
mod send;
mod steps;
mod takeover;
mod top;
mod up;
mod wake;
mod watchdog;
mod zombie;
