//! Why a socket cannot be opened. Invariant: each reason says what to do, or has a cause that does.

use std::io;
use std::path::PathBuf;

use hive_core::limits::SOCKET_PATH_BYTES_MAX;

use crate::files::Shortage;

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The path is too long for an address in Linux.
    #[error("the socket path {} has {} bytes, more than the {SOCKET_PATH_BYTES_MAX} that Linux allows; choose a shorter runtime_dir", .0.display(), .0.as_os_str().len())]
    PathTooLong(PathBuf),
    /// A process answers on the socket.
    #[error("another process answers on {}; stop it first, or choose another runtime_dir", .0.display())]
    InUse(PathBuf),
    /// The path exists and is not a socket.
    #[error("{} is there and is no socket; move it away", .0.display())]
    NotASocket(PathBuf),
    /// The path of a socket's directory exists and is not a directory; a link is not one.
    #[error("{} is there and is no directory of its own; move it away", .0.display())]
    NotADirectory(PathBuf),
    /// The host has no such group.
    #[error("there is no group `{0}` on this host (socket_group, or metrics.group)")]
    NoSuchGroup(String),
    /// The process may not give a file to the group.
    #[error(
        "the socket {} cannot be given to the group `{group}` (broker.metrics.group, or else socket_group); name a path in a directory of \
         that group with mode 2750: /run/hive/metrics of the packaged units is that of hive-metrics", .path.display()
    )]
    NotInGroup {
        /// The socket.
        path: PathBuf,
        /// The group.
        group: String,
        /// The error of the host.
        #[source]
        source: io::Error,
    },
    /// The mode of a handed-over socket lets in users who are not in the group.
    #[error(
        "the socket {} was handed over with mode {mode:04o} and group {gid}, which lets in more than the group `{group}` (socket_group); \
         set SocketMode=0660 and SocketGroup={group} where it is opened", .path.display()
    )]
    OpenToOthers {
        /// The socket.
        path: PathBuf,
        /// The file mode.
        mode: u32,
        /// The owning group, if there is one.
        gid: u32,
        /// The group that may use it.
        group: String,
    },
    /// Agents have all files open that they may have.
    #[error("{0}")]
    NoFiles(Shortage),
    /// The host returned an error.
    #[error("the socket {} could not be made", .path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// The error of the host.
        #[source]
        source: io::Error,
    },
}
