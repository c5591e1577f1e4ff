//! Why there is no backup.

use std::io;
use std::path::PathBuf;

use crate::error::Failure;
use crate::exit::Exit;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error("{} is there already", .path.display())]
    Exists { path: PathBuf },
    #[error("{} is no file that a backup could take the place of", .path.display())]
    NoFile { path: PathBuf },
    #[error("{} cannot be written", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("a backup is no text, and stdout is a terminal")]
    Terminal,
    #[error("with `-` the backup itself goes to stdout, and there is no room for JSON")]
    NoRoomForJson,
    #[error("the backup is incomplete: {bytes} of {total} bytes came")]
    Incomplete { bytes: u64, total: u64 },
    #[error("interrupted; no backup was made")]
    Interrupted,
}

impl BackupError {
    fn exit(&self) -> Exit {
        match self {
            Self::Exists { .. } => Exit::Conflict,
            Self::NoFile { .. } | Self::Terminal | Self::NoRoomForJson => Exit::Usage,
            Self::Unwritable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Exit::NotFound
            }
            Self::Unwritable { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Exit::Denied
            }
            Self::Unwritable { .. } | Self::Incomplete { .. } | Self::Interrupted => Exit::Failure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Exists { .. } => "choose another name, or overwrite it with --force",
            Self::NoFile { .. } => "name a file; its directory has to be there",
            Self::Unwritable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "its directory has to be there"
            }
            Self::Unwritable { .. } => return None,
            Self::Terminal => {
                "name a file, or send it to a program: `hivectl backup - | gzip > hive.db.gz`"
            }
            Self::NoRoomForJson => "leave out --json, or name a file",
            Self::Incomplete { .. } => {
                "nothing of it was kept; `hivectl status` tells whether the broker is back"
            }
            Self::Interrupted => return None,
        };
        Some(hint.to_owned())
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        Self::Explained { exit: error.exit(), hint: error.hint(), error: error.into() }
    }
}
