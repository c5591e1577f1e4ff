//! The commands, one file per noun or verb: their arguments and their work.
//!
//! Invariant: a command reads or changes the hive by calls to the broker alone, and prints by
//! `Output` alone.

pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod backup;
mod choice;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod dead_letters;
pub(crate) mod debug;
pub(crate) mod doctor;
pub(crate) mod drain;
mod each;
pub(crate) mod events;
pub(crate) mod inbox;
pub(crate) mod login;
pub(crate) mod loose_ends;
pub(crate) mod questions;
pub(crate) mod reminders;
pub(crate) mod restore;
pub(crate) mod schedules;
pub(crate) mod search;
pub(crate) mod send;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod supervise;
pub(crate) mod topology;
pub(crate) mod trace;
pub(crate) mod turn;
pub(crate) mod up;
