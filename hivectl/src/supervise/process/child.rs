//! One child process: started in a separate process group, ended with all its descendants.
//!
//! A terminal's Ctrl-C reaches the foreground group only, so `up` ends its children in its own
//! order. `up` is the reaper of orphans of a child, and kills them. If `up` itself is killed,
//! bubblewrap ends its harness, and the kernel sends SIGTERM to the others.
//!
//! Invariant: a [`Child`] that is dropped is dead, and after [`Registry::kill_all`] all are, and
//! none is started again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{tied, tree};
use crate::output::text::visible_block;
use crate::supervise::process::log::{self, Log};
use crate::supervise::process::start::{Prepared, Start, Watch};

/// Bytes of a log that may contain last words.
const LAST_WORDS_BYTES: i64 = 2_000;
const LAST_WORDS_LINES: usize = 5;
/// Maximum time for killed processes to disappear.
const BURIAL_MAX: Duration = Duration::from_secs(5);
/// Maximum wait until a process may start.
const READY_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) start: Arc<dyn Start>,
    pub(crate) dir: PathBuf,
    pub(crate) log: PathBuf,
    /// Whether its output is read by this program first: that of agents is.
    pub(crate) is_filtered: bool,
    /// Whether it is notified when `up` dies.
    pub(crate) own_death_signal: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Registry {
    pids: Arc<Mutex<BTreeSet<i32>>>,
    closed: CancellationToken,
}

impl Registry {
    /// Makes this process the reaper of everything below it.
    pub(crate) fn new() -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        Ok(Self { pids: Arc::default(), closed: CancellationToken::new() })
    }

    /// Kills every child and its descendants; none is started after that.
    pub(crate) fn kill_all(&self) {
        self.closed.cancel();
        let pids: Vec<i32> = self.lock().iter().copied().collect();
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            kill_tree(pid);
        }
    }

    /// Kills every child, and waits until all are gone, but no longer than a killed process takes.
    pub(crate) async fn bury_all(&self) {
        self.kill_all();
        let bury = tokio::task::spawn_blocking(|| {
            while let Ok(_) | Err(Errno::INTR) = waitpid(None, WaitOptions::empty()) {}
        });
        // A process that the kernel does not end is left to the kernel.
        let _ = timeout(BURIAL_MAX, bury).await;
    }

    /// Returns whether everything was killed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Takes the exit status of dead processes that became our children when their parents ended.
    pub(crate) fn reap(&self) {
        // With the lock, no child of our own is between its start and its entry.
        let known = self.lock();
        for orphan in tree::children(getpid(), &tree::all()) {
            if !known.contains(&orphan.as_raw_nonzero().get()) {
                // A live process is ended with the child that left it behind.
                let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
            }
        }
    }

    /// Kills what dead children left behind: our children that are not registered.
    fn kill_orphans(&self) {
        let known = self.lock().clone();
        let table = tree::all();
        for orphan in tree::children(getpid(), &table) {
            if known.contains(&orphan.as_raw_nonzero().get()) {
                continue;
            }
            kill_tree(orphan);
            // No other caller waits for it. If it still exists, the next call reaps it.
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
    }

    /// Starts a program that inherits these descriptors under their numbers, and no others. Keep
    /// its entry until it has been waited for: without it, the end of any other child would end
    /// this one, too.
    pub(crate) fn spawn(
        &self,
        command: &mut Command,
        inherited: &[OwnedFd],
    ) -> io::Result<(tokio::process::Child, Entry)> {
        // With the lock, no other program is started while they can be inherited.
        let mut known = self.lock();
        let child = spawn_inheriting(command, inherited)?;
        let pid =
            child.id().and_then(|pid| i32::try_from(pid).ok()).ok_or(io::ErrorKind::NotFound)?;
        known.insert(pid);
        drop(known);
        Ok((child, Entry { pid, registry: self.clone() }))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.pids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of a program that runs.
#[derive(Debug)]
pub(crate) struct Entry {
    pid: i32,
    registry: Registry,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.pid);
    }
}

#[derive(Debug)]
pub(crate) struct Child {
    child: tokio::process::Child,
    pid: Pid,
    registry: Registry,
    log: Option<Log>,
    _watch: Option<Watch>,
    ended: bool,
}

impl Child {
    /// Starts a process once it may start, or after [`READY_MAX`].
    pub(crate) async fn start(spec: &Spec, registry: &Registry) -> io::Result<Self> {
        let prepared = spec.start.prepare().map_err(io::Error::other)?;
        let Prepared { program, args, env, inherited, started, ready } = prepared;
        if let Some(ready) = ready {
            // A process that starts too early is refused and started again, and one that never
            // starts would be worse.
            let _ = timeout(READY_MAX, ready).await;
        }
        let file = log::open(&spec.log)?;
        let (output, log) = if spec.is_filtered {
            let (output, log) = Log::start(file)?;
            (output, Some(log))
        } else {
            (file.into(), None)
        };
        let mut command =
            if spec.own_death_signal { tied::command(&program) } else { Command::new(&program) };
        command.args(&args).env_clear().envs(&env).current_dir(&spec.dir);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
        let mut known = registry.lock();
        let child = spawn_inheriting(&mut command, &inherited).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("{} cannot be started: {error}", program.display()),
            )
        })?;
        let pid = child
            .id()
            .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
            .ok_or(io::ErrorKind::NotFound)?;
        known.insert(pid.as_raw_nonzero().get());
        drop(known);
        let watch = child.id().map(started);
        Ok(Self { child, pid, registry: registry.clone(), log, _watch: watch, ended: false })
    }

    /// Waits for its end, then kills the processes that it left.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        if !self.ended {
            self.ended = true;
            self.registry.lock().remove(&self.pid.as_raw_nonzero().get());
            self.registry.kill_orphans();
            if let Some(log) = self.log.take() {
                log.finish().await;
            }
        }
        Ok(status)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Asks the program to end; under bubblewrap the program itself, not bubblewrap.
    pub(crate) fn terminate(&self) {
        let target = tree::inside_bubblewrap(self.pid, &tree::all()).unwrap_or(self.pid);
        // The process may have ended by itself.
        let _ = kill_process(target, Signal::TERM);
    }

    /// Ends it and all below it at once.
    pub(crate) fn kill(&self) {
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
    let below = tree::below(root, &tree::all());
    // The root is last: while it lives, no descendant gets another parent.
    for pid in below.into_iter().rev().chain([root]) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Starts a program that inherits these descriptors. The caller holds the lock of the registry.
fn spawn_inheriting(
    command: &mut Command,
    inherited: &[OwnedFd],
) -> io::Result<tokio::process::Child> {
    let set = |flags: FdFlags| inherited.iter().try_for_each(|fd| fcntl_setfd(fd, flags));
    set(FdFlags::empty())?;
    let child = command.spawn();
    set(FdFlags::CLOEXEC)?;
    child
}

/// Returns the end of a log, to follow a colon; empty if there is none.
pub(crate) fn last_words(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut log = File::open(path)?;
        let length = i64::try_from(log.metadata()?.len()).unwrap_or(i64::MAX);
        log.seek(SeekFrom::End(-length.min(LAST_WORDS_BYTES)))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    last_lines(&read().unwrap_or_default())
}

/// Returns the last lines of a text, to follow a colon; empty if there are none.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_WORDS_LINES)..];
    last.iter().map(|line| format!("\n    {}", visible_block(line))).collect()
}
