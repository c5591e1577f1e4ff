//! The files that a program needs in a sandbox: itself, and for a script its package and
//! interpreter.
//!
//! A file that an agent can write decides nothing: a program in an agent's directory is shown as it
//! is, and its first line is not followed.
//!
//! Invariant: a package directory contains no home and nothing of the hive; an interpreter is a
//! program.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::supervise::files::host_path::{AgentsWrite, HostPath};
use crate::supervise::setup::binaries::on_path_in;

/// Longest first line of a script that the kernel reads.
const FIRST_LINE_BYTES_MAX: u64 = 256;
/// The file that marks a virtual environment of Python.
const ENVIRONMENT_MARK: &str = "pyvenv.cfg";
/// Files that mark the directory of a package.
const PACKAGE_MARKS: [&str; 2] = ["package.json", ENVIRONMENT_MARK];
/// Longest chain of interpreters that are scripts.
const INTERPRETERS_MAX: usize = 4;

/// Something that is shown read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// A file or a directory of the host.
    File { source: HostPath, dest: PathBuf },
    /// A link, as a program may have one on PATH.
    Link {
        /// The file that it leads to.
        target: PathBuf,
        dest: PathBuf,
    },
}

impl Shown {
    /// Shows a path under its own name.
    pub(super) fn at_its_place(source: HostPath) -> Self {
        Self::File { dest: source.path.clone(), source }
    }
}

/// The search path of programs, and paths that their packages must not contain.
#[derive(Debug)]
pub(super) struct Lookup<'a> {
    pub(super) path: &'a OsStr,
    /// Homes, and directories of the hive.
    pub(super) apart: &'a [PathBuf],
    pub(super) agents_write: &'a AgentsWrite,
}

impl Lookup<'_> {
    pub(super) fn needs(&self, program: &Path) -> Vec<Shown> {
        match HostPath::find(program, self.agents_write) {
            Ok(real) => self.needs_as_called(&real.path),
            Err(_) => Vec::new(),
        }
    }

    /// Returns the files that a program needs to run by this path, which may lead over links.
    pub(super) fn needs_as_called(&self, program: &Path) -> Vec<Shown> {
        let mut needs = Vec::new();
        let mut next = Some(program.to_path_buf());
        for _ in 0..INTERPRETERS_MAX {
            let Some(called) = next.take() else { break };
            let Ok(real) = HostPath::find(&called, self.agents_write) else { break };
            if !real.is_program() {
                break;
            }
            let environment = self.environment(&called);
            if real.path != called && environment.is_none() {
                needs.push(Shown::Link { target: real.path.clone(), dest: called });
            }
            needs.extend(environment);
            if self.agents_write.contains(&real.path) {
                needs.push(Shown::at_its_place(real));
                break;
            }
            let first_line = self.first_line(&real.path);
            let package = first_line.as_ref().and_then(|_| self.package(&real.path));
            needs.push(Shown::at_its_place(package.unwrap_or(real)));
            next = match first_line.as_deref().and_then(interpreter) {
                Some(Interpreter::Path(path)) => Some(path),
                // `env` searches PATH, so the program must be on it.
                Some(Interpreter::OnPath(name)) => on_path_in(self.path, &name),
                None => None,
            };
        }
        needs
    }

    /// Returns the virtual environment of a Python that is called by this path. Python finds it by
    /// the path of the call, not by the real one.
    fn environment(&self, called: &Path) -> Option<Shown> {
        let dir = called.parent()?.parent()?;
        let found = HostPath::find(dir, self.agents_write).ok()?;
        let may_be_shown = !self.agents_write.contains(&found.path) && self.is_apart(&found.path);
        (may_be_shown && dir.join(ENVIRONMENT_MARK).is_file())
            .then(|| Shown::File { source: found, dest: dir.to_path_buf() })
    }

    fn is_apart(&self, dir: &Path) -> bool {
        !self.apart.iter().any(|path| path.starts_with(dir))
    }

    /// Returns the line after `#!`; `None` if this is no script.
    fn first_line(&self, program: &Path) -> Option<Vec<u8>> {
        let start = HostPath::read_start(program, self.agents_write, FIRST_LINE_BYTES_MAX).ok()?;
        let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        Some(line.to_vec())
    }

    /// Returns the nearest directory of a package above a script.
    fn package(&self, script: &Path) -> Option<HostPath> {
        let above = script.ancestors().skip(1).take_while(|dir| self.is_apart(dir));
        let is_package = |dir: &&Path| PACKAGE_MARKS.iter().any(|mark| dir.join(mark).is_file());
        above
            .into_iter()
            .find(is_package)
            .and_then(|dir| HostPath::find(dir, self.agents_write).ok())
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Interpreter {
    Path(PathBuf),
    OnPath(String),
}

fn interpreter(line: &[u8]) -> Option<Interpreter> {
    let mut words =
        line.split(|byte| matches!(byte, b' ' | b'\t' | b'\r')).filter(|word| !word.is_empty());
    let first = PathBuf::from(OsStr::from_bytes(words.next()?));
    if first.file_name() != Some(OsStr::new("env")) {
        return Some(Interpreter::Path(first));
    }
    // `env -S node --flag`, `env NAME=value node`.
    let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
    Some(Interpreter::OnPath(String::from_utf8_lossy(name).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn put(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().expect("below")).expect("a directory");
        std::fs::write(path, text).expect("a file");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    /// Returns the paths that are shown, links with their targets.
    fn mounts(shown: Vec<Shown>) -> Vec<(PathBuf, Option<PathBuf>)> {
        let dest = |shown| match shown {
            Shown::File { source, dest } => {
                assert_eq!(source.path, dest);
                (dest, None)
            }
            Shown::Link { target, dest } => (dest, Some(target)),
        };
        shown.into_iter().map(dest).collect()
    }

    fn lookup<'a>(
        path: &'a Path,
        apart: &'a [PathBuf],
        agents_write: &'a AgentsWrite,
    ) -> Lookup<'a> {
        Lookup { path: path.as_os_str(), apart, agents_write }
    }

    fn file(path: PathBuf) -> (PathBuf, Option<PathBuf>) {
        (path, None)
    }

    #[test]
    fn a_script_brings_its_package_and_its_interpreter() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        put(&root.join("lib/tool/package.json"), "{}");
        put(&root.join("lib/tool/bin/cli.js"), "#!/usr/bin/env node\n");
        put(&root.join("versions/9/node"), "\x7fELF");
        std::fs::create_dir(root.join("bin")).expect("a directory");
        symlink("../lib/tool/bin/cli.js", root.join("bin/tool")).expect("a link");
        symlink("../versions/9/node", root.join("bin/node")).expect("a link");
        let (path, apart, no_agents) =
            (root.join("bin"), [root.join("home")], AgentsWrite::default());
        let lookup = lookup(&path, &apart, &no_agents);
        let node = root.join("versions/9/node");
        let by_real_path =
            [file(root.join("lib/tool")), (root.join("bin/node"), Some(node.clone())), file(node)];
        assert_eq!(mounts(lookup.needs(&root.join("bin/tool"))), by_real_path);
        let as_called = mounts(lookup.needs_as_called(&root.join("bin/tool")));
        assert_eq!(as_called[0], (root.join("bin/tool"), Some(root.join("lib/tool/bin/cli.js"))));
        assert_eq!(as_called[1..], by_real_path);
    }

    #[test]
    fn the_python_of_a_virtual_environment_brings_the_environment() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        put(&root.join("python3.11"), "\x7fELF");
        put(&root.join("venv/pyvenv.cfg"), "");
        std::fs::create_dir(root.join("venv/bin")).expect("a directory");
        symlink("../../python3.11", root.join("venv/bin/python3")).expect("a link");
        let no_agents = AgentsWrite::default();
        let lookup = lookup(Path::new(""), &[], &no_agents);
        let wanted = [file(root.join("venv")), file(root.join("python3.11"))];
        assert_eq!(mounts(lookup.needs_as_called(&root.join("venv/bin/python3"))), wanted);
        // A script elsewhere that names it.
        put(&root.join("tool"), &format!("#!{}\n", root.join("venv/bin/python3").display()));
        let needs = mounts(lookup.needs_as_called(&root.join("tool")));
        assert_eq!((&needs[0], &needs[1..]), (&file(root.join("tool")), &wanted[..]));
    }

    #[test]
    fn a_home_is_no_package_and_a_program_is_its_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().canonicalize().expect("a path").join("home");
        let no_agents = AgentsWrite::default();
        put(&home.join("package.json"), "{}");
        put(&home.join("bin/tool"), "#!/bin/sh\n");
        let apart = std::slice::from_ref(&home);
        let shown = mounts(lookup(Path::new(""), apart, &no_agents).needs(&home.join("bin/tool")));
        assert_eq!(shown[0], file(home.join("bin/tool")));
        put(&home.join("bin/elf"), "\x7fELF");
        assert_eq!(
            mounts(lookup(Path::new(""), &[], &no_agents).needs(&home.join("bin/elf"))),
            [file(home.join("bin/elf"))]
        );
    }

    #[test]
    fn what_an_agent_wrote_decides_nothing_and_an_interpreter_is_a_program() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        std::fs::write(root.join("key"), "a key").expect("a file");
        put(&root.join("program"), "\x7fELF");
        put(&root.join("project/tool"), &format!("#!{}\n", root.join("program").display()));
        symlink("../program", root.join("project/python")).expect("a link");
        put(&root.join("tool"), &format!("#!{}\n", root.join("project/python").display()));
        put(&root.join("evil"), &format!("#!{}\n", root.join("key").display()));
        let mut agents_write = AgentsWrite::default();
        agents_write.add(&root.join("project"));
        let lookup = lookup(Path::new(""), &[], &agents_write);
        let needs = |name: &str| mounts(lookup.needs_as_called(&root.join(name)));
        assert_eq!(needs("project/tool"), [file(root.join("project/tool"))]);
        assert_eq!(needs("project/python"), []);
        assert_eq!(needs("tool"), [file(root.join("tool"))]);
        assert_eq!(needs("evil"), [file(root.join("evil"))]);
    }

    #[test]
    fn first_lines_name_a_path_or_a_name() {
        let of = |line: &str| interpreter(line.as_bytes());
        assert_eq!(of(" /bin/bash -e"), Some(Interpreter::Path("/bin/bash".into())));
        assert_eq!(of("/usr/bin/env -S A=b node --x"), Some(Interpreter::OnPath("node".into())));
        assert_eq!(of("/usr/bin/env"), None);
        assert_eq!(of(""), None);
    }
}
