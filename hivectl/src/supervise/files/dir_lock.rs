//! The lock on a directory of a launcher: one launcher at a time.
//!
//! The lock is on the directory itself, so no file of it can be replaced. Invariant: it is free
//! once its holder has ended, because no program that the holder starts inherits it.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The lock while it is held.
#[derive(Debug)]
pub(crate) struct DirLock {
    /// Closing it releases the lock.
    _dir: File,
}

impl DirLock {
    /// Takes the lock; `None` if another process holds it.
    pub(crate) fn take(dir: &Path) -> io::Result<Option<Self>> {
        let dir = File::open(dir)?;
        match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _dir: dir })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = DirLock::take(dir.path()).expect("it can be tried").expect("it is free");
        assert!(DirLock::take(dir.path()).expect("it can be tried").is_none(), "it is held");
        drop(lock);
        assert!(DirLock::take(dir.path()).expect("it can be tried").is_some(), "it is free");
    }
}
