//! The test bed: a Debian tree that systemd-nspawn boots, with Hive's programs and units in it.
//!
//! `tests/setup.sh` makes the tree. Its files are not changed: what a test writes is in memory, and
//! goes with the container. Invariant: one container runs at a time. All would have the same
//! control groups, because no service manager of the host gives each its own, and one container's
//! systemd would remove or wait for those of another.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use hive_proto::connect::connect;
use hive_tests::binary;
use hive_tests::rig::{Client, gone, host, soon};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};

/// The tree, below the workspace.
const TREE: &str = ".cache/debian/tree";
/// The file that is locked while a container runs.
const LOCK: &str = ".cache/debian/made";
/// The programs, with their packages.
const PROGRAMS: [(&str, &str); 5] = [
    ("hive-broker", "hived"),
    ("hive-harness", "hive"),
    ("hive-mcp-bridge", "hive-mcp"),
    ("hivectl", "hivectl"),
    ("hive-scripted", "scripted-claude"),
];
/// The files of `packaging/`, and where they are installed.
const FILES: [(&str, &str); 8] = [
    ("systemd/hived.service", "/usr/lib/systemd/system/hived.service"),
    ("systemd/hived.socket", "/usr/lib/systemd/system/hived.socket"),
    ("systemd/hive@.service", "/usr/lib/systemd/system/hive@.service"),
    ("systemd/hive-launcher.service", "/usr/lib/systemd/system/hive-launcher.service"),
    ("systemd/hive.sysusers", "/usr/lib/sysusers.d/hive.conf"),
    ("systemd/hive.tmpfiles", "/usr/lib/tmpfiles.d/hive.conf"),
    ("polkit/50-hive.rules", "/usr/share/polkit-1/rules.d/50-hive.rules"),
    ("dbus/hive-launcher.conf", "/usr/share/dbus-1/system.d/hive-launcher.conf"),
];

/// A booted container.
pub(crate) struct Bed {
    nspawn: Child,
    /// Its first process, as the host numbers it.
    leader: Pid,
    _notified: tempfile::TempDir,
    /// Closed, and so unlocked, after the container has ended.
    _turn: File,
}

impl Bed {
    /// Boots a container with this `hive.toml`; `None` if this host cannot.
    pub(crate) async fn boot(config: &str) -> Option<Self> {
        Self::boot_as(config, &[]).await
    }

    /// Boots one with further arguments of systemd-nspawn.
    pub(crate) async fn boot_as(config: &str, arguments: &[String]) -> Option<Self> {
        let programs = PROGRAMS.map(|(package, program)| built(package, program));
        let files = FILES.map(|(file, place)| {
            (binary::workspace().join("packaging").join(file), PathBuf::from(place))
        });
        let bed = Self::boot_with(programs.into_iter().chain(files), arguments).await?;
        bed.write("/etc/hive/hive.toml", config);
        Some(bed)
    }

    /// Boots a container without Hive, in which only a claude and the directory `/packages` are.
    pub(crate) async fn boot_bare(packages: &Path) -> Option<Self> {
        let packages = (packages.to_path_buf(), PathBuf::from("/packages"));
        Self::boot_with([built("hive-scripted", "scripted-claude"), packages], &[]).await
    }

    /// Boots a container in which these files of the host can be read at other paths.
    async fn boot_with(
        files: impl IntoIterator<Item = (PathBuf, PathBuf)>,
        arguments: &[String],
    ) -> Option<Self> {
        let tree = binary::workspace().join(TREE);
        let is_possible = host::is_root()
            && Path::new("/usr/bin/systemd-nspawn").exists()
            && tree.join("usr/lib/systemd/systemd").exists();
        if !host::allows(
            "booting systemd in a container (as root, with tests/setup.sh)",
            is_possible,
        ) {
            return None;
        }
        let turn = tokio::task::spawn_blocking(|| {
            let file = File::open(binary::workspace().join(LOCK)).expect("the tree is made");
            file.lock().expect("it can be locked");
            file
        });
        let turn = turn.await.expect("the lock is taken");
        let notified = tempfile::tempdir().expect("a directory");
        let socket = UnixDatagram::bind(notified.path().join("notify")).expect("a socket");
        let mut nspawn = command(&tree, &notified.path().join("notify"));
        for (file, place) in files {
            nspawn.arg(format!("--bind-ro={}:{}", file.display(), place.display()));
        }
        let nspawn = nspawn.args(arguments).spawn().expect("it starts");
        let leader = soon("the container has booted", ready(&socket)).await;
        Some(Self { nspawn, leader, _notified: notified, _turn: turn })
    }

    /// Returns a path of the container, as the host sees it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.leader.as_raw_nonzero()))
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        std::fs::write(self.path(path), text).expect("the container has this directory");
    }

    /// Returns a command that runs in the container, as root.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.leader.as_raw_nonzero().to_string(), "--all", "--"]);
        command.args(words).env_clear().env("PATH", "/usr/bin:/usr/sbin").env("TZ", "UTC");
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a command to its end; returns whether it succeeded, and all that it printed.
    pub(crate) async fn tries(&self, words: &[&str]) -> (bool, String) {
        let run = soon(&words.join(" "), self.command(words).output()).await.expect("it runs");
        let printed = [run.stdout, run.stderr].concat();
        (run.status.success(), String::from_utf8_lossy(&printed).into_owned())
    }

    /// Runs a command that has to succeed; returns what it printed.
    pub(crate) async fn run(&self, words: &[&str]) -> String {
        let (succeeded, printed) = self.tries(words).await;
        if !succeeded {
            let (_, log) = self.tries(&["journalctl", "--no-pager", "-o", "cat", "-n", "50"]).await;
            panic!("{words:?} failed:\n{printed}\n{log}");
        }
        printed
    }

    /// Returns a property of a unit.
    pub(crate) async fn property(&self, unit: &str, name: &str) -> String {
        let shown = self.run(&["systemctl", "show", "--value", "-p", name, unit]).await;
        shown.trim_end().to_owned()
    }

    /// Returns the number of the main process of a unit, inside the container.
    pub(crate) async fn main_pid(&self, unit: &str) -> String {
        self.property(unit, "MainPID").await
    }

    pub(crate) fn socket(&self, agent: Option<&str>) -> PathBuf {
        match agent {
            Some(agent) => self.path(&format!("/run/hive/agents/{agent}/hive.sock")),
            None => self.path("/run/hive/hived.sock"),
        }
    }

    /// Returns a client: root, on the socket of an agent or of the operator.
    pub(crate) async fn client(&self, agent: Option<&str>) -> Client {
        Client::new(connect(&self.socket(agent)).await.expect("the socket is there"))
    }

    /// Ends the container, and with it every process in it.
    pub(crate) async fn end(mut self) {
        kill_process(self.leader, Signal::KILL).expect("it runs");
        drop(soon("nspawn ends", self.nspawn.wait()).await);
        gone(self.leader).await;
    }
}

impl Drop for Bed {
    /// A test that fails leaves no container behind, and the next one begins after its end.
    fn drop(&mut self) {
        let process = pidfd_open(self.leader, PidfdFlags::empty());
        let _ = kill_process(self.leader, Signal::KILL);
        if let Ok(process) = process {
            let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], None);
        }
    }
}

/// Returns the path of a built program, and its path in the container.
fn built(package: &str, program: &str) -> (PathBuf, PathBuf) {
    let built = binary::find(package, program).canonicalize().expect("it is built");
    (built, Path::new("/usr/bin").join(program))
}

/// The command that boots the tree.
fn command(tree: &Path, notified: &Path) -> Command {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (own, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut nspawn = Command::new("systemd-nspawn");
    nspawn
        .args(["--quiet", "--register=no", "--keep-unit", "--boot", "--console=pipe"])
        // Read-only, so that several can have the tree; what is written is in memory above it.
        .args(["--read-only", "--volatile=overlay", "--notify-ready=yes"])
        .arg(format!("--machine=hive-{own}-{count}"))
        .arg("--directory")
        .arg(tree);
    nspawn.env("NOTIFY_SOCKET", notified);
    nspawn.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    nspawn
}

/// Waits until the container reports that it has booted; returns its first process.
async fn ready(socket: &UnixDatagram) -> Pid {
    let (mut leader, mut is_ready) = (None, false);
    let mut buffer = [0; 4096];
    loop {
        let length: io::Result<usize> = socket.recv(&mut buffer).await;
        let message = String::from_utf8_lossy(&buffer[..length.expect("a message")]).into_owned();
        for line in message.lines() {
            if let Some(pid) = line.strip_prefix("X_NSPAWN_LEADER_PID=") {
                leader = pid.parse().ok().and_then(Pid::from_raw);
            }
            is_ready |= line == "READY=1";
        }
        if let (Some(leader), true) = (leader, is_ready) {
            return leader;
        }
    }
}
