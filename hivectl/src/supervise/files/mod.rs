//! Files and directories of the host, in which agents may have put links and races.
//!
//! - `host_path`: what a path names, over no link that an agent could have made
//! - `delete`: deleting a directory that agents have made
//! - `dir_lock`: one launcher at a time in a directory
//!
//! Invariant: no link of an agent's is followed.

pub(super) mod delete;
pub(super) mod dir_lock;
pub(super) mod host_path;

use std::io;
use std::path::{Path, PathBuf};

/// Makes the absence of a file that is to be deleted a success.
pub(super) fn ignore_absent(deleted: io::Result<()>) -> io::Result<()> {
    match deleted {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns a path for a person: relative to the current directory, if it is below.
pub(super) fn display_path(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    match path.strip_prefix(&here) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// Expands `~/x` to a path below the operator's home.
pub(super) fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}
