//! The operator's session: programs of the same user that an agent must not reach.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use hive_tests::rig::{Process, Rig, soon};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

/// A secret in the environment of a program of the operator's.
pub(crate) const SECRET: &str = "OPERATORS_SECRET=of-the-session";

/// A running session; its programs end with it.
pub(crate) struct Session {
    pub(crate) tmux: PathBuf,
    pub(crate) ssh_agent: PathBuf,
    pub(crate) dbus: PathBuf,
    /// The abstract name of the screen's socket.
    pub(crate) screen: String,
    /// A program of the operator's.
    pub(crate) program: u32,
    /// Files of the operator's where everything is temporary.
    pub(crate) tmp_file: PathBuf,
    pub(crate) memory_file: PathBuf,
    _files: [tempfile::NamedTempFile; 2],
    children: Vec<Child>,
}

impl Session {
    /// Starts a terminal, an agent of ssh, a bus and a screen.
    pub(crate) async fn start(rig: &Rig) -> Self {
        let dir = rig.user_dir("session");
        let [tmux, ssh_agent, dbus] = ["tmux", "ssh", "dbus"].map(|name| dir.join(name));
        let mut children = Vec::new();
        let start = |program: &str, arguments: &[&str], stdout: Stdio| {
            let mut command = rig.user_command(program.as_ref());
            command.args(arguments).stdout(stdout).stderr(Stdio::null()).kill_on_drop(true);
            command
                .spawn()
                .unwrap_or_else(|error| panic!("{program}: {error}; tests/setup.sh installs it"))
        };
        let text = |path: &PathBuf| path.display().to_string();
        children.push(start("ssh-agent", &["-D", "-a", &text(&ssh_agent)], Stdio::null()));
        children.push(start(
            "dbus-daemon",
            &["--session", "--nofork", "--address", &format!("unix:path={}", text(&dbus))],
            Stdio::null(),
        ));
        children.push(start("tmux", &["-D", "-S", &text(&tmux), "-f", "/dev/null"], Stdio::null()));
        let mut screen = start(
            "Xvfb",
            &["-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "64x64x8"],
            Stdio::piped(),
        );
        let mut lines = BufReader::new(screen.stdout.take().expect("a pipe")).lines();
        let display = soon("the screen says its number", lines.next_line())
            .await
            .expect("text")
            .expect("a number");
        children.push(screen);
        let mut program = rig.user_command("sleep".as_ref());
        let (name, value) = SECRET.split_once('=').expect("a variable");
        let program =
            program.arg("100000").env(name, value).kill_on_drop(true).spawn().expect("it starts");
        let pid = program.id().expect("it runs");
        children.push(program);
        for socket in [&ssh_agent, &dbus, &tmux] {
            soon(
                &format!("{} listens", socket.display()),
                hive_tests::scripted::appear::wait(socket),
            )
            .await
            .expect("watched");
        }
        let screen = format!("/tmp/.X11-unix/X{}", display.trim());
        let files = ["/tmp", "/dev/shm"].map(|dir| {
            let mut file = tempfile::NamedTempFile::new_in(dir).expect("a file");
            file.write_all(b"of the operator").expect("written");
            rig.give_away(file.path());
            file
        });
        let [tmp_file, memory_file] = files.each_ref().map(|file| file.path().to_path_buf());
        Self {
            tmux,
            ssh_agent,
            dbus,
            screen,
            program: pid,
            tmp_file,
            memory_file,
            _files: files,
            children,
        }
    }
}

impl Session {
    /// Ends its programs.
    pub(crate) async fn end(mut self) {
        for child in &mut self.children {
            child.kill().await.expect("it runs");
        }
    }
}

/// Whether the programs of a session are installed.
pub(crate) async fn is_possible() -> bool {
    for program in ["tmux", "ssh-agent", "dbus-daemon", "Xvfb", "keyctl", "bwrap"] {
        let mut which = Process::command("sh".as_ref());
        which.args(["-c", "command -v \"$0\"", program]).stdout(Stdio::null());
        if !which.status().await.is_ok_and(|status| status.success()) {
            return false;
        }
    }
    true
}
