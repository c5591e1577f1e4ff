//! The grants of `hive.toml` to an agent besides its own directories, as they are on the host now.
//!
//! Paths are walked as in [`HostPath`], so a link that an agent could have made is refused: it
//! could lead to the operator's `~/.ssh`. The check runs at each start, and the harness compares
//! the mounts with it before claude starts.
//!
//! Invariant: a granted directory contains nothing of the hive, no program, and no home.

use std::path::{Path, PathBuf};

use hive_core::config::SandboxConfig;
use rustix::fs::FileType;

use crate::supervise::files::expand;
use crate::supervise::files::host_path::{AgentsWrite, HostPath, WalkError};
use crate::supervise::setup::plan::AgentPlan;

/// Directories below /dev that are no devices of one kind, or hold terminals.
const NO_DEVICES: [&str; 5] = ["/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/hugepages"];
/// Major numbers of terminals: virtual consoles, the controlling one, and pseudo-terminals.
const TERMINALS: [std::ops::RangeInclusive<u32>; 3] = [4..=4, 5..=5, 136..=143];
/// The first minor number of serial lines, which share their major number with the consoles.
const SERIAL_LINES: u32 = 64;

/// Paths that no grant may contain, each with a description.
#[derive(Debug, Default)]
pub(super) struct Forbidden {
    /// Paths that neither `readable` nor `writable` may contain: the hive and its sockets.
    pub(super) hive: Vec<(&'static str, PathBuf)>,
    /// Paths that only `writable` may not contain: programs and the links to them, directories of
    /// PATH, homes.
    pub(super) written: Vec<(&'static str, PathBuf)>,
    /// Directories of programs, in which no `writable` may be.
    pub(super) packages: Vec<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Grants {
    pub(super) readable: Vec<HostPath>,
    pub(super) writable: Vec<HostPath>,
    pub(super) devices: Vec<HostPath>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("{key} = \"{}\" cannot be used: {why}", .path.display())]
    Walk { key: &'static str, path: PathBuf, why: WalkError },
    #[error("{key} = \"{}\" contains {what}, {}: name directories below it that do not, or move that elsewhere", .path.display(), .contained.display())]
    Contains { key: &'static str, path: PathBuf, what: &'static str, contained: PathBuf },
    #[error("{key} = \"{}\" is in {}, which belongs to a program: name a directory elsewhere", .path.display(), .package.display())]
    InPackage { key: &'static str, path: PathBuf, package: PathBuf },
    #[error("{what}, {}, is in a directory that an agent can write in: move it elsewhere", .path.display())]
    Program { what: &'static str, path: PathBuf },
    #[error("writable = \"{}\" is no directory: editors replace files, so name the directory that it is in", .path.display())]
    NoDirectory { path: PathBuf },
    #[error("devices = \"{}\" is no device file and no directory of them, or it is a terminal", .path.display())]
    NoDevice { path: PathBuf },
    #[error("readable = \"{}\" is below writable = \"{}\", so it could be written: remove one of them", .path.display(), .writable.display())]
    ReadableInWritable { path: PathBuf, writable: PathBuf },
}

impl Refused {
    /// Returns whether an agent may have caused it; the refusal of a rule follows from the
    /// configuration alone.
    pub(super) fn may_be_an_agents(&self, agents_write: &AgentsWrite) -> bool {
        match self {
            Self::Walk { why, .. } => why.may_be_an_agents(agents_write),
            Self::NoDirectory { path } => {
                path.parent().is_some_and(|parent| agents_write.contains(parent))
            }
            Self::Contains { .. }
            | Self::InPackage { .. }
            | Self::Program { .. }
            | Self::NoDevice { .. }
            | Self::ReadableInWritable { .. } => false,
        }
    }
}

#[derive(Debug)]
pub(super) struct Checks<'a> {
    pub(super) forbidden: &'a Forbidden,
    pub(super) agents_write: &'a AgentsWrite,
}

impl Checks<'_> {
    pub(super) fn grants(
        &self,
        config: &SandboxConfig,
        home: Option<&Path>,
    ) -> Result<Grants, Refused> {
        let all = |key: &'static str, paths: &[PathBuf]| -> Result<Vec<HostPath>, Refused> {
            paths.iter().map(|path| self.granted(key, &expand(path, home))).collect()
        };
        let grants = Grants {
            readable: all("readable", &config.readable)?,
            writable: all("writable", &config.writable)?,
            devices: all("devices", &config.devices)?,
        };
        for HostPath { path, .. } in &grants.readable {
            if let Some(writable) =
                grants.writable.iter().find(|writable| path.starts_with(&writable.path))
            {
                return Err(Refused::ReadableInWritable {
                    path: path.clone(),
                    writable: writable.path.clone(),
                });
            }
        }
        Ok(grants)
    }

    pub(super) fn granted(&self, key: &'static str, path: &Path) -> Result<HostPath, Refused> {
        let real = self.find(key, path)?;
        let Forbidden { hive, written, .. } = self.forbidden;
        let written: &[_] = if key == "writable" { written } else { &[] };
        not_contained(key, path, &real.path, hive.iter().chain(written))?;
        match key {
            "writable" if real.kind != FileType::Directory => {
                Err(Refused::NoDirectory { path: real.path })
            }
            "writable" => self.in_no_package(key, path, real),
            "devices" if !is_device(&real) => Err(Refused::NoDevice { path: path.to_path_buf() }),
            _ => Ok(real),
        }
    }

    /// Checks a directory that is the agent's own: it can write there, and its own directories may
    /// be in each other.
    pub(super) fn own(
        &self,
        key: &'static str,
        path: &Path,
        agent: &AgentPlan,
    ) -> Result<(), Refused> {
        let real = self.find(key, path)?;
        let is_own = |path: &PathBuf| agent.own().contains(&path.as_path());
        let all = self.forbidden.hive.iter().chain(&self.forbidden.written);
        not_contained(key, path, &real.path, all.filter(|(_, inner)| !is_own(inner)))?;
        self.in_no_package(key, path, real).map(drop)
    }

    /// Finds a path; a link that an agent could have made is refused.
    pub(super) fn find(&self, key: &'static str, path: &Path) -> Result<HostPath, Refused> {
        HostPath::find(path, self.agents_write).map_err(|why| Refused::Walk {
            key,
            path: path.to_path_buf(),
            why,
        })
    }

    fn in_no_package(
        &self,
        key: &'static str,
        path: &Path,
        real: HostPath,
    ) -> Result<HostPath, Refused> {
        match self.forbidden.packages.iter().find(|package| real.path.starts_with(package)) {
            None => Ok(real),
            Some(package) => {
                Err(Refused::InPackage { key, path: path.to_path_buf(), package: package.clone() })
            }
        }
    }
}

impl Grants {
    pub(super) fn all(&self) -> impl Iterator<Item = &HostPath> {
        self.readable.iter().chain(&self.writable).chain(&self.devices)
    }
}

fn is_device(found: &HostPath) -> bool {
    let (major, minor) = found.device_number();
    let is_terminal = TERMINALS.iter().any(|range| range.contains(&major))
        && !(major == 4 && minor >= SERIAL_LINES);
    let is_below_dev = found.path.starts_with("/dev")
        && !NO_DEVICES.iter().any(|path| found.path == Path::new(path));
    let is_one = matches!(
        found.kind,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Directory
    );
    is_one && is_below_dev && !(found.kind == FileType::CharacterDevice && is_terminal)
}

fn not_contained<'a>(
    key: &'static str,
    path: &Path,
    real: &Path,
    mut forbidden: impl Iterator<Item = &'a (&'static str, PathBuf)>,
) -> Result<(), Refused> {
    match forbidden.find(|(_, inner)| inner.starts_with(real)) {
        None => Ok(()),
        Some((what, contained)) => Err(Refused::Contains {
            key,
            path: path.to_path_buf(),
            what,
            contained: contained.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn config(readable: &[&str], writable: &[&str], root: &Path) -> SandboxConfig {
        let below = |paths: &[&str]| paths.iter().map(|path| root.join(path)).collect();
        SandboxConfig {
            readable: below(readable),
            writable: below(writable),
            ..SandboxConfig::default()
        }
    }

    #[test]
    fn a_link_that_an_agent_could_have_made_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        for name in ["project/in", "secret", "lib"] {
            std::fs::create_dir_all(root.join(name)).expect("a directory");
        }
        symlink(root.join("lib"), root.join("link")).expect("a link");
        symlink("../secret", root.join("project/evil")).expect("a link");
        let mut agents_write = AgentsWrite::default();
        agents_write.add(&root.join("project"));
        let checks = Checks { forbidden: &Forbidden::default(), agents_write: &agents_write };
        let check = |readable: &[&str], writable: &[&str]| {
            checks.grants(&config(readable, writable, &root), None)
        };
        let grants = check(&["link"], &["project/in"]).expect("granted");
        assert_eq!(
            (&grants.readable[0].path, &grants.writable[0].path),
            (&root.join("lib"), &root.join("project/in"))
        );
        for (readable, writable) in [
            (&["project/evil"][..], &[][..]),
            (&[], &["project/evil"]),
            (&["project/../project/evil"], &[]),
        ] {
            let refused = check(readable, writable).expect_err("refused");
            let is_link = matches!(&refused, Refused::Walk { why: WalkError::Link(link), .. } if *link == root.join("project/evil"));
            assert!(is_link, "{refused}");
        }
    }

    #[test]
    fn grants_contain_nothing_of_the_hive_and_no_program() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        for name in ["project/.hive", "project/src", "bin", "lib/tool/vendor"] {
            std::fs::create_dir_all(root.join(name)).expect("a directory");
        }
        std::fs::write(root.join("bin/tool"), "").expect("a file");
        let forbidden = Forbidden {
            hive: vec![("the hive", root.join("project/.hive"))],
            written: vec![("a program", root.join("bin/tool"))],
            packages: vec![root.join("lib/tool")],
        };
        let checks = Checks { forbidden: &forbidden, agents_write: &AgentsWrite::default() };
        let check = |readable: &[&str], writable: &[&str]| {
            checks.grants(&config(readable, writable, &root), None)
        };
        for refused in [check(&["project"], &[]), check(&[], &["project"])] {
            assert!(matches!(refused, Err(Refused::Contains { what: "the hive", .. })));
        }
        assert!(matches!(check(&[], &["bin"]), Err(Refused::Contains { what: "a program", .. })));
        let file = check(&[], &["bin/tool"]);
        assert!(matches!(file, Err(Refused::Contains { .. } | Refused::NoDirectory { .. })));
        assert!(matches!(check(&[], &["lib/tool/vendor"]), Err(Refused::InPackage { .. })));
        assert!(check(&["bin"], &["project/src"]).is_ok());
        assert!(matches!(check(&["none"], &[]), Err(Refused::Walk { .. })));
        let both = check(&["project/src"], &["project/src"]);
        assert!(matches!(both, Err(Refused::ReadableInWritable { .. })));
    }

    #[test]
    fn terminals_and_other_files_are_no_devices() {
        let checks =
            Checks { forbidden: &Forbidden::default(), agents_write: &AgentsWrite::default() };
        let check = |path: &str| {
            let devices = vec![path.into()];
            checks.grants(&SandboxConfig { devices, ..SandboxConfig::default() }, None)
        };
        assert!(check("/dev/zero").is_ok());
        for path in [
            "/dev",
            "/dev/pts",
            "/dev/tty",
            "/dev/ptmx",
            "/dev/shm",
            "/dev/fd",
            "/dev/../etc",
            "/dev/../etc/passwd",
        ] {
            assert!(
                matches!(check(path), Err(Refused::NoDevice { .. } | Refused::Walk { .. })),
                "{path}"
            );
        }
    }
}
