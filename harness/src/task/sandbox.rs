//! The confinement of an isolated agent's shell tasks and MCP servers: a sandbox of bubblewrap for
//! each, with the fence inside it.
//!
//! A task has its own processes and user ids. It sees the files that the harness sees, except
//! claude's login and conversations and the harness's run directory and settings. It cannot write
//! the settings of claude in the working directory: claude obeys them, and a task could create them
//! after the harness has checked. The sandbox is outside and the fence inside, because a fenced
//! program creates no user namespaces. If sandboxes do not nest, tasks have the fence alone.
//! Invariant: a task of an isolated agent never runs without the fence.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fence;
use crate::task::environment::BASH_ENV_FILE;
use crate::task::supervisor::DIR as OUTPUT_DIR;

/// The confinement of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// No confinement: the agent is not isolated.
    #[default]
    None,
    /// The fence alone.
    Fence {
        /// The program `hive`.
        hive: PathBuf,
        /// Whether tasks may create user namespaces.
        user_namespaces: bool,
    },
    /// A sandbox with the fence inside it.
    Sandbox(Sandbox),
}

/// A sandbox for each task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// The program `bwrap`.
    pub bwrap: PathBuf,
    /// The program `hive`.
    pub hive: PathBuf,
    /// Whether tasks may create user namespaces.
    pub user_namespaces: bool,
    /// Whether this bubblewrap can switch user namespaces off inside.
    pub can_disable: bool,
    pub home_dir: PathBuf,
    pub run_dir: PathBuf,
    pub state_dir: PathBuf,
    /// The directory of the harness's settings.
    pub private_dir: PathBuf,
}

/// Directories of claude that stay visible: programs that a skill or a plugin starts.
const CLAUDE_LEFT: [&str; 2] = ["skills", "plugins"];

impl Confinement {
    /// Returns the command line that runs `bash` with these arguments.
    pub fn command(&self, bash: Vec<OsString>) -> (OsString, Vec<OsString>) {
        let (program, mut arguments) = match self {
            Self::None => return ("bash".into(), bash),
            Self::Fence { hive, user_namespaces } => (hive, fence::arguments(*user_namespaces)),
            Self::Sandbox(sandbox) => (&sandbox.bwrap, sandbox.arguments()),
        };
        arguments.push("bash".into());
        arguments.extend(bash);
        (program.into(), arguments)
    }

    /// Returns the command line that runs another program like a task, but ends all its processes
    /// with the first one, whose exit code it reports. Its environment has names of
    /// [`fence::wrapped`]: requested variables must not be obeyed before the fence.
    pub fn program(&self, command: Vec<OsString>) -> Vec<OsString> {
        let before = match self {
            Self::None => Vec::new(),
            Self::Fence { hive, user_namespaces } => {
                [vec![hive.into()], fence::arguments_for_requested(*user_namespaces)].concat()
            }
            Self::Sandbox(sandbox) => {
                let Sandbox { bwrap, hive, user_namespaces, .. } = sandbox;
                let inside = vec!["--".into(), hive.into()];
                let fence = fence::arguments_for_requested(*user_namespaces);
                [vec![bwrap.into()], sandbox.options(), inside, fence].concat()
            }
        };
        [before, command].concat()
    }

    /// Returns whether tasks have sandboxes.
    pub fn is_sandbox(&self) -> bool {
        matches!(self, Self::Sandbox(_))
    }
}

impl Sandbox {
    /// Returns the arguments of bubblewrap up to the command of the task.
    fn arguments(&self) -> Vec<OsString> {
        let mut arguments = self.options();
        arguments.extend(["--as-pid-1", "--"].map(OsString::from));
        arguments.extend([(&self.hive).into(), "task-init".into()]);
        if self.user_namespaces {
            arguments.push("--user-namespaces".into());
        }
        arguments.push("--".into());
        arguments
    }

    /// Returns the options of bubblewrap.
    fn options(&self) -> Vec<OsString> {
        let Self {
            bwrap: _,
            hive: _,
            user_namespaces,
            can_disable,
            home_dir,
            run_dir,
            state_dir,
            private_dir,
        } = self;
        let mut arguments: Vec<OsString> = Vec::new();
        let mut put = |option: &str, values: &[&Path]| {
            arguments.push(option.into());
            arguments.extend(values.iter().map(|value| value.as_os_str().to_owned()));
        };
        for option in ["--die-with-parent", "--unshare-user", "--unshare-pid"] {
            put(option, &[]);
        }
        if *can_disable && !user_namespaces {
            put("--disable-userns", &[]);
        }
        let root = Path::new("/");
        put("--dev-bind", &[root, root]);
        put("--proc", &[Path::new("/proc")]);
        let (claude, own) = (home_dir.join(".claude"), home_dir.join(".hive"));
        put("--tmpfs", &[&claude]);
        for left in CLAUDE_LEFT.map(|name| claude.join(name)) {
            // A link could lead to hidden files.
            if is_real_dir(&left) {
                put("--ro-bind-try", &[&left, &left]);
            }
        }
        put("--remount-ro", &[&claude]);
        put("--tmpfs", &[&own]);
        if !run_dir.starts_with(&own) {
            put("--tmpfs", &[run_dir]);
        }
        // Messages name the files of task output to the agent.
        for left in [OUTPUT_DIR, BASH_ENV_FILE].map(|name| run_dir.join(name)) {
            put("--ro-bind-try", &[&left, &left]);
        }
        put("--remount-ro", &[&own]);
        put("--tmpfs", &[private_dir]);
        put("--remount-ro", &[private_dir]);
        let of_project = state_dir.join(".claude");
        // Without the directory, a task could create it, or a file in its place. An existing one is
        // left as it is.
        let _ = private_dir_at(&of_project);
        let is_there = |path: &Path| {
            path.symlink_metadata().is_ok_and(|found| found.is_dir() || found.is_file())
        };
        if of_project != claude && is_there(&of_project) {
            put("--ro-bind", &[&of_project, &of_project]);
        }
        put("--chdir", &[state_dir]);
        arguments
    }

    /// Creates the directories that are hidden, because a mount needs a target.
    fn make_dirs(&self) -> io::Result<()> {
        let dirs =
            [self.home_dir.join(".claude"), self.home_dir.join(".hive"), self.run_dir.clone()];
        dirs.iter().try_for_each(|dir| private_dir_at(dir))
    }

    /// Runs a command that does nothing; the error says why sandboxes do not nest here.
    fn try_once(&self) -> Result<(), String> {
        self.make_dirs().map_err(|error| error.to_string())?;
        let output = Command::new(&self.bwrap)
            .args(self.arguments())
            .arg("true")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.bwrap.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let stderr: String =
            String::from_utf8_lossy(&output.stderr).trim().chars().take(300).collect();
        Err(if stderr.is_empty() { output.status.to_string() } else { stderr })
    }
}

fn private_dir_at(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn is_real_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Tries the strongest sandbox first. Returns the confinement that works here, and why it is not a
/// sandbox.
pub fn choose(mut sandbox: Sandbox) -> (Confinement, Option<String>) {
    let Err(why) = sandbox.try_once() else { return (Confinement::Sandbox(sandbox), None) };
    // Before 0.8 bubblewrap has no option to switch user namespaces off; the fence does that too.
    if sandbox.can_disable && !sandbox.user_namespaces {
        sandbox.can_disable = false;
        if sandbox.try_once().is_ok() {
            return (Confinement::Sandbox(sandbox), None);
        }
    }
    let Sandbox { hive, user_namespaces, .. } = sandbox;
    (Confinement::Fence { hive, user_namespaces }, Some(why))
}
