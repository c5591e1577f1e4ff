//! `hive probe` inside sandboxes of bubblewrap: a sound one has no findings, and each hole in one
//! is named.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hive_core::isolation::{EXPECTED_ENV, Expected, Found, Level, Mounted, Severity};
use tempfile::TempDir;

/// The user that root becomes: a sandbox of root's is none.
const NOBODY: u32 = 65_534;

struct Sandbox {
    dir: TempDir,
    expected: Expected,
    /// Options of bubblewrap after the usual ones.
    more: Vec<String>,
}

impl Sandbox {
    /// A sandbox; `None` where the host allows none and tests may be skipped.
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["", "home", "home/.claude", "tmp", "project"] {
            let path = dir.path().join(name);
            drop(fs::create_dir(&path));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
            if rustix::process::geteuid().is_root() {
                chown(&path, Some(NOBODY), Some(NOBODY)).expect("given");
            }
        }
        fs::copy(env!("CARGO_BIN_EXE_hive"), dir.path().join("hive")).expect("copied");
        let expected = Expected {
            level: Level::Sandbox,
            bwrap: "/usr/bin/bwrap".into(),
            user_namespaces: false,
            hidden: vec![dir.path().to_path_buf(), "/hive.toml".into()],
            read_only: vec!["/opt/hive".into(), "/usr/bin/env".into(), "/no/such".into()],
            writable: Vec::new(),
            devices: Vec::new(),
            private: "/opt/private".into(),
            mounted: Vec::new(),
        };
        let sandbox = Self { dir, expected, more: Vec::new() };
        let output = sandbox.command("exec true", &[]).output().expect("a shell");
        let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
        let words = String::from_utf8_lossy(&output.stderr);
        let possible = output.status.success();
        assert!(
            possible || !(is("CI", "true") || is("HIVE_TEST_STRICT", "1")),
            "this host does not allow sandboxes: {words}"
        );
        if !possible {
            drop(std::io::Write::write_all(
                &mut std::io::stderr().lock(),
                format!("NOT TESTED: this host does not allow sandboxes: {words}\n").as_bytes(),
            ));
        }
        possible.then_some(sandbox)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a shell script inside; `bubblewrap "$@"` in `before` would start it.
    fn command(&self, script: &str, before: &[&str]) -> Command {
        let expected = self.path("isolation.json");
        fs::write(&expected, serde_json::to_string(&self.expected).expect("JSON"))
            .expect("written");
        let bind = |kind: &str, from: &Path, to: &str| {
            [kind.to_owned(), from.display().to_string(), to.to_owned()]
        };
        let mut words: Vec<String> = "--die-with-parent --new-session --unshare-user --unshare-pid --unshare-ipc --ro-bind /usr /usr --symlink usr/bin /bin \
             --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/sbin /sbin --ro-bind /etc /etc --dev /dev --tmpfs /dev/shm \
             --proc /proc --dir /run --dir /opt/private --chdir /"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        words.extend(bind("--bind", &self.path("tmp"), "/tmp"));
        words.extend(bind("--ro-bind", &self.path("hive"), "/opt/hive"));
        words.extend(bind("--ro-bind", &expected, "/opt/isolation.json"));
        words.extend(bind("--bind", &self.path("home"), "/home/agent"));
        words.extend(self.more.clone());
        words.extend(
            ["--remount-ro", "/dev", "--remount-ro", "/", "--", "sh", "-c", script]
                .map(str::to_owned),
        );
        let mut command = Command::new("bash");
        // The sandbox must not inherit the file descriptors of this test.
        let close =
            "for fd in /proc/self/fd/*; do fd=${fd##*/}; ((fd > 2)) && eval \"exec $fd>&-\"; done";
        let script = format!("{close}; {} exec bwrap \"$@\"", before.concat());
        command
            .args(["-c", &script, "sh"])
            .args(words)
            .env_clear()
            .stdin(Stdio::null())
            .current_dir("/");
        command.envs([
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/home/agent"),
            (EXPECTED_ENV, "/opt/isolation.json"),
        ]);
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// The findings, without those of a kernel that lacks something.
    fn probe(&self, before: &[&str]) -> Vec<(Severity, String)> {
        let output = self.command("exec /opt/hive probe", before).output().expect("it runs");
        let found: Found = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let is_of_kernel =
            |sentence: &str| sentence.contains("Landlock") || sentence.contains("abstract socket");
        let findings =
            found.findings.into_iter().filter(|finding| !is_of_kernel(&finding.sentence));
        findings.map(|finding| (finding.severity, finding.sentence)).collect()
    }
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_sound_sandbox_has_no_findings_and_nothing_is_left_behind() {
    let Some(sandbox) = Sandbox::new() else { return };
    assert_eq!(sandbox.probe(&[]), []);
    let names = |dir: PathBuf| {
        let mut names: Vec<_> =
            fs::read_dir(dir).expect("there").flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(sandbox.path("tmp")).len(), 0);
    assert_eq!(names(sandbox.path("home")), [".claude", ".hive"]);
}

#[test]
fn holes_are_named() {
    let Some(mut sandbox) = Sandbox::new() else { return };
    let socket = |path: &Path| {
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        let listener = UnixListener::bind(path).expect("bound");
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("set");
        listener
    };
    let uid = if rustix::process::geteuid().is_root() {
        NOBODY
    } else {
        rustix::process::geteuid().as_raw()
    };
    let _tmux = socket(&sandbox.path(&format!("tmp/tmux-{uid}/default")));
    let _agent = socket(&sandbox.path("tmp/ssh-x/agent.1"));
    // A socket without a listener.
    drop(socket(&sandbox.path("tmp/.X11-unix/X0")));
    let dir = sandbox.dir.path().display().to_string();
    sandbox.more = [
        "--bind",
        &format!("{dir}/project"),
        "/project",
        "--ro-bind",
        "/usr/bin/env",
        "/project/tool",
        "--dev-bind",
        "/dev/zero",
        "/dev/extra",
        "--dev-bind",
        "/dev/zero",
        "/dev/gpu0",
        "--ro-bind",
        "/etc/hostname",
        "/hive.toml",
    ]
    .map(str::to_owned)
    .to_vec();
    sandbox.expected.read_only.extend([
        "/project".into(),
        "/project/tool".into(),
        "/home/agent/.claude".into(),
    ]);
    sandbox.expected.devices = vec!["/dev/gpu0".into()];
    let found = sandbox.probe(&["exec 7</ 8<&0; "]);
    let wanted = [
        (Severity::Broken, "inherited the descriptor 7: /".to_owned()),
        (Severity::Broken, "can see /hive.toml, which must be hidden".to_owned()),
        (Severity::Broken, "can write /project".to_owned()),
        (Severity::Broken, "can write /home/agent/.claude".to_owned()),
        (Severity::Partly, "can use the device /dev/extra".to_owned()),
        (Severity::Broken, format!("can connect to tmux at /tmp/tmux-{uid}/default")),
        (Severity::Partly, "can connect to ssh-agent at /tmp/ssh-x/agent.1".to_owned()),
    ];
    assert_eq!(found, wanted);
    let shared = Expected { level: Level::SharedFiles, ..sandbox.expected.clone() };
    sandbox.expected = shared;
    let found = sandbox.probe(&[]);
    let wanted = [
        (Severity::Broken, wanted[1].1.clone()),
        (Severity::Partly, "shares the files of its user".to_owned()),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_mount_of_another_file_than_was_checked_is_an_error() {
    let Some(mut sandbox) = Sandbox::new() else { return };
    // The agent replaces a `writable` directory by a link between the check of `hivectl up` and
    // the mount by bubblewrap.
    for dir in ["project", "elsewhere"] {
        fs::create_dir_all(sandbox.path(dir)).expect("created");
    }
    let checked = sandbox.path("project").metadata().expect("there");
    let mounted = Mounted { path: "/project".into(), device: checked.dev(), inode: checked.ino() };
    sandbox.expected.mounted = vec![mounted];
    for (dir, code) in [("project", 0), ("elsewhere", 1)] {
        sandbox.more =
            ["--bind".to_owned(), sandbox.path(dir).display().to_string(), "/project".to_owned()]
                .to_vec();
        let output = sandbox.command("exec /opt/hive probe", &[]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(code), "{dir}: {}", stderr_of(&output));
        assert_eq!(
            stderr_of(&output).contains("/project is not what `hivectl up` checked"),
            code != 0,
            "{}",
            stderr_of(&output)
        );
    }
}

#[test]
fn sandboxes_that_do_not_nest_are_a_finding() {
    let Some(mut sandbox) = Sandbox::new() else { return };
    sandbox.expected.bwrap = "/no/such/bwrap".into();
    let found = sandbox.probe(&[]);
    assert_eq!(found.len(), 1, "{found:?}");
    let (severity, sentence) = &found[0];
    assert!(
        *severity == Severity::Partly
            && sentence.starts_with("shell tasks and the agent's own MCP servers share")
            && sentence.contains("/no/such/bwrap"),
        "{sentence}"
    );
}

#[test]
fn a_claude_that_does_not_run_inside_is_an_error_with_its_output() {
    let Some(sandbox) = Sandbox::new() else { return };
    let run = |script: &str| sandbox.command(script, &[]).output().expect("it runs");
    let fails = "printf '#!/bin/sh\\necho no library >&2; exit 5' > /tmp/claude && chmod +x /tmp/claude; exec /opt/hive probe --claude /tmp/claude";
    for (script, wanted) in [
        (fails, "no library"),
        ("exec /opt/hive probe --claude /no/claude", "cannot run `/no/claude`"),
    ] {
        let output = run(script);
        assert_eq!(output.status.code(), Some(3), "{}", stderr_of(&output));
        assert!(
            stderr_of(&output).contains(wanted) && output.stdout.is_empty(),
            "{}",
            stderr_of(&output)
        );
    }
    let output = run("exec /opt/hive probe --claude /usr/bin/env");
    assert_eq!(output.status.code(), Some(0), "{}", stderr_of(&output));
    let output = run(&format!("unset {EXPECTED_ENV}; exec /opt/hive probe"));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr_of(&output).contains(EXPECTED_ENV), "{}", stderr_of(&output));
}
