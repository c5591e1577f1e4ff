//! Tests of the engine: the delivery contract, line by line, on a real database and with a manual
//! clock.
//!
//! Each file is a chapter of the contract and each test one promise of it, written as a scenario.
//! [`hive`] is the rig; when it is dropped, the database is audited, so that every scenario also
//! checks the books.

mod audit;
mod hive;

mod actions;
mod agents;
mod approval_races;
mod approvals;
mod backup;
mod clocks;
mod commands;
mod consumers;
mod declare;
mod etags;
mod events;
mod facts;
mod faults;
mod handovers;
mod heartbeats;
mod kicks;
mod lanes;
mod launch;
mod lease_ends;
mod limits;
mod logins;
mod logs;
mod loose_ends;
mod model;
mod operate;
mod outbox;
mod outcomes;
mod parks;
mod poison;
mod policies;
mod previews;
mod problems;
mod purge;
mod questions;
mod races;
mod refusals;
mod reminders;
mod rerun;
mod restored;
mod retention;
mod schedule_times;
mod schedules;
mod search;
mod send;
mod send_streams;
mod sessions;
mod settlements;
mod stats;
mod status;
mod stop;
mod streams;
mod timers;
mod tokens;
mod traces;
mod tree;
mod turns;
mod upkeep;
mod waiters;
mod wakes;
mod watched;

// Shared imports of most chapters, which use `use super::*`.
use std::sync::Arc;
use std::time::Duration;

use hive_core::agent::{HarnessState, Policy};
use hive_core::command::Order;
use hive_core::delivery::{Decision, State};
use hive_core::event::Kind as EventKind;
use hive_core::id::MessageId;
use hive_core::limits::Limits;
use hive_core::message::SystemKind;
use hive_core::name::Label;
use hive_core::reason::Reason;
use hive_core::time::WallTime;
use hive_core::turn::{Ended, Kind, Outcome};

use crate::engine::mail::question::Ask;
use crate::engine::mail::receive::{Leased, Receive};
use crate::engine::mail::reminder::Due;
use crate::engine::mail::send::Send;
use crate::engine::mail::wake::Wake;
use crate::engine::operator::agents::Create;
use crate::engine::operator::commands::NewCommand;
use crate::engine::turn::attach::Attach;
use crate::engine::{Actor, Refusal};
use hive::*;
