//! The two launchers: `hivectl up`, a whole hive in the foreground, for a machine without service
//! units; and `hivectl supervise --systemd`, for agents that are units.
//!
//! - `hive`: the hive of `up` from its start to its end; `signals`, `next` (what to type), `error`
//! - `files/`: paths of the host, safe from links; deleting
//! - `setup/`: what is settled before a start: the plan, settings, environments, programs
//! - `process/`: one child process, its log, its restarts
//! - `broker/`: the broker's start, and its list of sandboxes
//! - `logs/`: what agents read of logs
//! - `isolation/`: the level and the sandbox of each agent
//! - `launch/`: what the broker wants of a launcher, and the reports to it
//! - `fleet/`: the harnesses of `up`, in step with the agents of the broker
//! - `units/`: the launcher of a host with systemd
//!
//! What it is not: `up` keeps no state; a second one continues with the directories of the first.
//! Invariant: at the end of `up`, no process that it started is left. A folder uses only those
//! above it in this list.

mod broker;
mod error;
mod files;
mod fleet;
mod hive;
mod isolation;
mod launch;
mod logs;
mod next;
mod process;
mod setup;
mod signals;
mod units;

pub(crate) use self::error::UpError;
pub(crate) use self::hive::{Options, run};
pub(crate) use self::isolation::sandboxes;
pub(crate) use self::process::tied::become_program;
pub(crate) use self::setup::binaries::{find, resolve};
pub(crate) use self::units::run as run_units;
