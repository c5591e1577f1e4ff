//! The programs of a hive: beside `hivectl`, else on PATH. Beside comes first, because programs of
//! one build belong together.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::supervise::UpError;

/// The programs that `up` starts, or names to those it starts.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    pub(crate) hived: PathBuf,
    pub(crate) hive: PathBuf,
    pub(crate) hive_mcp: PathBuf,
}

impl Binaries {
    pub(crate) fn find() -> Result<Self, UpError> {
        let find = |name| find(name).ok_or(UpError::NoProgram { name });
        Ok(Self { hived: find("hived")?, hive: find("hive")?, hive_mcp: find("hive-mcp")? })
    }
}

/// Returns the program of a hive with this name.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    beside.filter(|path| is_program(path)).or_else(|| on_path(name))
}

/// Returns the program of this name on PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    on_path_in(&std::env::var_os("PATH")?, name)
}

/// Returns all programs of this name on PATH, the first one first.
pub(crate) fn all_on_path(name: &str) -> Vec<PathBuf> {
    all_in(&std::env::var_os("PATH").unwrap_or_default(), name).collect()
}

/// Returns the program of this name in a PATH.
pub(crate) fn on_path_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    all_in(path, name).next()
}

fn all_in(path: &OsStr, name: &str) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(move |dir| dir.join(name))
        .filter(|path| is_program(path))
}

/// Returns a program given as a name or a path, as an absolute path.
pub(crate) fn resolve(command: &str) -> Option<PathBuf> {
    if command.contains('/') {
        let path = std::path::absolute(command).ok()?;
        is_program(&path).then_some(path)
    } else {
        on_path(command)
    }
}

/// Resolves a command as [`resolve`], on another PATH.
pub(crate) fn resolve_in(command: &str, path: &OsStr) -> Option<PathBuf> {
    if command.contains('/') { resolve(command) } else { on_path_in(path, command) }
}

/// Returns whether this is a file that can be run.
pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_can_run_are_programs() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().as_os_str();
        assert_eq!(on_path_in(path, "tool"), None);
        let tool = dir.path().join("tool");
        std::fs::write(&tool, "").expect("a file");
        assert_eq!(on_path_in(path, "tool"), None);
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        assert_eq!(on_path_in(path, "tool"), Some(tool));
    }
}
