//! `hivectl` as its users have it: the real binary against a broker that answers from a script,
//! over a real socket.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod backup;
mod complete;
mod doctor;
mod errors;
mod fake;
mod follow;
mod help;
mod login;
mod orders;
mod output;
mod questions;
mod run;
mod schemas;
mod stats;
mod terminal;
mod turns;
mod up;
