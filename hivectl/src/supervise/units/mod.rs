//! The launcher of a host with systemd: what `hivectl supervise --systemd` runs.
//!
//! ```text
//!   broker ──► wanted ──► decide ──► systemctl start, stop: hive@NAME.service
//!   broker ◄── report ◄── news ◄──── systemctl show, every other second
//! ```
//!
//! - `host`: the loop; `purge`: the end of a purged agent's directories
//! - `systemctl`: the calls of systemd; `state`: what it says about a unit
//! - `record`: what is kept of each agent on disk; `news`: what is reported of a unit
//! - `pace`: the pause before an order is given again; `error`
//!
//! Invariant: units of agents are started and stopped, and nothing else. They run on when the
//! launcher ends, and the next one continues from the records and from what systemd says.

mod error;
mod host;
mod news;
mod pace;
mod purge;
mod record;
mod state;
mod systemctl;

pub(crate) use self::host::run;
