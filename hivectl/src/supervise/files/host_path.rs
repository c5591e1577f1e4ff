//! Paths of the host, walked part by part along descriptors.
//!
//! An agent can replace files in a directory that it can write in, at any moment. So a link there
//! is never followed. The file is read from the descriptor at which the walk ended, not by a second
//! walk.
//!
//! Invariant: a link that an agent has made leads nowhere.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use hive_core::isolation::Mounted;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat, statat,
};
use rustix::io::Errno;

/// Most links on the way of one path, as for the kernel.
const LINKS_MAX: usize = 40;
/// Flags with which each part of a path is opened.
const PART: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Mode of directories that are created: for their owner only.
const DIRECTORY_MODE: Mode = Mode::RWXU;

#[derive(Clone, Debug, Default)]
pub(crate) struct AgentsWrite(Vec<PathBuf>);

impl AgentsWrite {
    /// Adds a directory, if it is there. One that is not there contains no link.
    ///
    /// Links are followed: the first directory on the way that an agent can write in is on the list
    /// itself.
    pub(crate) fn add(&mut self, dir: &Path) {
        self.0.extend(dir.canonicalize());
    }

    /// Adds the directories of another list: what agents could write in before, they may have
    /// changed.
    pub(crate) fn add_all(&mut self, other: &Self) {
        for dir in &other.0 {
            if !self.0.contains(dir) {
                self.0.push(dir.clone());
            }
        }
    }

    /// Returns whether some agent can write at a path, which is without links.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.0.iter().any(|dir| path.starts_with(dir))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPath {
    /// The path, without links.
    pub(crate) path: PathBuf,
    /// The links that were followed.
    pub(crate) links: Vec<PathBuf>,
    pub(crate) kind: FileType,
    mode: u32,
    rdev: u64,
    device: u64,
    inode: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    #[error("{}: {}", .at.display(), io::Error::from(*.source))]
    Absent { at: PathBuf, source: Errno },
    #[error("it leads over the link {}, which an agent could have made: name the directory that is meant", .0.display())]
    Link(PathBuf),
    #[error("it leads over more than {LINKS_MAX} links")]
    Links,
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it is not text in UTF-8")]
    NotText,
    #[error("it has more than {0} bytes")]
    TooLong(u64),
}

impl WalkError {
    /// Returns whether an agent may have caused it, by a file that it has made or deleted.
    pub(crate) fn may_be_an_agents(&self, agents_write: &AgentsWrite) -> bool {
        match self {
            Self::Link(_) => true,
            Self::Absent { at, .. } => agents_write.contains(at),
            Self::Links
            | Self::Unreadable(_)
            | Self::NotRegular
            | Self::NotText
            | Self::TooLong(_) => false,
        }
    }
}

impl HostPath {
    /// Finds a path; a link that an agent could have made is refused.
    pub(crate) fn find(path: &Path, agents_write: &AgentsWrite) -> Result<Self, WalkError> {
        walk(path, agents_write, false).map(|(found, _)| found)
    }

    /// Finds a path over any link, as the operator would.
    pub(crate) fn follow(path: &Path) -> Result<Self, WalkError> {
        Self::find(path, &AgentsWrite::default())
    }

    /// Finds a directory; missing parts are created, for their owner only.
    pub(crate) fn directory(path: &Path, agents_write: &AgentsWrite) -> Result<Self, WalkError> {
        let (found, _) = walk(path, agents_write, true)?;
        if found.kind == FileType::Directory {
            Ok(found)
        } else {
            Err(WalkError::Absent { at: found.path, source: Errno::NOTDIR })
        }
    }

    /// Returns the path, without links, that a path has as soon as it can be walked.
    pub(crate) fn would_be(path: &Path, agents_write: &AgentsWrite) -> PathBuf {
        let found = path.ancestors().find_map(|outer| {
            Some((Self::find(outer, agents_write).ok()?.path, path.strip_prefix(outer).ok()?))
        });
        found.map_or_else(|| path.to_path_buf(), |(outer, rest)| outer.join(rest))
    }

    pub(crate) fn read(
        path: &Path,
        agents_write: &AgentsWrite,
        bytes_max: u64,
    ) -> Result<Vec<u8>, WalkError> {
        let bytes = Self::read_start(path, agents_write, bytes_max + 1)?;
        if bytes.len() as u64 > bytes_max { Err(WalkError::TooLong(bytes_max)) } else { Ok(bytes) }
    }

    /// Reads a whole file of text.
    pub(crate) fn read_text(
        path: &Path,
        agents_write: &AgentsWrite,
        bytes_max: u64,
    ) -> Result<String, WalkError> {
        let bytes = Self::read(path, agents_write, bytes_max)?;
        String::from_utf8(bytes).map_err(|_| WalkError::NotText)
    }

    /// Reads the first bytes of a regular file.
    pub(crate) fn read_start(
        path: &Path,
        agents_write: &AgentsWrite,
        bytes_max: u64,
    ) -> Result<Vec<u8>, WalkError> {
        let (found, fd) = walk(path, agents_write, false)?;
        if found.kind != FileType::RegularFile {
            return Err(WalkError::NotRegular);
        }
        let file = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(by_descriptor(&fd))?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns whether this is a regular file that can be run.
    pub(crate) fn is_program(&self) -> bool {
        self.kind == FileType::RegularFile && self.mode & 0o111 != 0
    }

    /// Returns the major and the minor number of a device file.
    pub(crate) fn device_number(&self) -> (u32, u32) {
        (rustix::fs::major(self.rdev), rustix::fs::minor(self.rdev))
    }

    pub(crate) fn mounted_at(&self, dest: &Path) -> Mounted {
        Mounted { path: dest.to_path_buf(), device: self.device, inode: self.inode }
    }

    /// Returns all paths that determine it: the path itself, and the links that were followed.
    pub(crate) fn all_paths(self) -> impl Iterator<Item = PathBuf> {
        self.links.into_iter().chain([self.path])
    }

    fn new(path: PathBuf, links: Vec<PathBuf>, stat: &Stat) -> Self {
        let kind = FileType::from_raw_mode(stat.st_mode);
        Self {
            path,
            links,
            kind,
            mode: stat.st_mode,
            rdev: stat.st_rdev,
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// Returns the path of an open file: the kernel follows it to the file, wherever that is now.
fn by_descriptor(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Opens a part of a path without following it; on demand a missing directory is created.
fn open_part(dir: &OwnedFd, part: &Path, create: bool) -> Result<OwnedFd, Errno> {
    // Opens it as a directory first, because only that triggers an automatic mount.
    let open = || match openat(dir, part, PART | OFlags::DIRECTORY, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => openat(dir, part, PART, Mode::empty()),
        opened => opened,
    };
    match open() {
        Err(Errno::NOENT) if create => match mkdirat(dir, part, DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => open(),
            Err(error) => Err(error),
        },
        found => found,
    }
}

/// Walks a path; returns the file and a descriptor of it.
fn walk(
    path: &Path,
    agents_write: &AgentsWrite,
    create: bool,
) -> Result<(HostPath, OwnedFd), WalkError> {
    let at = |at: &Path| {
        let at = at.to_path_buf();
        move |source| WalkError::Absent { at, source }
    };
    let root = || openat(CWD, "/", PART, Mode::empty()).map_err(at(Path::new("/")));
    let mut rest: Vec<PathBuf> = parts(&std::path::absolute(path)?);
    // The way from the root to here.
    let mut here: Vec<(PathBuf, OwnedFd)> = vec![(PathBuf::from("/"), root()?)];
    let mut links = Vec::new();
    while let Some(part) = rest.pop() {
        if part == Path::new("..") {
            if here.len() > 1 {
                here.pop();
            }
            continue;
        }
        let Some((dir, dir_fd)) = here.last() else { break };
        let next = dir.join(&part);
        let fd = open_part(dir_fd, &part, create).map_err(at(&next))?;
        let stat = fstat(&fd).map_err(at(&next))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            here.push((next, fd));
            continue;
        }
        if agents_write.contains(&next) {
            return Err(WalkError::Link(next));
        }
        let target = readlinkat(&fd, "", Vec::new()).map_err(at(&next))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        links.push(next);
        if links.len() > LINKS_MAX {
            return Err(WalkError::Links);
        }
        if target.is_absolute() {
            here.truncate(1);
        }
        rest.extend(parts(&target));
    }
    let Some((path, fd)) = here.pop() else { return Err(at(path)(Errno::NOENT)) };
    let stat = statat(&fd, "", AtFlags::EMPTY_PATH).map_err(at(&path))?;
    Ok((HostPath::new(path, links, &stat), fd))
}

/// Returns the parts of a path, the last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let kept = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    let mut parts: Vec<PathBuf> =
        path.components().filter(kept).map(|part| PathBuf::from(part.as_os_str())).collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    /// A directory with `project`, in which agents write, and `secret`, in which they do not.
    fn fixture() -> (tempfile::TempDir, PathBuf, AgentsWrite) {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        for name in ["project/in", "secret"] {
            std::fs::create_dir_all(root.join(name)).expect("a directory");
        }
        std::fs::write(root.join("secret/key"), "a key").expect("a file");
        let mut agents_write = AgentsWrite::default();
        agents_write.add(&root.join("project"));
        agents_write.add(&root.join("none"));
        (dir, root, agents_write)
    }

    #[test]
    fn links_of_the_operator_are_followed_and_those_of_agents_are_not() {
        let (_dir, root, agents_write) = fixture();
        symlink("secret", root.join("link")).expect("a link");
        symlink(root.join("link"), root.join("links")).expect("a link");
        symlink("../../secret", root.join("project/in/evil")).expect("a link");
        let found =
            HostPath::find(&root.join("links/../secret/./key"), &agents_write).expect("found");
        assert_eq!(
            (found.path, found.links),
            (root.join("secret/key"), vec![root.join("links"), root.join("link")])
        );
        let inode = root.join("secret").metadata().expect("there").ino();
        assert_eq!(HostPath::find(&root.join("link"), &agents_write).expect("found").inode, inode);
        for path in [
            "project/in/evil",
            "project/in/evil/key",
            "project/none/../in/evil",
            "link/../project/in/evil/key",
        ] {
            let found = HostPath::find(&root.join(path), &agents_write);
            let is_refused = match found {
                Err(WalkError::Link(link)) => link == root.join("project/in/evil"),
                Err(WalkError::Absent { at, .. }) => at == root.join("project/none"),
                _ => false,
            };
            assert!(is_refused, "{path}");
        }
        let evil = root.join("project/in/evil");
        let made = HostPath::directory(&evil.join("new"), &agents_write);
        assert!(matches!(made, Err(WalkError::Link(_))));
        let read = HostPath::read(&evil.join("key"), &agents_write, 9);
        assert!(matches!(read, Err(WalkError::Link(_))));
        assert!(!root.join("secret/new").exists());
        assert_eq!(HostPath::follow(&evil).expect("found").path, root.join("secret"));
    }

    #[test]
    fn directories_are_created_for_their_owner_only() {
        let (_dir, root, agents_write) = fixture();
        let made = HostPath::directory(&root.join("project/a/b"), &agents_write).expect("created");
        assert_eq!(made.path, root.join("project/a/b"));
        assert_eq!(made.path.metadata().expect("there").permissions().mode() & 0o777, 0o700);
        assert_eq!(
            HostPath::directory(&root.join("project/a/b"), &agents_write).expect("there"),
            made
        );
        for path in ["secret/key", "secret/key/x"] {
            let found = HostPath::directory(&root.join(path), &agents_write);
            assert!(matches!(found, Err(WalkError::Absent { .. })), "{path}");
        }
    }

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let (_dir, root, agents_write) = fixture();
        let key = root.join("secret/key");
        assert_eq!(HostPath::read(&key, &agents_write, 5).expect("read"), b"a key");
        assert!(matches!(HostPath::read(&key, &agents_write, 4), Err(WalkError::TooLong(4))));
        assert_eq!(HostPath::read_start(&key, &agents_write, 1).expect("read"), b"a");
        let pipe = root.join("project/pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        // The pipe has no writer: a blocking open would never return.
        assert!(matches!(HostPath::read(&pipe, &agents_write, 5), Err(WalkError::NotRegular)));
        assert!(matches!(HostPath::read(&root, &agents_write, 5), Err(WalkError::NotRegular)));
    }

    #[test]
    fn a_loop_of_links_ends() {
        let (_dir, root, agents_write) = fixture();
        symlink("loop", root.join("loop")).expect("a link");
        assert!(matches!(HostPath::find(&root.join("loop"), &agents_write), Err(WalkError::Links)));
    }
}
