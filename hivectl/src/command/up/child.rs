//! One child process: started in a process group of its own, ended with everything below it.
//!
//! A terminal's Ctrl-C reaches the foreground group only, so children end when `up` says so, in its order. `up` is the reaper of what a
//! child leaves behind, and kills that. If `up` itself is killed, bubblewrap ends its harness, and `setpriv`, where the host has it, has
//! the others told by SIGTERM.
//!
//! Invariant: a [`Child`] that is dropped is dead, and after [`Registry::kill_all`] all are, and none is started again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::binaries::on_path;
use super::environment::Env;
use super::process_tree;
use crate::output::text::visible_block;

/// Bytes of a log that are looked at for last words.
const LAST_WORDS_BYTES: i64 = 2_000;
/// Lines of it that are told.
const LAST_WORDS_LINES: usize = 5;
/// A log that is longer when `up` starts a process begins anew.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What to start.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    /// How it is called when spoken of.
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Env,
    pub(super) dir: PathBuf,
    /// Where its output goes.
    pub(super) log: PathBuf,
    /// Whether it is to be told when `up` dies.
    pub(super) own_death_signal: bool,
}

/// All children that are alive.
#[derive(Clone, Debug)]
pub(super) struct Registry {
    pids: Arc<Mutex<BTreeSet<i32>>>,
    closed: CancellationToken,
}

impl Registry {
    /// Makes this process the reaper of everything below it.
    pub(super) fn new() -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        Ok(Self { pids: Arc::default(), closed: CancellationToken::new() })
    }

    /// Kills every child, and all below them; none is started any more.
    pub(super) fn kill_all(&self) {
        self.closed.cancel();
        let pids: Vec<i32> = self.lock().iter().copied().collect();
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            kill_tree(pid);
        }
    }

    /// Whether everything was killed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Takes the exit status of dead processes that became our children when their parents ended.
    pub(super) fn reap(&self) {
        // With the lock, no child of our own is between its start and its entry.
        let known = self.lock();
        for orphan in process_tree::children(getpid(), &process_tree::all()) {
            if !known.contains(&orphan.as_raw_nonzero().get()) {
                // One that lives is ended with the child that left it behind.
                let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
            }
        }
    }

    /// Kills what dead children left behind: our children that are not registered.
    fn kill_orphans(&self) {
        let known = self.lock().clone();
        let table = process_tree::all();
        for orphan in process_tree::children(getpid(), &table) {
            if known.contains(&orphan.as_raw_nonzero().get()) {
                continue;
            }
            kill_tree(orphan);
            // Nobody else waits for it. Where it is not gone yet, the next time is early enough.
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.pids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running child.
#[derive(Debug)]
pub(super) struct Child {
    child: tokio::process::Child,
    pid: Pid,
    registry: Registry,
    ended: bool,
}

impl Child {
    pub(super) fn start(spec: &Spec, registry: &Registry) -> io::Result<Self> {
        let log = open_log(&spec.log)?;
        let mut command = match on_path("setpriv").filter(|_| spec.own_death_signal) {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "TERM", "--"]).arg(&spec.program);
                command
            }
            None => Command::new(&spec.program),
        };
        command.args(&spec.args).env_clear().envs(&spec.env).current_dir(&spec.dir);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let mut known = registry.lock();
        let child = command.spawn()?;
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).ok_or(io::ErrorKind::NotFound)?;
        known.insert(pid.as_raw_nonzero().get());
        drop(known);
        Ok(Self { child, pid, registry: registry.clone(), ended: false })
    }

    /// Waits for its end; what it left behind is killed.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        if !self.ended {
            self.ended = true;
            self.registry.lock().remove(&self.pid.as_raw_nonzero().get());
            self.registry.kill_orphans();
        }
        Ok(status)
    }

    /// The process.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Asks the program to end; under bubblewrap the program itself, not bubblewrap.
    pub(super) fn terminate(&self) {
        let target = process_tree::inside_bubblewrap(self.pid, &process_tree::all()).unwrap_or(self.pid);
        // It may have ended by itself.
        let _ = kill_process(target, Signal::TERM);
    }

    /// Ends it and all below it at once.
    pub(super) fn kill(&self) {
        if !self.ended {
            kill_tree(self.pid);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

fn kill_tree(root: Pid) {
    let below = process_tree::below(root, &process_tree::all());
    // The root last: while it lives, nobody below it gets another parent.
    for pid in below.into_iter().rev().chain([root]) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    if log.metadata()?.len() > LOG_BYTES_MAX {
        log.set_len(0)?;
    }
    Ok(log)
}

/// The end of a log, to be told after a colon; empty if there is none.
pub(super) fn last_words(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut log = File::open(path)?;
        let length = i64::try_from(log.metadata()?.len()).unwrap_or(i64::MAX);
        log.seek(SeekFrom::End(-length.min(LAST_WORDS_BYTES)))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_WORDS_LINES)..];
    last.iter().map(|line| format!("\n    {}", visible_block(line))).collect()
}
