//! The directories of a hive on this host, as far as they are known.
//!
//! Invariant: a directory is one that the broker or the configuration names, or the one that a hive
//! has by default; no other is looked at.

use std::path::{Path, PathBuf};

use hive_core::config::Config;

/// The name of the operator's socket in its directory.
const OPERATOR_SOCKET: &str = "hived.sock";

#[derive(Debug)]
pub(crate) struct Places {
    /// The directory of the database.
    pub(crate) state_dir: PathBuf,
    /// The directory of the sockets; `None` if it is not known.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// The directory of the backups that the broker makes.
    pub(crate) backup_dir: PathBuf,
    /// The directory of a hive of `hivectl up`, if this is one.
    pub(crate) base: Option<PathBuf>,
}

impl Places {
    pub(super) fn find(database: &Path, socket: &Path, config: Option<&Config>) -> Self {
        let state_dir = directory_of(database);
        let of_socket =
            socket.ends_with(OPERATOR_SOCKET).then(|| directory_of(socket).to_path_buf());
        let broker = config.map(|config| &config.broker);
        let runtime_dir = of_socket.or_else(|| broker?.runtime_dir.clone());
        let backup_dir = broker
            .and_then(|broker| broker.backup.as_ref()?.dir.clone())
            .unwrap_or_else(|| state_dir.join("backups"));
        let base = state_dir.parent().filter(|_| state_dir.ends_with("state"));
        let base = base.filter(|base| base.join("agents").is_dir() && base.join("log").is_dir());
        Self {
            runtime_dir,
            backup_dir,
            base: base.map(Path::to_path_buf),
            state_dir: state_dir.to_path_buf(),
        }
    }
}

/// Returns the directory of a file.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
