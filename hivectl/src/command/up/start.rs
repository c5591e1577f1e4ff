//! How a supervised process is started: what is decided at each start, and what happens once it
//! runs.

use std::any::Any;
use std::ffi::OsString;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::environment::Env;

/// Decides how a process is started, before each start.
pub(super) trait Start: Debug + Send + Sync {
    /// Returns what to start, or why it cannot be started, as a sentence without a full stop.
    fn prepare(&self) -> Result<Prepared, String>;
}

/// Watches a process; dropped when that has ended.
pub(super) type Watch = Box<dyn Any + Send>;
/// Called with the process id once the process runs.
pub(super) type Started = Box<dyn FnOnce(u32) -> Watch + Send>;

/// One start.
pub(super) struct Prepared {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Env,
    /// Descriptors that the process inherits under their numbers.
    pub(super) inherited: Vec<OwnedFd>,
    pub(super) started: Option<Started>,
}
