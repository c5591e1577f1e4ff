//! The lock on the state directory that claude inherits.
//!
//! The lock is on the directory itself, so an agent cannot delete or replace it. The harness drops
//! its own copy when claude is started. From then on claude and its descendants hold it, and the
//! kernel releases it with the last of them. A record beside it names the harness that started
//! claude. Leftovers of a dead harness are ended, those of a live one are awaited.
//!
//! Invariant: only the owner of a [`StateLock`] may start a claude there.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal};
use tokio::time::Instant;

use crate::boot::file;
use crate::process::family::{self, Process};

/// Maximum wait for a claude that cannot be ended.
const PATIENCE: Duration = Duration::from_secs(30);
/// Wait after which a harness that took the agent over ends that claude itself.
const PATIENCE_TAKING_OVER: Duration = Duration::from_secs(5);
/// The pause between two tries.
const ROUND: Duration = Duration::from_millis(20);

/// The right to start a claude in a state directory.
#[derive(Debug)]
pub struct StateLock {
    fd: OwnedFd,
}

/// Why the lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("cannot lock the state directory {}: {source}; check its owner and permissions", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("another harness runs claude in {} (process {pid}); give each agent a state directory of its own", .path.display())]
    InUse {
        path: PathBuf,
        /// The holder; 0 if it is not visible.
        pid: i32,
    },
}

impl StateLock {
    /// Acquires the lock, after ending the leftovers of an earlier harness.
    pub async fn acquire(
        state_dir: &Path,
        run_dir: &Path,
        taking_over: bool,
    ) -> Result<Self, LockError> {
        let failed = |source: io::Error| LockError::Io { path: state_dir.to_path_buf(), source };
        let fd = open_dir(state_dir).map_err(failed)?;
        let record = run_dir.join("claude-owner");
        let begun = Instant::now();
        loop {
            if try_lock(&fd).map_err(failed)? {
                break;
            }
            let holders = holders(state_dir);
            if begun.elapsed() > PATIENCE {
                return Err(LockError::InUse {
                    path: state_dir.to_path_buf(),
                    pid: holders.first().map_or(0, |holder| holder.pid),
                });
            }
            // A holder in another PID namespace is neither visible nor killable; its own harness
            // must end it.
            if is_left_behind(&record) || (taking_over && begun.elapsed() > PATIENCE_TAKING_OVER) {
                end(&holders);
            }
            tokio::time::sleep(ROUND).await;
        }
        let this = family::this().unwrap_or(Process { pid: 0, start: 0 });
        file::write(&record, &format!("{} {}\n", this.pid, this.start)).map_err(failed)?;
        Ok(Self { fd })
    }

    /// Lets processes that start from now on inherit the lock. Drop it as soon as claude is
    /// started.
    pub fn hand_down(&self) -> io::Result<()> {
        Ok(rustix::io::fcntl_setfd(&self.fd, FdFlags::empty())?)
    }
}

/// Opens a directory, to lock it.
pub(crate) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Locks a directory for this process; returns whether that was possible now.
pub(crate) fn try_lock(dir: &OwnedFd) -> io::Result<bool> {
    match rustix::fs::flock(dir, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns whether the harness that started the lock's holder is gone, or is this one.
fn is_left_behind(record: &Path) -> bool {
    let Some(owner) = fs::read_to_string(record).ok().and_then(|text| parse(&text)) else {
        return false;
    };
    Some(owner) == family::this() || !family::is_alive(owner)
}

fn parse(text: &str) -> Option<Process> {
    let (pid, start) = text.trim().split_once(' ')?;
    Some(Process { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

fn end(holders: &[Process]) {
    for holder in holders {
        tracing::warn!(pid = holder.pid, "ending what an earlier harness left behind");
        if let Some(pid) = Pid::from_raw(holder.pid) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Returns the processes that hold the lock: those with a descriptor of the directory that carries
/// it.
fn holders(state_dir: &Path) -> Vec<Process> {
    let Ok(wanted) = File::open(state_dir).and_then(|dir| dir.metadata()) else {
        return Vec::new();
    };
    let own = rustix::process::getpid().as_raw_pid();
    let holds = |pid: &i32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors
            .filter(|fd| {
                fs::metadata(fd.path())
                    .is_ok_and(|m| (m.dev(), m.ino()) == (wanted.dev(), wanted.ino()))
            })
            .any(|fd| {
                let info =
                    Path::new("/proc").join(pid.to_string()).join("fdinfo").join(fd.file_name());
                fs::read_to_string(info).is_ok_and(|info| info.contains("FLOCK"))
            })
    };
    family::all().filter(|pid| *pid != own).filter(holds).filter_map(family::find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_is_gone_leaves_things_behind_and_an_unknown_one_does_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let record = dir.path().join("owner");
        assert!(!is_left_behind(&record));
        let this = family::this().expect("proc is there");
        fs::write(&record, format!("{} {}\n", this.pid, this.start)).expect("written");
        assert!(is_left_behind(&record));
        fs::write(&record, format!("{} {}\n", this.pid, this.start + 1)).expect("written");
        assert!(is_left_behind(&record));
        let other = family::find(1).expect("process 1 lives");
        fs::write(&record, format!("{} {}\n", other.pid, other.start)).expect("written");
        assert!(!is_left_behind(&record));
    }
}
