//! The operator's side: the agents of the hive, and what the operator orders and reads.
//!
//! - [`agents`] and [`declare`]: creating, moving and retiring agents, at run time and from the
//!   configuration file; [`policy`]: their rights; [`purge`]: the end of their mail.
//! - [`etag`]: what a change of an agent depends on.
//! - [`view`], [`tree`] and [`watched`]: agents as callers see them.
//! - [`commands`] and [`login`]: orders to a harness.
//! - [`operate`]: decisions about mail; [`levels`]: all inboxes for metrics; [`events`] and
//!   [`backup`]: the log and the database.

pub mod agents;
pub mod backup;
pub mod commands;
pub mod declare;
pub mod etag;
pub mod events;
pub mod levels;
pub mod login;
pub mod operate;
pub mod policy;
pub mod purge;
pub mod scheduled;
pub mod traced;
pub mod tree;
pub mod view;
pub mod watched;
