//! Tests of the engine: the delivery contract, line by line, on a real database and with a clock
//! that is moved by hand.
//!
//! Each file is a chapter of the contract and each test one promise of it, told as a scenario.
//! [`hive`] is the rig; when it is dropped, the database is audited, so that every scenario also
//! checks the books.

mod audit;
mod hive;

mod agents;
mod attention;
mod backup;
mod bounds;
mod clocks;
mod commands;
mod consumers;
mod declare;
mod events;
mod faults;
mod kicks;
mod lanes;
mod logins;
mod looks;
mod loose_ends;
mod model;
mod operate;
mod outcomes;
mod parks;
mod poison;
mod policies;
mod problems;
mod purge;
mod questions;
mod races;
mod reminders;
mod rerun;
mod retention;
mod search;
mod send;
mod sessions;
mod stats;
mod status;
mod stop;
mod timers;
mod tokens;
mod tree;
mod turns;
mod upkeep;
mod wakes;
