//! The sandbox of one agent: an allow-list of the host's files, and nothing else.
//!
//! ```text
//!   read-only:  /usr /etc /opt /nix, programs, `readable`, the socket's directory
//!   its own:    /tmp, its state directory, its home, `writable`
//!   new:        /proc, /dev, the root directory (read-only)
//! ```
//!
//! Peers, the broker's files and the operator's home need no hiding: they are not on the list.
//! Invariant: a directory that an agent can write in contains no mount point that determines a
//! program outside of it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use super::bwrap::Bubblewrap;
use super::grants::Grants;
use super::own::Own;
use super::programs::Shown;
use crate::supervise::setup::plan::AgentPlan;

const SHARED_MEMORY_BYTES: u64 = 256 * 1024 * 1024;
/// Links or directories of the root that belong to /usr.
const ROOT_PARTS: [&str; 7] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec"];
/// Directories that are shown where they are on the host, if they are there.
const READ_ONLY: [&str; 3] = ["/opt", "/nix/store", "/nix/var/nix/profiles"];
/// Parts of /sys that name hardware.
const SYS_PARTS: [&str; 5] = ["block", "bus", "class", "dev", "devices"];
/// Parts of /run on NixOS: the system's programs and its graphics drivers.
const RUN_PARTS: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];
/// Directories for temporary files, which are one inside.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

#[derive(Debug)]
pub(super) struct Inside<'a> {
    pub(super) agent: &'a AgentPlan,
    pub(super) own: &'a Own,
    /// Programs, and files that variables of the environment name.
    pub(super) shown: &'a [Shown],
    pub(super) grants: &'a Grants,
    /// A descriptor with the text of /etc/passwd.
    pub(super) passwd: RawFd,
}

/// Returns the arguments of bubblewrap, up to those of the start itself.
pub(super) fn arguments(bwrap: &Bubblewrap, inside: &Inside<'_>) -> Vec<OsString> {
    let mut args = Arguments::default();
    let flags = [
        "--die-with-parent",
        "--new-session",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-cgroup-try",
    ];
    args.0.extend(flags.map(OsString::from));
    args.add("--cap-drop", ["ALL"]);
    system(&mut args, inside.passwd);
    devices(&mut args, bwrap, inside.grants);
    args.add("--dir", ["/run"]);
    for path in resolv_conf(Path::new("/etc/resolv.conf").canonicalize().ok())
        .into_iter()
        .chain(RUN_PARTS.map(PathBuf::from))
        .filter(|path| path.exists())
    {
        args.bind("--ro-bind", &path, &path);
    }
    let mounts = mounts(inside);
    temporary(&mut args, &inside.own.tmp.path, &mounts);
    let islands = islands(&mounts);
    for island in &islands {
        args.add("--tmpfs", [island]);
    }
    for Mount { how, source, dest } in &mounts {
        args.bind(how, source, dest);
    }
    for island in &islands {
        args.add("--remount-ro", [island]);
    }
    args.add("--remount-ro", ["/"]);
    args.0
}

#[derive(Debug, Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add(&mut self, option: &str, values: impl IntoIterator<Item = impl Into<OsString>>) {
        self.0.push(option.into());
        self.0.extend(values.into_iter().map(Into::into));
    }

    fn bind(&mut self, how: &str, source: &Path, dest: &Path) {
        self.add(how, [source, dest]);
    }
}

fn system(args: &mut Arguments, passwd: RawFd) {
    args.add("--ro-bind", ["/usr", "/usr"]);
    for part in ROOT_PARTS {
        let path = Path::new("/").join(part);
        match std::fs::read_link(&path) {
            Ok(target) => args.add("--symlink", [target.as_path(), path.as_path()]),
            Err(_) if path.is_dir() => args.bind("--ro-bind", &path, &path),
            Err(_) => {}
        }
    }
    for path in READ_ONLY {
        args.add("--ro-bind-try", [path, path]);
    }
    args.add("--ro-bind", ["/etc", "/etc"]);
    // ssh refuses configuration files whose owner is not mapped.
    if Path::new("/etc/ssh").is_dir() {
        args.add("--tmpfs", ["/etc/ssh"]);
        args.add("--remount-ro", ["/etc/ssh"]);
    }
    args.add("--ro-bind-data", [passwd.to_string().as_str(), "/etc/passwd"]);
}

fn devices(args: &mut Arguments, bwrap: &Bubblewrap, grants: &Grants) {
    args.add("--dev", ["/dev"]);
    if bwrap.has("--size") {
        args.add("--size", [SHARED_MEMORY_BYTES.to_string()]);
    }
    args.add("--tmpfs", ["/dev/shm"]);
    // Their mount points can be made only before /dev is read-only.
    for device in &grants.devices {
        args.bind("--dev-bind", &device.path, &device.path);
    }
    args.add("--remount-ro", ["/dev"]);
    args.add("--proc", ["/proc"]);
    for part in SYS_PARTS {
        let path = Path::new("/sys").join(part);
        args.bind("--ro-bind-try", &path, &path);
    }
}

/// Binds the directory for temporary files. /var/tmp is a link to /tmp, unless a mount has to be
/// below it.
fn temporary(args: &mut Arguments, tmp: &Path, mounts: &[Mount]) {
    let [short, long] = TEMPORARY.map(Path::new);
    args.bind("--bind", tmp, short);
    if mounts.iter().any(|mount| mount.dest.starts_with(long)) {
        args.bind("--bind", tmp, long);
    } else {
        args.add("--symlink", [short, long]);
    }
}

/// Returns the directory of the file that /etc/resolv.conf leads to, if that is one of a service in
/// /run: services replace the file. Elsewhere the file alone, for other things may be beside it.
fn resolv_conf(target: Option<PathBuf>) -> Option<PathBuf> {
    let target = target?;
    let dir = target.parent()?;
    if covers_system(&target) {
        None
    } else if dir.strip_prefix("/run").is_ok_and(|below| below.components().next().is_some()) {
        Some(dir.to_path_buf())
    } else {
        Some(target)
    }
}

#[derive(Debug)]
struct Mount {
    how: &'static str,
    source: PathBuf,
    dest: PathBuf,
}

/// Returns the mounts of this agent, parents first.
fn mounts(inside: &Inside<'_>) -> Vec<Mount> {
    let AgentPlan { socket_dir, state_dir, home_dir, .. } = inside.agent;
    let at = |how, path: &Path| Mount { how, source: path.to_path_buf(), dest: path.to_path_buf() };
    let Grants { readable, writable, .. } = inside.grants;
    let mut mounts: Vec<Mount> = Vec::new();
    mounts.extend(readable.iter().map(|granted| at("--ro-bind", &granted.path)));
    let covered: Vec<PathBuf> = readable.iter().map(|granted| granted.path.clone()).collect();
    let is_covered =
        |dest: &Path| covers_system(dest) || covered.iter().any(|dir| dest.starts_with(dir));
    let files = inside.shown.iter().filter_map(|shown| match shown {
        Shown::File { source, dest } => Some((source, dest)),
        Shown::Link { .. } => None,
    });
    for (source, dest) in files.filter(|(_, dest)| !is_covered(dest)) {
        if !mounts.iter().any(|mount| mount.dest == *dest) {
            mounts.push(Mount {
                how: "--ro-bind",
                source: source.path.clone(),
                dest: dest.clone(),
            });
        }
    }
    mounts.extend(writable.iter().map(|granted| at("--bind", &granted.path)));
    for (source, dest) in [(&inside.own.state, state_dir), (&inside.own.home, home_dir)] {
        mounts.push(Mount { how: "--bind", source: source.path.clone(), dest: dest.clone() });
    }
    // Its settings are beside its socket; a program that could change them could choose the
    // programs of its harness.
    mounts.push(at("--ro-bind", socket_dir));
    for shown in inside.shown {
        let Shown::Link { target, dest } = shown else { continue };
        // If its directory is shown, it contains the link.
        if !covers_system(dest) && !mounts.iter().any(|mount| dest.starts_with(&mount.dest)) {
            mounts.push(Mount { how: "--symlink", source: target.clone(), dest: dest.clone() });
        }
    }
    mounts.sort_by_key(|mount| mount.dest.components().count());
    mounts
}

pub(super) fn covers_system(path: &Path) -> bool {
    let of_root = ROOT_PARTS.iter().any(|part| path.starts_with(Path::new("/").join(part)));
    of_root
        || ["/usr", "/etc"]
            .iter()
            .chain(&READ_ONLY)
            .chain(&RUN_PARTS)
            .any(|shown| path.starts_with(shown))
}

/// Returns the directories directly below /tmp and /var/tmp that mounts are in. They become mounts
/// of their own and read-only: otherwise a program in the sandbox could rename the way to its
/// harness's files.
fn islands(mounts: &[Mount]) -> BTreeSet<PathBuf> {
    let island = |mount: &Mount| {
        TEMPORARY.iter().find_map(|dir| {
            let below = mount.dest.strip_prefix(dir).ok()?;
            let mut parts = below.components();
            let first = parts.next()?;
            parts.next().map(|_| Path::new(dir).join(first))
        })
    };
    let is_mounted = |dir: &PathBuf| mounts.iter().any(|mount| mount.dest == *dir);
    mounts.iter().filter_map(island).filter(|dir| !is_mounted(dir)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::own::Trial;
    use super::*;
    use crate::supervise::files::host_path::HostPath;
    use crate::supervise::setup::plan::planned_in;

    #[test]
    fn a_file_of_name_servers_brings_the_directory_of_a_service_at_most() {
        let of = |path: &str| resolv_conf(Some(path.into()));
        assert_eq!(of("/etc/resolv.conf"), None);
        assert_eq!(
            of("/run/systemd/resolve/stub-resolv.conf"),
            Some("/run/systemd/resolve".into())
        );
        for alone in ["/run/resolv.conf", "/mnt/wsl/resolv.conf", "/tmp/x/resolv.conf"] {
            assert_eq!(of(alone), Some(alone.into()));
        }
    }

    fn joined(args: &[OsString], root: &Path) -> String {
        let words: Vec<String> = args
            .iter()
            .map(|arg| arg.to_string_lossy().replace(&*root.to_string_lossy(), "R"))
            .collect();
        words.join(" ").replace(" --", "\n--")
    }

    #[test]
    fn mounts_of_an_agent_follow_those_of_the_system() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        let plan = planned_in(&root, "[agents.ada]\n[agents.bob]\n");
        std::fs::create_dir(root.join("bin")).expect("a directory");
        std::fs::write(root.join("bin/claude"), "").expect("a file");
        let found = |path: &Path| Shown::at_its_place(HostPath::follow(path).expect("it is there"));
        let link = |dest: PathBuf| Shown::Link { target: "/usr/bin/python3".into(), dest };
        let shown = [
            found(Path::new("/usr/bin/env")),
            found(&root.join("bin/claude")),
            link(root.join("tools/python")),
            link("/usr/bin/python".into()),
            link(root.join("h/agents/ada/home/python")),
        ];
        let trial = Trial::new(&plan).expect("directories");
        let grants = Grants::default();
        let inside = Inside {
            agent: &plan.agents[0],
            own: &trial.own,
            shown: &shown,
            grants: &grants,
            passwd: 9,
        };
        let args = joined(&arguments(&Bubblewrap::with(&["--size"]), &inside), &root);
        assert!(args.contains("--ro-bind /etc /etc\n"), "{args}");
        assert!(args.contains("--ro-bind-data 9 /etc/passwd\n"), "{args}");
        assert!(
            args.contains("--size 268435456\n--tmpfs /dev/shm\n--remount-ro /dev\n--proc /proc\n"),
            "{args}"
        );
        let own = args
            .split_once("--bind R/h/trial/tmp /tmp\n")
            .expect("a directory for temporary files")
            .1;
        insta::assert_snapshot!(own, @r"
        --bind R/h/trial/tmp /var/tmp
        --tmpfs R
        --ro-bind R/bin/claude R/bin/claude
        --symlink /usr/bin/python3 R/tools/python
        --bind R/h/trial/state R/h/agents/ada/state
        --bind R/h/trial/home R/h/agents/ada/home
        --ro-bind R/h/run/agents/ada R/h/run/agents/ada
        --remount-ro R
        --remount-ro /
        ");
        assert!(
            !args.contains("bob") && !args.contains("R/h/state") && !args.contains("hive.toml"),
            "{args}"
        );
        let old = joined(&arguments(&Bubblewrap::with(&[]), &inside), &root);
        assert!(!old.contains("--size"), "{old}");
    }
}
