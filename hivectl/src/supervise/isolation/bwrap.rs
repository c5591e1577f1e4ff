//! The bubblewrap that sandboxes are made with.
//!
//! Invariant: a program or a directory that this user could replace is never used: an agent of an
//! earlier, weaker start may have replaced it.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::supervise::setup::binaries::{all_on_path, is_program};

/// Paths to try after PATH, for a PATH that begins with directories of the user.
const USUAL_PLACES: [&str; 3] =
    ["/usr/bin/bwrap", "/run/current-system/sw/bin/bwrap", "/usr/local/bin/bwrap"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bubblewrap {
    /// Its path, without links.
    pub(crate) program: PathBuf,
    /// The options that it lists in its help.
    options: BTreeSet<String>,
}

impl Bubblewrap {
    /// Finds one, or returns why there is none, as a sentence without a full stop.
    pub(crate) fn find() -> Result<Self, String> {
        let user = User::of_this_process();
        let mut replaceable = None;
        let usual = USUAL_PLACES.map(PathBuf::from).into_iter().filter(|path| is_program(path));
        for found in all_on_path("bwrap").into_iter().chain(usual) {
            let Ok(program) = found.canonicalize() else { continue };
            match user.replaceable_part(&program) {
                None => return Self::ask(program),
                Some(part) => {
                    replaceable.get_or_insert(format!(
                        "{} is not used: this user could replace {}",
                        found.display(),
                        part.display()
                    ));
                }
            }
        }
        Err(replaceable.unwrap_or_else(|| {
            "bubblewrap (bwrap) is not installed; install the package `bubblewrap`".to_owned()
        }))
    }

    fn ask(program: PathBuf) -> Result<Self, String> {
        let asked = Command::new(&program).arg("--help").stdin(Stdio::null()).output();
        let output =
            asked.map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        let help = [output.stdout, output.stderr].concat();
        Ok(Self { program, options: options(&String::from_utf8_lossy(&help)) })
    }

    /// Returns one with these options, which is never started.
    #[cfg(test)]
    pub(crate) fn with(options: &[&str]) -> Self {
        Self {
            program: "/usr/bin/bwrap".into(),
            options: options.iter().map(ToString::to_string).collect(),
        }
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.options.contains(option)
    }
}

fn options(help: &str) -> BTreeSet<String> {
    help.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.starts_with("--"))
        .map(str::to_owned)
        .collect()
}

#[derive(Debug)]
struct User {
    uid: u32,
    groups: Vec<u32>,
}

impl User {
    fn of_this_process() -> Self {
        let groups = rustix::process::getgroups().unwrap_or_default().into_iter();
        let groups =
            groups.chain([rustix::process::getegid()]).map(rustix::process::Gid::as_raw).collect();
        Self { uid: rustix::process::geteuid().as_raw(), groups }
    }

    /// Returns the first part of a path that this user could replace: the file, or a directory on
    /// the way to it.
    fn replaceable_part(&self, program: &Path) -> Option<PathBuf> {
        let is_replaceable = |path: &&Path| {
            let Ok(found) = path.symlink_metadata() else { return true };
            let is_own = self.uid != 0 && found.uid() == self.uid;
            let has_bit = |bit: u32| found.mode() & bit != 0;
            let is_open = has_bit(0o002)
                || (has_bit(0o020) && self.uid != 0 && self.groups.contains(&found.gid()));
            // Others than its owner can replace entries of a directory unless it is sticky.
            is_own || (is_open && !has_bit(0o1000))
        };
        program.ancestors().find(is_replaceable).map(Path::to_path_buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_this_user_could_replace_is_found_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = dir.path().join("bwrap");
        std::fs::write(&program, "").expect("a file");
        let owner = program.metadata().expect("there").uid();
        let someone_else = owner + 1;
        let group = program.metadata().expect("there").gid();
        let part = |uid: u32, groups: &[u32]| {
            User { uid, groups: groups.to_vec() }.replaceable_part(&program)
        };
        if owner != 0 {
            assert_eq!(part(owner, &[]), Some(program.clone()));
        }
        // Of the directories of tests only /tmp is for everyone, and it is sticky.
        assert_eq!(part(someone_else, &[]), None);
        let set = |mode: u32| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(dir.path(), mode).expect("a mode");
        };
        set(0o777);
        assert_eq!(part(someone_else, &[]), Some(dir.path().to_path_buf()));
        set(0o775);
        assert_eq!(part(someone_else, &[group + 1]), None);
        assert_eq!(part(someone_else, &[group]), Some(dir.path().to_path_buf()));
    }

    #[test]
    fn options_are_read_from_the_help() {
        let help = "usage: bwrap [OPTIONS...]\n\n    --help      Print this help\n    --size BYTES  Set size\n  text --not\n";
        assert_eq!(options(help), ["--help", "--size"].map(str::to_owned).into());
    }
}
