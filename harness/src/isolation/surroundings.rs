//! Processes, devices and descriptors around the harness.
//!
//! Invariant: only directories are opened, no device.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use hive_core::isolation::Finding;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::{broken, one_line, partly};

/// Device files of every sandbox.
const USUAL_DEVICES: [&str; 7] = ["full", "null", "ptmx", "random", "tty", "urandom", "zero"];
/// Maximum devices that are named.
const NAMED_MAX: usize = 20;
/// Maximum depth of the search in directories of devices.
const DEPTH_MAX: usize = 4;

/// Finds processes of others: the sandbox has its own process table, whose first process is
/// bubblewrap's.
pub(super) fn processes() -> Vec<Finding> {
    let own = rustix::process::getpid().as_raw_pid().to_string();
    let shown = fs::read_link("/proc/self").unwrap_or_default();
    if shown.as_os_str() != own.as_str() {
        return vec![broken(format!(
            "/proc shows the processes of another namespace: this one is {own} and is called `{}`",
            shown.display()
        ))];
    }
    let first = fs::read_to_string("/proc/1/comm").unwrap_or_default();
    if first.trim_end() == "bwrap" {
        return Vec::new();
    }
    vec![broken(format!(
        "sees the processes of the host: process 1 is `{}`, not `bwrap`",
        one_line(&first)
    ))]
}

/// Finds descriptors that were inherited, besides standard input and output and the report.
pub(super) fn descriptors(report: Option<&OwnedFd>) -> Vec<Finding> {
    let report = report.map(AsRawFd::as_raw_fd);
    let entries: Vec<PathBuf> = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let judge = |path: &PathBuf| {
        let number: i32 = path.file_name()?.to_str()?.parse().ok()?;
        // The descriptor of the directory itself is closed by now.
        let file = fs::read_link(path).ok()?;
        if Some(number) == report || file == Path::new("/dev/null") {
            return None;
        }
        let (is_terminal, is_pipe) =
            (is_terminal(&file), file.to_string_lossy().starts_with("pipe:"));
        let name = one_line(&file.to_string_lossy());
        match number {
            0..=2 if is_terminal => {
                Some(partly(format!("descriptor {number} is the terminal {name}")))
            }
            0..=2 => None,
            _ if is_pipe => Some(partly(format!("inherited the descriptor {number}: {name}"))),
            _ => Some(broken(format!("inherited the descriptor {number}: {name}"))),
        }
    };
    entries.iter().filter_map(judge).collect()
}

fn is_terminal(file: &Path) -> bool {
    file.starts_with("/dev/pts")
        || file.to_str().is_some_and(|file| file.starts_with("/dev/tty") || file == "/dev/console")
}

/// Finds device files that can be used and are neither usual nor expected.
pub(super) fn devices(allowed: &[PathBuf]) -> Vec<Finding> {
    let mut found = Vec::new();
    walk(Path::new("/dev"), 0, &mut |path| {
        let usual = path
            .strip_prefix("/dev")
            .ok()
            .and_then(Path::to_str)
            .is_some_and(|name| USUAL_DEVICES.contains(&name));
        let is_allowed = usual
            || path == Path::new("/dev/pts/ptmx")
            || allowed.iter().any(|allowed| path.starts_with(allowed));
        if !is_allowed && can_open(path) {
            found.push(path.to_path_buf());
        }
    });
    found.sort();
    let more = found.len().saturating_sub(NAMED_MAX);
    let judge = |path: &PathBuf| {
        let sentence = format!("can use the device {}", path.display());
        // Input typed into a terminal goes to the operator's shell, and can be read.
        if is_terminal(path) { broken(sentence) } else { partly(sentence) }
    };
    let mut findings: Vec<Finding> = found.iter().take(NAMED_MAX).map(judge).collect();
    if more > 0 {
        findings.push(partly(format!("can use {more} more devices")));
    }
    findings
}

fn walk(dir: &Path, depth: usize, see: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        // The entry of a mount point has the kind of the file below the mount.
        let Ok(kind) = entry.path().symlink_metadata().map(|metadata| metadata.file_type()) else {
            continue;
        };
        if kind.is_dir() && depth < DEPTH_MAX {
            walk(&entry.path(), depth + 1, see);
        } else if kind.is_char_device() || kind.is_block_device() {
            see(&entry.path());
        }
    }
}

fn can_open(path: &Path) -> bool {
    [Access::READ_OK, Access::WRITE_OK]
        .into_iter()
        .any(|access| accessat(CWD, path, access, AtFlags::EACCESS).is_ok())
}

#[cfg(test)]
mod tests {
    use hive_core::isolation::Severity;

    use super::*;

    #[test]
    fn an_inherited_directory_is_named_and_the_report_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let opened: OwnedFd = fs::File::open(dir.path()).expect("opened").into();
        let named = |found: &[Finding]| {
            found
                .iter()
                .filter(|finding| finding.sentence.contains(&dir.path().display().to_string()))
                .map(|f| f.severity)
                .collect::<Vec<_>>()
        };
        assert_eq!(named(&descriptors(None)), [Severity::Broken]);
        assert_eq!(named(&descriptors(Some(&opened))), []);
    }

    #[test]
    fn terminals_are_known_by_their_names() {
        for (path, wanted) in [
            ("/dev/pts/3", true),
            ("/dev/tty", true),
            ("/dev/console", true),
            ("/dev/null", false),
            ("pipe:[1]", false),
        ] {
            assert_eq!(is_terminal(Path::new(path)), wanted, "{path}");
        }
    }
}
