//! How agents are wanted on their host, and what becomes of their harnesses there.
//!
//! - [`wanted`]: starting, stopping and restarting agents, by the operator and by agents above.
//! - [`listing`]: what a launcher has to carry out; [`report`]: what it reports of a harness.
//! - [`logs`]: what agents read of logs, through the launcher; [`lines`]: its form.
//! - [`leave`]: the end of a harness that runs on demand.
//!
//! Invariant: the row of an agent states how it is wanted, so a launcher that was killed, or missed
//! a change, reads it again and loses nothing.

pub mod leave;
pub mod lines;
pub mod listing;
pub mod logs;
pub mod report;
pub mod wanted;
