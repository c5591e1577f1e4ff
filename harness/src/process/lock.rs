//! The lock on the state directory that claude inherits.
//!
//! The lock is on the directory itself, so there is nothing that an agent could delete or replace.
//! The harness gives its own copy away when claude is started: from then on claude and what it
//! starts hold it, and the kernel lets go of it with the last of them. Beside it stands who started
//! claude; leftovers of a harness that is gone are ended, those of one that lives are waited for.
//!
//! Invariant: who has a [`StateLock`] is the only one that may start a claude there.

use std::fs::{self, File};
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

/// How long a claude that cannot be ended is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so long a harness that took the agent over ends it itself.
const PATIENCE_TAKING_OVER: Duration = Duration::from_secs(5);
/// The rest between two tries.
const ROUND: Duration = Duration::from_millis(20);

/// The right to start a claude in a state directory.
#[derive(Debug)]
pub struct StateLock {
    fd: OwnedFd,
}

/// Why the lock was not got.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The directory, or the file that tells whose it is.
    #[error("cannot lock the state directory {}: {source}", .path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the host said.
        source: std::io::Error,
    },
    /// Somebody else has it.
    #[error("another harness runs claude in {} (process {pid}); give each agent a state directory of its own", .path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The holder; 0 if it cannot be seen.
        pid: i32,
    },
}

impl StateLock {
    /// Gets the lock, after ending what an earlier harness left behind.
    pub async fn acquire(
        state_dir: &Path,
        run_dir: &Path,
        taking_over: bool,
    ) -> Result<Self, LockError> {
        let failed =
            |source: std::io::Error| LockError::Io { path: state_dir.to_path_buf(), source };
        let fd = rustix::fs::open(
            state_dir,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| failed(errno.into()))?;
        let record = run_dir.join("claude-owner");
        let begun = Instant::now();
        loop {
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
            let holders = holders(state_dir);
            if begun.elapsed() > PATIENCE {
                return Err(LockError::InUse {
                    path: state_dir.to_path_buf(),
                    pid: holders.first().map_or(0, |holder| holder.pid),
                });
            }
            // A holder in another PID namespace cannot be seen, nor ended; its own harness has to.
            if is_left_behind(&record) || (taking_over && begun.elapsed() > PATIENCE_TAKING_OVER) {
                end(&holders);
            }
            tokio::time::sleep(ROUND).await;
        }
        let this = family::this().unwrap_or(Process { pid: 0, start: 0 });
        file::write(&record, &format!("{} {}\n", this.pid, this.start)).map_err(failed)?;
        Ok(Self { fd })
    }

    /// Lets the processes that are started from now on inherit the lock. Drop it as soon as claude
    /// is started.
    pub fn hand_down(&self) -> std::io::Result<()> {
        Ok(rustix::io::fcntl_setfd(&self.fd, FdFlags::empty())?)
    }
}

/// Whether the harness that started the claude that holds the lock is gone, or is this one.
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

/// The processes that hold the lock: those with a descriptor of the directory that carries it.
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
    family::all().filter(|pid| *pid != own).filter(holds).filter_map(family::look).collect()
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
        let other = family::look(1).expect("process 1 lives");
        fs::write(&record, format!("{} {}\n", other.pid, other.start)).expect("written");
        assert!(!is_left_behind(&record));
    }
}
