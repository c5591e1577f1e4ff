//! A hive of a user without rights, even if root runs the tests: root reaches no isolation.
//!
//! As root, the hive's directory belongs to a user that owns nothing else, and `hivectl up` runs as
//! that user. Otherwise it is the tests' own user. Invariant: programs belong to the tests' user
//! and can be read by everyone, so that the hive's user cannot replace them.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::{Process, Rig, host};
use crate::binary;

/// The user `games` of Debian: programs of a session want a name.
const USER: u32 = 5;
/// The group of that user.
const GROUP: u32 = 60;
/// Programs of a hive, with their packages.
const PROGRAMS: [(&str, &str); 7] = [
    ("hive-broker", "hived"),
    ("hive-harness", "hive"),
    ("hive-mcp-bridge", "hive-mcp"),
    ("hivectl", "hivectl"),
    ("hive-scripted", "scripted-claude"),
    ("hive-tests", "sandbox-probe"),
    ("hive-tests", "env-mcp"),
];

impl Rig {
    /// A hive of a user without rights. Its programs are in `bin`, the operator's home is
    /// `operator`.
    pub fn unprivileged(config: &str) -> Self {
        let rig = Self::new(config);
        set_mode(rig.dir(), 0o755);
        std::fs::create_dir(rig.path("bin")).expect("a directory");
        for (package, name) in PROGRAMS {
            install(&binary::find(package, name), &rig.path("bin").join(name));
        }
        std::fs::create_dir(rig.path("operator")).expect("a directory");
        rig.give_away(rig.dir());
        rig.give_away(&rig.path("operator"));
        rig.give_away(&rig.path("hive.toml"));
        let bin = rig.path("bin");
        rig.with_programs(&bin)
    }

    pub fn user(&self) -> (u32, u32) {
        if host::is_root() {
            return (USER, GROUP);
        }
        (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
    }

    /// Makes a file or a directory the user's.
    pub fn give_away(&self, path: &Path) {
        if host::is_root() {
            chown(path, Some(USER), Some(GROUP)).expect("root may");
        }
    }

    pub fn user_dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        for dir in path
            .ancestors()
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .filter(|dir| dir.starts_with(self.dir()))
        {
            if !dir.exists() {
                std::fs::create_dir(dir).expect("a directory");
                self.give_away(dir);
            }
        }
        path
    }

    /// Writes a file of the user's.
    pub fn user_file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        self.user_dir(Path::new(name).parent().and_then(Path::to_str).unwrap_or_default());
        std::fs::write(&path, text).expect("a file");
        set_mode(&path, mode);
        self.give_away(&path);
        path
    }

    /// Copies a program to a place that everyone can read.
    pub fn user_program(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.path(name);
        install(from, &to);
        self.give_away(&to);
        to
    }

    /// A command of the user's.
    pub fn user_command(&self, program: &Path) -> Command {
        let mut command = Process::command(program);
        command.env("HOME", self.path("operator")).current_dir(self.dir());
        self.for_user(&mut command);
        command
    }

    /// Makes a command the user's.
    pub fn for_user(&self, command: &mut Command) {
        if host::is_root() {
            command.uid(USER).gid(GROUP);
        }
    }
}

fn install(from: &Path, to: &Path) {
    // A name is enough on the same disk, and elsewhere a copy.
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).expect("a copy of a program");
    }
    set_mode(to, 0o755);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}
