//! The claude program, as it is started: by itself, or inside the fence.
//!
//! Invariant: a claude of an isolated agent is never started outside the fence.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How claude is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// claude, as a person knows it.
    pub name: PathBuf,
    /// The program that is started.
    pub path: PathBuf,
    /// Its arguments in front of claude's own.
    pub first: Vec<OsString>,
}

impl Program {
    /// Starts claude by itself.
    #[must_use]
    pub fn plain(claude: PathBuf) -> Self {
        Self { name: claude.clone(), path: claude, first: Vec::new() }
    }

    /// Starts claude by another program, which becomes it.
    #[must_use]
    pub fn through(hive: PathBuf, mut first: Vec<OsString>, claude: &Path) -> Self {
        first.push(claude.into());
        Self { name: claude.to_path_buf(), path: hive, first }
    }

    /// Returns the command, to which claude's arguments are added.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.first);
        command
    }
}
