//! The services of a host: the real programs under the units of `packaging/`, started by a real
//! systemd in a container.
//!
//! Invariant: nothing outside of its container is touched, and a container ends with its test.

mod agents;
mod approved;
mod archive;
mod bed;
mod install;
mod journal;
mod launcher;
mod nixos;
mod package;
mod rebuild;
mod restarts;
mod trouble;
mod units;
