//! The lock on the state directory: one broker at a time.
//!
//! Invariant: it is free when its holder is gone, even while a process that was just started still
//! has the files of the one that started it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The lock, held.
#[derive(Debug)]
pub(in crate::store) struct Lock(File);

impl Lock {
    /// Takes it; `None` where somebody else has it.
    pub(in crate::store) fn take(dir: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(dir.join("hived.lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing gives it back only with the last copy, and between fork and exec a child has one.
        // What fails here closing does.
        flock(&self.0, FlockOperation::Unlock).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_free_once_its_holder_is_gone_whoever_has_a_copy_of_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = Lock::take(dir.path()).expect("it can be tried").expect("nobody has it");
        assert!(Lock::take(dir.path()).expect("it can be tried").is_none(), "somebody has it");
        let copy = lock.0.try_clone().expect("a copy");
        drop(lock);
        assert!(Lock::take(dir.path()).expect("it can be tried").is_some(), "nobody has it");
        drop(copy);
    }
}
