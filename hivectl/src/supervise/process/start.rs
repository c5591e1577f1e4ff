//! The start of a supervised process: decisions before each start, and a hook for the running
//! process.

use std::any::Any;
use std::ffi::OsString;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tokio::sync::oneshot;

use crate::supervise::setup::environment::Env;

/// Decides how a process is started, before each start.
pub(crate) trait Start: Debug + Send + Sync {
    /// Returns what to start, or why it cannot be started, as a sentence without a full stop.
    fn prepare(&self) -> Result<Prepared, String>;
}

/// Watches a process; dropped when that has ended.
pub(crate) type Watch = Box<dyn Any + Send>;
/// Called with the process id once the process runs.
pub(crate) type Started = Box<dyn FnOnce(u32) -> Watch + Send>;

/// Completes when a process may start.
pub(crate) type Ready = oneshot::Receiver<u64>;

pub(crate) struct Prepared {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Env,
    /// Descriptors that the process inherits under their numbers.
    pub(crate) inherited: Vec<OwnedFd>,
    pub(crate) started: Started,
    /// Completes, or is given up, before the process may start; `None`: at once.
    pub(crate) ready: Option<Ready>,
}
