//! A disk that a test can fill: a tmpfs of a few megabytes, in a mount namespace of its own.
//!
//! A process that does nothing holds the namespace, so the disk outlives the brokers that are
//! started on it and is gone with the rig, however that ends. The test reaches the disk through
//! `/proc`. Invariant: no mount is visible outside the namespace.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use super::{Process, host, soon};

#[derive(Debug)]
pub struct SmallDisk {
    holder: Child,
    pid: u32,
    dir: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk of this many bytes over `dir`. If the host does not allow it, prints a note
    /// and returns `None`, or fails.
    pub async fn mount(dir: &Path, bytes: u64) -> Option<Self> {
        std::fs::create_dir_all(dir).expect("a directory");
        let mut command = Process::command(Path::new("unshare"));
        // Root needs no user namespace; others may have the right to make one, in which they are
        // root.
        command.args(if host::is_root() {
            &["--mount"][..]
        } else {
            &["--user", "--map-root-user", "--mount"]
        });
        let script = r#"mount -t tmpfs -o "size=$2,mode=0700" none "$1" && echo ready && exec sleep infinity"#;
        command.args(["sh", "-c", script, "sh"]).arg(dir).arg(bytes.to_string());
        // By its environment it is found and ended should the test be killed.
        command
            .env("HIVE_TEST_DIR", dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut holder = command.spawn().expect("unshare can be started");
        let mut word = [0; 6];
        let said = holder.stdout.take().expect("a pipe");
        let ready =
            soon(
                "the disk is mounted",
                async move { { said }.read_exact(&mut word).await.is_ok() },
            )
            .await;
        let pid = holder.id().unwrap_or_default();
        host::allows("a mount namespace with a tmpfs", ready).then(|| Self {
            holder,
            pid,
            dir: dir.to_path_buf(),
        })
    }

    /// A path on the disk, as the test sees it.
    pub fn path(&self, name: &str) -> PathBuf {
        let below = self.dir.strip_prefix("/").expect("the directory is absolute");
        Path::new("/proc").join(self.pid.to_string()).join("root").join(below).join(name)
    }

    /// Returns the command, to be run where the disk is mounted.
    pub fn inside(&self, command: &Command) -> Command {
        let given = command.as_std();
        let mut inside = Process::command(Path::new("nsenter"));
        inside.arg("--target").arg(self.pid.to_string()).arg("--mount");
        if !host::is_root() {
            inside.args(["--user", "--preserve-credentials"]);
        }
        inside.arg("--").arg(given.get_program()).args(given.get_args());
        inside.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside
    }

    /// Makes the disk read-only, or writable again.
    pub async fn set_read_only(&self, read_only: bool) {
        let mut mount = Command::new("mount");
        // Of the mount and not of the file system, which not every namespace may change.
        mount
            .args(["-o", if read_only { "remount,bind,ro" } else { "remount,bind,rw" }])
            .arg(&self.dir);
        let said = super::run(self.inside(&mount)).await;
        assert_eq!(said.code, 0, "the disk is remounted: {}", said.stderr);
    }

    pub fn fill(&self) {
        use std::io::Write as _;
        let mut file = std::fs::File::create(self.path("ballast")).expect("a file");
        let block = [0; 4096];
        while file.write_all(&block).is_ok() {}
    }

    /// Makes this much room on a full disk.
    pub fn leave(&self, bytes: u64) {
        let file = std::fs::File::options().write(true).open(self.path("ballast"));
        let file = file.expect("the ballast is there");
        let full = file.metadata().expect("it has a length").len();
        file.set_len(full - bytes).expect("it can be cut");
    }

    /// Makes room again.
    pub fn free(&self) {
        std::fs::remove_file(self.path("ballast")).expect("the ballast is there");
    }

    /// Returns whether a file of this name is on the disk.
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        name.as_ref().to_str().is_some_and(|name| self.path(name).exists())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The holder may have ended already.
        drop(self.holder.start_kill());
    }
}
