//! Deleting a directory tree that an agent has made, however deep it is and whatever its
//! permissions are.
//!
//! Every directory of the tree is first moved into one heap beside it. So nothing recurses, and
//! three directories are open at a time. All access goes along descriptors: an agent that still
//! runs may replace directories.
//!
//! Invariant: links are deleted and not followed. What an interrupted deletion has left is deleted
//! by the next one of the same path.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmod, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

/// A directory, and nothing that leads to one.
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Most moves of one directory to the heap, which an earlier deletion may remove in between.
const TRIES_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Heap {
    parent: OwnedFd,
    name: CString,
}

pub(crate) fn tree(path: &Path) -> io::Result<()> {
    match Heap::collect(path)? {
        Some(heap) => heap.empty(),
        None => Ok(()),
    }
}

impl Heap {
    /// Moves the file or directory of a path to the heap at once; `None` if its parent does not
    /// exist.
    pub(crate) fn collect(path: &Path) -> io::Result<Option<Self>> {
        let parent =
            path.parent().map(Path::to_path_buf).filter(|parent| !parent.as_os_str().is_empty());
        let parent = match openat(
            CWD,
            parent.unwrap_or_else(|| PathBuf::from(".")),
            DIRECTORY,
            Mode::empty(),
        ) {
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
        heap.accept(&last)?;
        Ok(Some(heap))
    }

    /// Takes an entry of the parent directory.
    fn accept(&self, last: &CStr) -> io::Result<()> {
        // A move into a heap that was removed in between fails like a move of an absent directory.
        // So each try checks the directory first.
        for _ in 0..TRIES_MAX {
            match openat(&self.parent, last, OFlags::PATH | DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(()),
                Err(_) => return unlink(self.parent.as_fd(), last),
                Ok(_) => {}
            }
            match self.open_or_create() {
                Ok(None) => {}
                Ok(Some(own)) => match put(self.parent.as_fd(), last, own.as_fd(), &mut 0) {
                    Err(error) if is_full(&error) => self.empty()?,
                    put => put?,
                },
                Err(error) if is_full(&error) => self.become_heap(last)?,
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!(
            "it is still there after {TRIES_MAX} moves: end the program that makes it again"
        )))
    }

    pub(crate) fn empty(&self) -> io::Result<()> {
        let mut number = 0;
        loop {
            let own = match openat(&self.parent, &self.name, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(()),
                // A file or a link has replaced the heap.
                Err(Errno::NOTDIR | Errno::LOOP) => return unlink(self.parent.as_fd(), &self.name),
                own => own?,
            };
            let mut pass = Pass::default();
            for name in entries(&own)? {
                pass.note(flatten(own.as_fd(), &name?, &mut number))?;
            }
            if pass.found_nothing() {
                match unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
                    // A later start has moved something there.
                    Err(Errno::NOTEMPTY | Errno::EXIST) => continue,
                    done => return absent_is_fine(done),
                }
            }
            pass.end()?;
        }
    }

    /// Returns the directory of the heap; `None` if it was removed at the same moment.
    fn open_or_create(&self) -> io::Result<Option<OwnedFd>> {
        match mkdirat(&self.parent, &self.name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        match openat(&self.parent, &self.name, DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                unlink(self.parent.as_fd(), &self.name).map(|()| None)
            }
            own => Ok(Some(own?)),
        }
    }

    /// Makes an entry of the parent directory the heap: that needs no space, which a full disk does
    /// not have.
    fn become_heap(&self, last: &CStr) -> io::Result<()> {
        make_accessible(self.parent.as_fd(), last)?;
        match renameat(&self.parent, last, &self.parent, &self.name) {
            // There is a heap now.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(()),
            done => absent_is_fine(done),
        }
    }
}

/// The result of one pass over a directory. On a full disk a move may fail that succeeds after
/// other files are deleted.
#[derive(Debug, Default)]
struct Pass {
    is_changed: bool,
    full: Option<io::Error>,
}

impl Pass {
    /// Notes the deletion of an entry; a full disk is no reason to leave the next one.
    fn note(&mut self, done: io::Result<()>) -> io::Result<()> {
        match done {
            Err(error) if is_full(&error) => self.full = Some(error),
            done => {
                done?;
                self.is_changed = true;
            }
        }
        Ok(())
    }

    fn found_nothing(&self) -> bool {
        !self.is_changed && self.full.is_none()
    }

    /// Fails if another pass would have the same result.
    fn end(self) -> io::Result<()> {
        match self.full {
            Some(error) if !self.is_changed => Err(error),
            _ => Ok(()),
        }
    }
}

/// Deletes an entry of the heap; the directories in it become the heap's.
fn flatten(heap: BorrowedFd<'_>, name: &CStr, number: &mut u64) -> io::Result<()> {
    let open = || openat(heap, name, DIRECTORY, Mode::empty());
    let opened = match open() {
        // The directory existed before its parent became the heap.
        Err(Errno::ACCESS) => make_accessible(heap, name).and_then(|()| open()),
        opened => opened,
    };
    let dir = match opened {
        // Another deletion of the same heap runs.
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return unlink(heap, name),
        dir => dir?,
    };
    let mut pass = Pass::default();
    for entry in entries(&dir)? {
        let entry = entry?;
        match openat(&dir, &entry, OFlags::PATH | DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => {}
            Ok(_) => pass.note(put(dir.as_fd(), &entry, heap, number))?,
            Err(_) => pass.note(unlink(dir.as_fd(), &entry))?,
        }
    }
    pass.end()?;
    match unlinkat(heap, name, AtFlags::REMOVEDIR) {
        // An entry remains or was added; the next pass over the heap finds it.
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        done => absent_is_fine(done),
    }
}

/// Moves a directory to the heap; an empty one is deleted, because a full disk may have no space
/// for another name.
fn put(dir: BorrowedFd<'_>, name: &CStr, heap: BorrowedFd<'_>, number: &mut u64) -> io::Result<()> {
    match unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {}
        Err(Errno::NOTDIR) => return unlink(dir, name),
        done => return absent_is_fine(done),
    }
    // A move to another directory changes the directory that is moved.
    match make_accessible(dir, name) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return unlink(dir, name),
        done => done?,
    }
    loop {
        let name_in_heap = number.to_string();
        *number += 1;
        match renameat(dir, name, heap, &*name_in_heap) {
            // An earlier one.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            done => return absent_is_fine(done),
        }
    }
}

/// Gives the owner of a directory all rights on it.
fn make_accessible(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let fd = openat(dir, name, OFlags::PATH | DIRECTORY, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), Mode::RWXU)
}

/// Reads the names in a directory one by one: an agent may leave millions. The next pass finds a
/// name that is missed because of deletions.
fn entries(dir: &OwnedFd) -> io::Result<impl Iterator<Item = io::Result<CString>> + use<>> {
    let names = Dir::read_from(dir)?.map(|entry| Ok(entry?.file_name().to_owned()));
    Ok(names.filter(|name| !name.as_deref().is_ok_and(|name: &CStr| name == c"." || name == c"..")))
}

fn is_full(error: &io::Error) -> bool {
    [Errno::NOSPC, Errno::DQUOT]
        .into_iter()
        .any(|full| error.raw_os_error() == Some(full.raw_os_error()))
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
mod tests;
