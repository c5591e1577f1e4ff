//! The harness's side: its session, the turns that it runs, and what it reports.
//!
//! - [`attach`]: sessions; [`kick`]: the notice to an agent whose harness was restarted.
//! - [`begin`] and [`end`]: turns and their mail; [`park`]: agents whose turns cannot run.
//! - [`status`], [`problem`] and [`tool_use`]: reports of the agent and its harness.
//! - [`history`] and [`stats`]: reading ended turns.
//!
//! Turns use the mail, and know no command of the operator.

pub mod attach;
pub mod begin;
pub mod end;
pub mod history;
pub mod kick;
pub mod park;
pub mod problem;
pub mod stats;
pub mod status;
pub mod tool_use;
