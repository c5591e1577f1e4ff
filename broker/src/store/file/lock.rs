//! The lock on the state directory: one broker at a time.
//!
//! Invariant: it is free once its holder is gone, even if a process that the holder just started
//! still has its files.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// The name of the file.
pub(in crate::store) const FILE: &str = "hived.lock";
/// Bytes that a start writes to see whether there is room for a small commit.
const ROOM_BYTES: usize = 16 * 1024;

/// The lock while it is held.
#[derive(Debug)]
pub(in crate::store) struct Lock(File);

impl Lock {
    /// Takes the lock; `None` if another process holds it.
    pub(in crate::store) fn take(dir: &Path) -> io::Result<Option<Self>> {
        // Root restores in directories of other users, whose links it must not follow.
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(dir.join(FILE))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Fails if the disk takes no writes. A start on a full disk may have nothing else to write,
    /// and would not notice it.
    pub(in crate::store) fn try_disk(&self) -> io::Result<()> {
        let written = self.0.write_all_at(&[0; ROOM_BYTES], 0);
        // Also after a write that failed, which may have taken the last of the room.
        self.0.set_len(0)?;
        written
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing releases it only with the last copy, and between fork and exec a child has one.
        // If this fails, closing releases it.
        flock(&self.0, FlockOperation::Unlock).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_free_once_its_holder_is_gone_even_if_a_copy_of_the_file_is_open() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = Lock::take(dir.path()).expect("it can be tried").expect("nobody has it");
        assert!(Lock::take(dir.path()).expect("it can be tried").is_none(), "somebody has it");
        let copy = lock.0.try_clone().expect("a copy");
        drop(lock);
        assert!(Lock::take(dir.path()).expect("it can be tried").is_some(), "nobody has it");
        drop(copy);
    }
}
