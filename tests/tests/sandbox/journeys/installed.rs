//! Claude Code as users install it: one file, or a package of npm.
//!
//! Other users cannot read the CLI of the tests, so its files get second names in the
//! operator's home. Invariant: its files stay the tests' own; a hard link that was given away would
//! take the original with it.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use hive_tests::claude;
use hive_tests::rig::Rig;

use super::hive::SYSTEM_PATH;

/// The directory in which npm installs packages of the user, with a prefix in the home.
const NPM_PREFIX: &str = "operator/.npm-global";
/// The prefix of a node that nvm installed.
const NVM_PREFIX: &str = "operator/.nvm/versions/node/v1";
/// The package, below the directory of npm's programs.
const FROM_BIN: &str = "../lib/node_modules/@anthropic-ai/claude-code";

/// A way to install it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Installed {
    /// The layout of claude's own installer: `~/.local/bin/claude` is a link to the file of a
    /// version.
    Native,
    /// The layout of `npm install -g` with a prefix in the home: a link to the program in the
    /// package.
    Npm,
    /// With node by nvm, and a link to the package's script for node, which starts the program:
    /// what packages of earlier versions had.
    Script,
}

impl Installed {
    /// Installs it; the directory of PATH that has `claude`.
    pub(crate) fn put(self, rig: &Rig) -> PathBuf {
        let program = claude::find().unwrap_or_else(|missing| panic!("{missing}"));
        match self {
            Self::Native => {
                let version = format!("operator/.local/share/claude/versions/{}", claude::VERSION);
                same(rig, &program, &version);
                link(
                    rig,
                    &format!("../share/claude/versions/{}", claude::VERSION),
                    "operator/.local/bin",
                )
            }
            Self::Npm => {
                let bin = package(rig, &program, NPM_PREFIX);
                same(rig, &program, &format!("{bin}/{FROM_BIN}/bin/claude.exe"));
                link(rig, &format!("{FROM_BIN}/bin/claude.exe"), &bin)
            }
            Self::Script => {
                let bin = package(rig, &program, NVM_PREFIX);
                let node = std::env::split_paths(SYSTEM_PATH)
                    .map(|dir| dir.join("node"))
                    .find(|path| path.is_file());
                same(
                    rig,
                    &node.expect("node, which npm needs, too").canonicalize().expect("it is there"),
                    &format!("{bin}/node"),
                );
                // npm makes the programs of a package executable.
                let script = rig.path(&bin).join(FROM_BIN).join("cli-wrapper.cjs");
                std::fs::copy(program.with_file_name("../claude-code/cli-wrapper.cjs"), &script)
                    .expect("the package's script");
                std::fs::set_permissions(&script, Permissions::from_mode(0o755))
                    .expect("it is ours");
                link(rig, &format!("{FROM_BIN}/cli-wrapper.cjs"), &bin)
            }
        }
    }
}

impl Installed {
    /// Installs it again, as an update does: what was there is renamed, replaced and deleted.
    pub(crate) fn update(self, rig: &Rig) {
        let old = rig.path(match self {
            Self::Native => "operator/.local/share/claude".to_owned(),
            Self::Npm => format!("{NPM_PREFIX}/lib/node_modules/@anthropic-ai/claude-code"),
            Self::Script => format!("{NVM_PREFIX}/lib/node_modules/@anthropic-ai/claude-code"),
        });
        let aside = old.with_file_name(".claude-code-old");
        std::fs::rename(&old, &aside).expect("renamed");
        self.put(rig);
        std::fs::remove_dir_all(&aside).expect("deleted");
    }
}

/// The package and, inside it, the package of this platform, which has the program. Returns the
/// directory for its programs.
fn package(rig: &Rig, program: &Path, prefix: &str) -> String {
    let platform = program.parent().expect("it is in a package");
    let name = platform.file_name().and_then(|name| name.to_str()).expect("a package has a name");
    let (bin, package) =
        (format!("{prefix}/bin"), format!("{prefix}/lib/node_modules/@anthropic-ai/claude-code"));
    same(
        rig,
        &platform.with_file_name("claude-code/package.json"),
        &format!("{package}/package.json"),
    );
    for file in ["package.json", "claude"] {
        same(
            rig,
            &platform.join(file),
            &format!("{package}/node_modules/@anthropic-ai/{name}/{file}"),
        );
    }
    rig.user_dir(&bin);
    bin
}

pub(super) fn same(rig: &Rig, from: &Path, to: &str) {
    rig.user_dir(Path::new(to).parent().and_then(Path::to_str).expect("below the rig"));
    let to = rig.path(to);
    drop(std::fs::remove_file(&to));
    if std::fs::hard_link(from, &to).is_err() {
        std::fs::copy(from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

fn link(rig: &Rig, target: &str, bin: &str) -> PathBuf {
    let bin = rig.user_dir(bin);
    drop(std::fs::remove_file(bin.join("claude")));
    symlink(target, bin.join("claude")).expect("a link");
    bin
}
