//! Repairs: what `--fix` does about a finding.
//!
//! Only modes are changed, and only files are removed that are a socket of no process or a copy
//! that was not finished. Invariant: nothing is reached through a link, nothing of another user is
//! changed, and each repair looks again at what it is about to change. So it can be made twice, and
//! by two programs at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, chmod, flock, fstat, openat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::host::SQLITE_MAGIC;
use super::places::directory_of;

/// The lock that a running broker, a restore or a migration holds in the state directory.
const LOCK: &str = "hived.lock";
/// Time without a change after which no program writes a copy any more.
pub(super) const UNCHANGED_MIN: Duration = Duration::from_secs(3600);

/// What can be done about a finding.
#[derive(Clone, Debug)]
pub(super) enum Repair {
    /// Sets the mode of a file.
    SetMode {
        path: PathBuf,
        /// The bits that must not be set.
        forbidden: u32,
        /// The bits that must be set.
        required: u32,
    },
    /// Removes a socket on which no process listens.
    RemoveSocket { path: PathBuf },
    /// Removes a copy of a database that was not finished.
    RemoveUnfinished {
        path: PathBuf,
        /// The directory of the database.
        state_dir: PathBuf,
        /// Whether a program that holds the lock of the state directory writes it.
        is_locked: bool,
    },
}

/// Why nothing was repaired.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRepaired {
    #[error(
        "{} belongs to uid {uid}, and this is uid {own}; run it as that user, as with `sudo -u '#{uid}' hivectl doctor --fix`", .path.display()
    )]
    OtherUser { path: PathBuf, uid: u32, own: u32 },
    #[error(
        "{} is a symbolic link or of another type than it was; look at it with `ls -l`", .0.display()
    )]
    OtherType(PathBuf),
    #[error("a process listens on {} by now", .0.display())]
    Listened(PathBuf),
    #[error("another program uses the state directory {}; try again when it has ended", .0.display())]
    InUse(PathBuf),
    #[error(
        "{} is no database, so this copy may be the only one; keep it until hived has started", .0.display()
    )]
    NoDatabase(PathBuf),
    #[error("{} was changed a moment ago", .0.display())]
    Changed(PathBuf),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl NotRepaired {
    /// Returns whether another user could do it.
    pub(super) fn lacks_rights(&self) -> bool {
        match self {
            Self::OtherUser { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            Self::OtherType(_)
            | Self::Listened(_)
            | Self::InUse(_)
            | Self::NoDatabase(_)
            | Self::Changed(_) => false,
        }
    }
}

impl Repair {
    /// Returns the name of this kind of repair.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::SetMode { .. } => "set_mode",
            Self::RemoveSocket { .. } => "remove_socket",
            Self::RemoveUnfinished { .. } => "remove_unfinished",
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::SetMode { path, .. }
            | Self::RemoveSocket { path }
            | Self::RemoveUnfinished { path, .. } => path,
        }
    }

    /// Returns what it would do, in words; `mode` is the present one.
    pub(super) fn intent(&self, mode: u32) -> String {
        match self {
            Self::SetMode { path, forbidden, required } => {
                let wanted = (mode & !forbidden) | required;
                format!("mode {wanted:04o} for {}", path.display())
            }
            Self::RemoveSocket { path } | Self::RemoveUnfinished { path, .. } => {
                format!("remove {}", path.display())
            }
        }
    }

    /// Repairs it, or with `is_dry` only finds out whether it could. What is right by now, because
    /// another program repaired it, is a success.
    pub(super) fn apply(&self, is_dry: bool) -> Result<(), NotRepaired> {
        match self {
            Self::SetMode { path, forbidden, required } => {
                let Some(target) = Target::open(path)? else { return Ok(()) };
                target.set_mode(*forbidden, *required, is_dry)
            }
            Self::RemoveSocket { path } => {
                let Some(target) = Target::open(path)? else { return Ok(()) };
                target.remove_socket(is_dry)
            }
            Self::RemoveUnfinished { path, state_dir, is_locked } => {
                let Some(target) = Target::open(path)? else { return Ok(()) };
                target.require(FileType::RegularFile)?;
                require_database(&state_dir.join("hive.db"))?;
                if !is_locked {
                    target.require_unchanged()?;
                    return target.remove(is_dry);
                }
                let _lock = lock(state_dir)?;
                target.remove(is_dry)
            }
        }
    }
}

/// A file of this user's own, in a directory in which no other user can exchange it.
#[derive(Debug)]
struct Target<'a> {
    path: &'a Path,
    name: &'a Path,
    dir: OwnedFd,
    file: OwnedFd,
    found: Stat,
}

impl<'a> Target<'a> {
    /// Opens it without reading it; `None` if it is not there.
    fn open(path: &'a Path) -> Result<Option<Self>, NotRepaired> {
        let failed = |errno: Errno| io(path, errno.into());
        let name = path.file_name().map(Path::new);
        let name = name.ok_or_else(|| NotRepaired::OtherType(path.to_path_buf()))?;
        let found = || {
            let dir = openat(CWD, directory_of(path), PATH_ONLY | OFlags::DIRECTORY, NO_MODE)?;
            let file = openat(&dir, name, PATH_ONLY | OFlags::NOFOLLOW, NO_MODE)?;
            Ok((fstat(&dir)?, fstat(&file)?, dir, file))
        };
        let (of_dir, found, dir, file) = match found() {
            Err(Errno::NOENT) => return Ok(None),
            found => found.map_err(failed)?,
        };
        let own = geteuid().as_raw();
        let other = |path: &Path, uid| NotRepaired::OtherUser { path: path.into(), uid, own };
        if found.st_uid != own {
            return Err(other(path, found.st_uid));
        }
        if of_dir.st_uid != own && of_dir.st_uid != 0 {
            return Err(other(directory_of(path), of_dir.st_uid));
        }
        if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
            return Err(NotRepaired::OtherType(path.to_path_buf()));
        }
        Ok(Some(Self { path, name, dir, file, found }))
    }

    fn require(&self, wanted: FileType) -> Result<(), NotRepaired> {
        if FileType::from_raw_mode(self.found.st_mode) == wanted {
            Ok(())
        } else {
            Err(NotRepaired::OtherType(self.path.to_path_buf()))
        }
    }

    fn require_unchanged(&self) -> Result<(), NotRepaired> {
        let since = Timestamp::now().as_second().saturating_sub(self.found.st_mtime);
        if u64::try_from(since).unwrap_or(0) < UNCHANGED_MIN.as_secs() {
            return Err(NotRepaired::Changed(self.path.to_path_buf()));
        }
        Ok(())
    }

    /// Returns the path of exactly this file, whatever its name leads to by now.
    fn own_path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    fn set_mode(&self, forbidden: u32, required: u32, is_dry: bool) -> Result<(), NotRepaired> {
        let mode = self.found.st_mode & 0o7777;
        let wanted = (mode & !forbidden) | required;
        if is_dry || wanted == mode {
            return Ok(());
        }
        // A socket cannot be opened for `fchmod`, which this is for every type.
        chmod(self.own_path(), Mode::from_raw_mode(wanted))
            .map_err(|errno| io(self.path, errno.into()))
    }

    fn remove_socket(&self, is_dry: bool) -> Result<(), NotRepaired> {
        self.require(FileType::Socket)?;
        match UnixStream::connect(self.own_path()) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => self.remove(is_dry),
            Ok(_) => Err(NotRepaired::Listened(self.path.to_path_buf())),
            Err(error) => Err(io(self.path, error)),
        }
    }

    /// Removes the name, if it still is that of this file.
    fn remove(&self, is_dry: bool) -> Result<(), NotRepaired> {
        let now = match statat(&self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            now => now.map_err(|errno| io(self.path, errno.into()))?,
        };
        if (now.st_dev, now.st_ino) != (self.found.st_dev, self.found.st_ino) {
            return Err(NotRepaired::Changed(self.path.to_path_buf()));
        }
        if is_dry {
            return Ok(());
        }
        match unlinkat(&self.dir, self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(io(self.path, errno.into())),
        }
    }
}

const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const NO_MODE: Mode = Mode::empty();

fn io(path: &Path, source: io::Error) -> NotRepaired {
    NotRepaired::Io { path: path.to_path_buf(), source }
}

/// Fails unless the mail of which a copy was being made is there.
fn require_database(path: &Path) -> Result<(), NotRepaired> {
    let mut header = Vec::new();
    let length = SQLITE_MAGIC.len() as u64;
    let read = File::open(path).and_then(|file| file.take(length).read_to_end(&mut header));
    match read {
        Ok(_) if header == SQLITE_MAGIC => Ok(()),
        _ => Err(NotRepaired::NoDatabase(path.to_path_buf())),
    }
}

/// Takes the lock of the state directory, as each program does that writes a copy there.
fn lock(state_dir: &Path) -> Result<File, NotRepaired> {
    let path = state_dir.join(LOCK);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(&path)
        .map_err(|source| io(&path, source))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(NotRepaired::InUse(state_dir.to_path_buf())),
        Err(errno) => Err(io(&path, errno.into())),
    }
}

#[cfg(test)]
mod tests;
