//! Sockets that a supervisor, such as systemd, opened and handed over for good.
//!
//! Invariant: they stay open as long as the broker runs, and their files and directories belong to
//! the supervisor: the broker never removes them and never changes a mode. The kernel keeps
//! connections that arrive between two runs of the broker.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::net::{SocketAddrUnix, SocketType, getsockname, sockopt};

use super::listen_error::ListenError;
use crate::service_manager::Inherited;

/// The listening sockets that were handed over, by path.
#[derive(Debug)]
pub(super) struct Handed(BTreeMap<PathBuf, UnixListener>);

impl Handed {
    /// Takes these sockets. A descriptor that is no listening unix socket with a path is logged and
    /// closed.
    pub(super) fn take(inherited: Vec<Inherited>) -> Self {
        let mut sockets = BTreeMap::new();
        for Inherited { name, fd } in inherited {
            match listening_at(&fd) {
                Some(path) => drop(sockets.entry(path).or_insert(UnixListener::from(fd))),
                None => tracing::warn!(
                    name,
                    "a file that was handed over is no listening unix socket with a path; it is not used"
                ),
            }
        }
        Self(sockets)
    }

    /// Returns whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Logs each socket on which the hive never listens: its clients would wait forever.
    pub(super) fn name_strangers(&self, is_known: impl Fn(&Path) -> bool) {
        for path in self.0.keys().filter(|path| !is_known(path)) {
            tracing::warn!(path = %path.display(), "a socket was handed over that is neither the operator's nor an agent's; it is not used");
        }
    }

    /// Returns whether the socket at this path was handed over.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    /// Returns a handle of the socket at this path. The original stays here: the next caller gets
    /// the same socket.
    pub(super) fn listener(&self, path: &Path) -> Option<io::Result<UnixListener>> {
        self.0.get(path).map(UnixListener::try_clone)
    }
}

/// Returns the path of a listening unix socket; `None` if it is no such socket.
pub(super) fn listening_at(fd: &OwnedFd) -> Option<PathBuf> {
    let address = SocketAddrUnix::try_from(getsockname(fd).ok()?).ok()?;
    let is_listening = sockopt::socket_acceptconn(fd).ok()?
        && sockopt::socket_type(fd).ok()? == SocketType::STREAM;
    let path = OsStr::from_bytes(address.path_bytes()?);
    is_listening.then(|| PathBuf::from(path))
}

/// Checks that the mode of a handed-over socket lets in this group at most. The mode decides who
/// the operator is, and `hived` may not correct it, so a mode that lets in more is an error.
pub(super) fn for_group_only(path: &Path, group: &str, gid: u32) -> Result<(), ListenError> {
    let found = std::fs::symlink_metadata(path)
        .map_err(|source| ListenError::Io { path: path.to_path_buf(), source })?;
    let mode = found.mode() & 0o7777;
    let others = mode & 0o002 != 0;
    let another_group = mode & 0o020 != 0 && found.gid() != gid;
    if others || another_group {
        return Err(ListenError::OpenToOthers {
            path: path.to_path_buf(),
            mode,
            gid: found.gid(),
            group: group.to_owned(),
        });
    }
    Ok(())
}
