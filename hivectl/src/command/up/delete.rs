//! Deleting a directory tree that an agent has made, however deep it is and whatever its permissions are.
//!
//! Every directory of the tree is first moved into one heap beside it. So nothing recurses, and three directories are open at a time. All of it
//! goes along descriptors: an agent that still runs may replace what was looked at.
//!
//! Invariant: links are deleted and not followed. What an interrupted deletion has left is deleted by the next one of the same path.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmod, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

/// A directory, and nothing that leads to one.
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Directories on their way out.
#[derive(Debug)]
pub(super) struct Heap {
    parent: OwnedFd,
    name: CString,
}

/// Deletes a file, a link, or a directory with all that is in it.
pub(super) fn tree(path: &Path) -> io::Result<()> {
    match Heap::take(path)? {
        Some(heap) => heap.empty(),
        None => Ok(()),
    }
}

impl Heap {
    /// Takes what is at a path away, at once; `None` where its directory does not exist.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let parent = path.parent().map(Path::to_path_buf).filter(|parent| !parent.as_os_str().is_empty());
        let parent = match openat(CWD, parent.unwrap_or_else(|| PathBuf::from(".")), DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            parent => parent?,
        };
        let last = path.file_name().unwrap_or_default();
        let mut name = OsString::from(".");
        name.push(last);
        name.push(".deleted");
        let as_name = |name: &OsStr| CString::new(name.as_bytes()).map_err(io::Error::other);
        let (last, name) = (as_name(last)?, as_name(&name)?);
        let heap = Self { parent, name };
        match openat(&heap.parent, &last, OFlags::PATH | DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => {}
            Ok(_) => {
                let own = heap.open_or_create()?;
                put(heap.parent.as_fd(), &last, own.as_fd(), &mut 0)?;
            }
            Err(_) => unlink(heap.parent.as_fd(), &last)?,
        }
        Ok(Some(heap))
    }

    /// Deletes what was taken.
    pub(super) fn empty(self) -> io::Result<()> {
        let mut number = 0;
        loop {
            let own = match openat(&self.parent, &self.name, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(()),
                // Something else in its place.
                Err(Errno::NOTDIR | Errno::LOOP) => return unlink(self.parent.as_fd(), &self.name),
                own => own?,
            };
            let names = entries(&own)?;
            if names.is_empty() {
                return absent_is_fine(unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR));
            }
            for name in names {
                flatten(own.as_fd(), &name, &mut number)?;
            }
        }
    }

    fn open_or_create(&self) -> io::Result<OwnedFd> {
        match mkdirat(&self.parent, &self.name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => match openat(&self.parent, &self.name, DIRECTORY, Mode::empty()) {
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    unlink(self.parent.as_fd(), &self.name)?;
                    mkdirat(&self.parent, &self.name, Mode::RWXU)?;
                }
                there => return Ok(there?),
            },
            Err(error) => return Err(error.into()),
        }
        Ok(openat(&self.parent, &self.name, DIRECTORY, Mode::empty())?)
    }
}

/// Deletes an entry of the heap; the directories in it become the heap's.
fn flatten(heap: BorrowedFd<'_>, name: &CStr, number: &mut u64) -> io::Result<()> {
    let dir = match openat(heap, name, DIRECTORY, Mode::empty()) {
        // Another deletion of the same heap runs.
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return unlink(heap, name),
        dir => dir?,
    };
    for entry in entries(&dir)? {
        match openat(&dir, &entry, OFlags::PATH | DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => {}
            Ok(_) => put(dir.as_fd(), &entry, heap, number)?,
            Err(_) => unlink(dir.as_fd(), &entry)?,
        }
    }
    match unlinkat(heap, name, AtFlags::REMOVEDIR) {
        // Something was added; the next look at the heap finds it.
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        done => absent_is_fine(done),
    }
}

/// Moves a directory to the heap.
fn put(dir: BorrowedFd<'_>, name: &CStr, heap: BorrowedFd<'_>, number: &mut u64) -> io::Result<()> {
    // A move to another directory changes the directory that is moved.
    let fd = match openat(dir, name, OFlags::PATH | DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return unlink(dir, name),
        fd => fd?,
    };
    chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), Mode::RWXU)?;
    loop {
        let place = number.to_string();
        *number += 1;
        match renameat(dir, name, heap, &*place) {
            // An earlier one.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            done => return absent_is_fine(done),
        }
    }
}

fn entries(dir: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

fn unlink(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    absent_is_fine(unlinkat(dir, name, AtFlags::empty()))
}

fn absent_is_fine(done: Result<(), Errno>) -> io::Result<()> {
    match done {
        Err(Errno::NOENT) => Ok(()),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_tree_is_deleted_with_read_only_directories_and_no_link_is_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (agent, other) = (dir.path().join("agent"), dir.path().join("other"));
        fs::create_dir_all(agent.join("state/cache/deep")).expect("directories");
        fs::create_dir_all(other.join("kept")).expect("directories");
        fs::write(agent.join("state/cache/file"), "").expect("a file");
        symlink(&other, agent.join("state/link")).expect("a link");
        for name in ["state/cache/deep", "state/cache"] {
            fs::set_permissions(agent.join(name), Permissions::from_mode(0o500)).expect("a mode");
        }
        tree(&agent).expect("deleted");
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1, "nothing is left beside it");
        assert!(other.join("kept").is_dir());
        tree(&agent).expect("nothing is there");
        symlink(&other, &agent).expect("a link");
        tree(&agent).expect("deleted");
        assert!(fs::symlink_metadata(&agent).is_err() && other.join("kept").exists());
    }

    #[test]
    fn a_tree_that_no_path_reaches_the_end_of_is_deleted() {
        let dir = tempfile::tempdir().expect("a directory");
        let top = dir.path().join("tmp");
        fs::create_dir(&top).expect("a directory");
        // 3,000 names of 9 bytes: more than a path may have, so it is built from inside out.
        for _ in 0..3_000 {
            let outer = dir.path().join("outer");
            fs::create_dir(&outer).expect("a directory");
            fs::rename(&top, outer.join("directory")).expect("moved");
            fs::rename(&outer, &top).expect("moved");
        }
        tree(&top).expect("deleted");
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
    }

    #[test]
    fn what_an_interrupted_deletion_left_is_deleted_by_the_next() {
        let dir = tempfile::tempdir().expect("a directory");
        let top = dir.path().join("tmp");
        for _ in 0..2 {
            fs::create_dir_all(top.join("a/b")).expect("directories");
            drop(Heap::take(&top).expect("taken"));
            assert!(!top.exists());
        }
        tree(&top).expect("deleted");
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
    }

    #[test]
    fn a_link_in_the_place_of_the_heap_or_in_it_leads_nowhere() {
        let dir = tempfile::tempdir().expect("a directory");
        let (top, other) = (dir.path().join("tmp"), dir.path().join("other"));
        fs::create_dir_all(other.join("kept/in")).expect("directories");
        let heap = dir.path().join(".tmp.deleted");
        symlink(&other, &heap).expect("a link");
        fs::create_dir_all(top.join("a")).expect("directories");
        tree(&top).expect("deleted");
        fs::create_dir(&heap).expect("a directory");
        symlink(&other, heap.join("0")).expect("a link");
        fs::write(heap.join("1"), "").expect("a file");
        fs::create_dir_all(top.join("a")).expect("directories");
        tree(&top).expect("deleted");
        assert!(other.join("kept/in").is_dir());
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1);
    }
}
