//! Journeys: the real binaries over real sockets, each a scenario.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

#[macro_use(both, cases)]
extern crate hive_tests;

mod actions;
mod approvals;
mod asked;
mod attention;
mod backup;
mod beside;
mod cancel;
mod command;
mod completion;
mod conversation;
mod drain;
mod extras;
mod family;
mod handed_over;
mod heartbeats;
mod killed;
mod launcher;
mod login;
mod mailbox;
mod memory;
mod missed;
mod next_turn;
mod orders;
mod parked;
mod poison;
mod previews;
mod questions;
mod recv;
mod reminders;
mod restart;
mod run_states;
mod run_time;
mod scheduled_backup;
mod schedules;
mod send;
mod settings;
mod shell;
mod states;
mod steps;
mod takeover;
mod terminal;
mod thrift;
mod top;
mod two_launchers;
mod up;
mod versions;
mod wake;
mod watchdog;
mod watched;
mod zombie;
