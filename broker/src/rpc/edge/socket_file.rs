//! The files of sockets: binding them, setting their modes, removing them.
//!
//! Invariant: only a socket on which no process answers is replaced; any other file of that name
//! stays, and is an error.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::Path;
use std::sync::Once;

use hive_core::limits::SOCKET_PATH_BYTES_MAX;

use super::acl;
use super::conn::Peers;
use super::listen_error::ListenError;

/// Binds a path. A socket on which no process answers is replaced; any other file stays, and is an
/// error.
pub(crate) fn bind(path: &Path) -> Result<StdListener, ListenError> {
    let fail = |source| ListenError::Io { path: path.to_path_buf(), source };
    if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return Err(ListenError::PathTooLong(path.to_path_buf()));
    }
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(fail(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ListenError::NotASocket(path.to_path_buf()));
        }
        Ok(_) => match StdStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(fail)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(_) => return Err(ListenError::InUse(path.to_path_buf())),
            Err(error) => return Err(fail(error)),
        },
    }
    let listener = StdListener::bind(path).map_err(fail)?;
    hive_fault::point("broker.socket.bound");
    Ok(listener)
}

/// Makes a directory with this mode, whatever the umask; an existing one keeps its own.
pub(crate) fn make_dir(path: &Path, mode: u32) -> Result<(), ListenError> {
    if path.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(mode).create(path);
    made.map_err(|source| ListenError::Io { path: path.to_path_buf(), source })?;
    set_mode(path, mode)
}

/// Sets the mode of a file.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), ListenError> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|source| ListenError::Io { path: path.to_path_buf(), source })
}

/// Lets peers of an agent's socket connect to it, by its mode or its access control list; without
/// peers, only its owner. What the file cannot say is checked when a connection is accepted.
pub(super) fn let_in(path: &Path, peers: Option<&Peers>) -> Result<(), ListenError> {
    static NO_LISTS: Once = Once::new();
    let Some(Peers { uids, .. }) = peers else { return set_mode(path, 0o600) };
    // Their users are not known before they come: a unit's may be made when it starts.
    if uids.is_empty() {
        return set_mode(path, 0o666);
    }
    acl::let_in(path, uids).or_else(|error| {
        NO_LISTS.call_once(|| {
            let path = path.display();
            tracing::warn!(%error, %path, "sockets get no access control lists here: every user of the host can connect to those of agents, and is refused then");
        });
        set_mode(path, 0o666)
    })
}

/// Looks up the number of a group.
pub(crate) fn group_id(group: &str) -> Option<u32> {
    let found = nix::unistd::Group::from_name(group).ok()??;
    Some(found.gid.as_raw())
}

/// Removes the file of a socket. A missing file is no error.
pub(crate) fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "a socket file could not be removed");
    }
}
