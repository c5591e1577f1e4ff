//! Tables: one file for the SQL of each table. A function runs in the transaction of its caller.
//!
//! | files | rows |
//! | --- | --- |
//! | `agent`, `tree`, `wanted`, `command`, `purge` | agents, their tree, orders about them |
//! | `message`, `delivery`, `lease`, `stream`, `inbox`, `request` | mail, leases, first answers |
//! | `question`, `reminder`, `loose_end` | open items of agents |
//! | `turn`, `turn_tool`, `turn_stats` | turns |
//! | `event`, `log` | the event log, and its identity |
//! | `level` | the numbers of all inboxes, for metrics |
//! | `action_run` | runs of approved actions |
//! | `schedule` | schedules and their targets |
//! | `attention`, `retention` | the operator outbox, and pruning |

pub mod action_run;
pub mod agent;
pub mod attention;
pub mod command;
pub mod delivery;
pub mod event;
pub mod inbox;
pub mod lease;
pub mod level;
pub mod log;
pub mod loose_end;
pub mod message;
pub mod purge;
pub mod question;
pub mod reminder;
pub mod request;
pub mod retention;
pub mod schedule;
pub mod stream;
pub mod traced;
pub mod tree;
pub mod turn;
pub mod turn_stats;
pub mod turn_tool;
pub mod wanted;
