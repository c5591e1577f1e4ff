//! The preparation before any process starts.
//!
//! - `plan`: what will run where; `reload`: what of a changed plan needs a restart
//! - `settings`: the files that a harness reads again before each turn; `secrets`: where it reads
//!   its secrets
//! - `environment`: what the children inherit
//! - `binaries`: the programs of this project; `claude`: which claude, and whether it has a login
//!
//! Invariant: nothing here starts a process.

pub(super) mod binaries;
pub(super) mod claude;
pub(super) mod environment;
pub(super) mod plan;
pub(super) mod reload;
pub(super) mod secrets;
pub(super) mod settings;
