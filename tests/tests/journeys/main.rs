//! Journeys: the real binaries over real sockets, each a scenario.

mod cancel;
mod command;
mod drain;
mod killed;
mod next_turn;
mod parked;
mod poison;
mod recv;
mod restart;
mod send;
mod steps;
mod takeover;
mod up;
mod wake;
mod watchdog;
mod zombie;
