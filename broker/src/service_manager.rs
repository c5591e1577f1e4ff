//! The service manager, which is systemd: reports to it, and the descriptors that it
//! keeps between two runs.
//!
//! Without `NOTIFY_SOCKET` there is none, and every call does nothing. Invariant: a missing or deaf
//! service manager stops nothing; only what it keeps is missing at the next start.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use sd_notify::NotifyState;

use crate::kernel;

/// Longest wait for the service manager to have handled all messages.
const BARRIER_MAX: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// A descriptor that was handed over, with its name.
#[derive(Debug)]
pub struct Inherited {
    /// The name: that of the unit of a socket, or the one under which it was kept.
    pub name: String,
    /// The descriptor.
    pub fd: OwnedFd,
}

/// Returns whether there is a service manager that takes notifications.
#[must_use]
pub fn is_there() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some_and(|socket| !socket.is_empty())
}

/// Takes the descriptors that were handed over. To be called once, before anything is opened.
#[must_use]
pub fn inherited() -> Vec<Inherited> {
    let named = match sd_notify::listen_fds_with_names() {
        Ok(named) => named,
        Err(error) => {
            tracing::warn!(%error, "files were handed over in a form that is not known; none is used");
            return Vec::new();
        }
    };
    named
        .filter_map(|(number, name)| match kernel::inherited(number) {
            Ok(fd) => Some(Inherited { name, fd }),
            Err(error) => {
                tracing::warn!(number, name, %error, "a file that was handed over is not used");
                None
            }
        })
        .collect()
}

/// Tells the service manager something that it can miss.
pub fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not notified");
    }
}

/// Returns how often the service manager wants to hear that the broker works; `None`: never.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Has a descriptor kept under a name.
pub fn keep(name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
    sd_notify::notify_with_fds(&[NotifyState::FdStore, NotifyState::FdName(name)], &[fd])
}

/// Has the descriptors of a name kept no longer.
pub fn forget(name: &str) -> io::Result<()> {
    sd_notify::notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)])
}

/// Waits until the service manager has handled all messages so far; blocks for at most five
/// seconds.
pub fn barrier() -> io::Result<()> {
    if !is_there() {
        return Ok(());
    }
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    sd_notify::notify_with_fds(&[NotifyState::Custom("BARRIER=1")], &[theirs.as_fd()])?;
    drop(theirs);
    // The service manager closes its end when it comes to this message.
    let mut end = [PollFd::new(&ours, PollFlags::IN)];
    match poll(&mut end, Some(&BARRIER_MAX))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}
