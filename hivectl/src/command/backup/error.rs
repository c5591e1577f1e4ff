//! Errors of `hivectl backup`.

use std::io;
use std::path::PathBuf;

use crate::error::Failure;
use crate::exit::{self, Exit};
use crate::new_file::FileError;

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

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        use BackupError as E;
        let (exit, hint) = match &error {
            E::Exists { .. } => {
                (Exit::Conflict, Some("choose another name, or overwrite it with --force"))
            }
            E::NoFile { .. } => (Exit::Usage, Some("name a file; its directory has to be there")),
            E::Unwritable { source, .. } => {
                let exit = exit::of_io(source);
                (exit, (exit == Exit::NotFound).then_some("its directory has to be there"))
            }
            E::Terminal => (
                Exit::Usage,
                Some(
                    "name a file, or send it to a program: `hivectl backup - | gzip > hive.db.gz`",
                ),
            ),
            E::NoRoomForJson => (Exit::Usage, Some("leave out --json, or name a file")),
            E::Incomplete { .. } => (
                Exit::Failure,
                Some("nothing of it was kept; `hivectl status` shows whether the broker is back"),
            ),
            E::Interrupted => (Exit::Failure, None),
        };
        Self::Explained { exit, hint: hint.map(str::to_owned), error: error.into() }
    }
}

impl From<FileError> for BackupError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Exists(path) => Self::Exists { path },
            FileError::NoFile(path) => Self::NoFile { path },
            FileError::Unwritable { path, source } => Self::Unwritable { path, source },
        }
    }
}
