//! `hivectl` as its users have it: the real binary against the real broker in this process, over a
//! real socket.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod backup;
mod complete;
mod doctor;
mod errors;
mod etags;
mod follow;
mod help;
mod hive;
mod login;
mod orders;
mod output;
mod play;
mod questions;
mod run;
mod scene;
mod schedules;
mod schemas;
mod stats;
mod supervise;
mod terminal;
mod turns;
mod up;
