//! The command that starts claude, with or without the fence.
//!
//! Invariant: a claude of an isolated agent is never started outside the fence.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command that starts claude.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// claude's path, for people.
    pub name: PathBuf,
    /// The started program.
    pub path: PathBuf,
    /// Its arguments before claude's own.
    pub first: Vec<OsString>,
}

impl Program {
    /// Returns the command that starts claude directly.
    pub fn plain(claude: PathBuf) -> Self {
        Self { name: claude.clone(), path: claude, first: Vec::new() }
    }

    /// Returns the command that starts claude by another program, which becomes it.
    pub fn through(hive: PathBuf, mut first: Vec<OsString>, claude: &Path) -> Self {
        first.push(claude.into());
        Self { name: claude.to_path_buf(), path: hive, first }
    }

    /// Returns the command, to which claude's arguments are added.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.first);
        command
    }
}
