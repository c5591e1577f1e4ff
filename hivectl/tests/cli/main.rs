//! `hivectl` as its users have it: the real binary against a broker that answers from a script, over a real socket.

mod complete;
mod errors;
mod fake;
mod follow;
mod help;
mod output;
mod questions;
mod run;
mod terminal;
mod up;
