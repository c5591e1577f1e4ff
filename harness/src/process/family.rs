//! The processes below this one, as `/proc` shows them.
//!
//! Invariants: a process that existed when the harness started is never touched. The task's
//! supervisor alone ends the processes of a running shell task. The service that started a server
//! for `hive confine` ends that server.

pub mod servers;
pub mod table;
pub mod tasks;

use std::cell::Cell;
use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, waitid};

use self::servers::{Servers, Serving};
pub use self::table::lives as is_alive;
use self::table::{Entry, below, read, snapshot};
use self::tasks::{Running, Tasks};

/// Maximum rounds of a search for the leftovers of a turn.
const ROUNDS_MAX: u32 = 400;
/// Maximum rounds in which a process without an environment is spared while tasks run: it may be a
/// task's process during an `exec`.
const UNCLEAR_ROUNDS_MAX: u32 = 40;
/// The pause between two rounds.
const ROUND: Duration = Duration::from_millis(5);

/// A process, distinct from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: i32,
    /// When it started, in the kernel's ticks.
    pub start: u64,
}

/// The harness's processes, without those that existed before.
#[derive(Clone, Debug)]
pub struct Family {
    own: i32,
    before: HashSet<Process>,
    tasks: Tasks,
    servers: Servers,
}

impl Family {
    /// Becomes the subreaper, and remembers the processes that existed before.
    pub fn found() -> std::io::Result<Self> {
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own))?;
        let own = own.as_raw_pid();
        let before =
            below(own, &snapshot(), |_| false).into_iter().map(|entry| entry.process).collect();
        Ok(Self { own, before, tasks: Tasks::default(), servers: Servers::default() })
    }

    /// Returns the list of running shell tasks, for their supervisor.
    pub fn tasks(&self) -> Tasks {
        self.tasks.clone()
    }

    /// Returns the list of running MCP servers that are not children of claude's, for the service
    /// that starts them.
    pub fn servers(&self) -> Servers {
        self.servers.clone()
    }

    /// Kills and reaps all descendants but running tasks, until none is left; returns the number of
    /// processes that could not be ended.
    pub async fn end_all(&self) -> usize {
        self.end_strays(&[]).await
    }

    /// Like [`Family::end_all`], but spares these processes and their descendants. They are not
    /// reaped either: their starter waits for them.
    pub async fn end_strays(&self, keep: &[Pid]) -> usize {
        let keep: HashSet<i32> = keep.iter().map(|pid| pid.as_raw_pid()).collect();
        for round in 0..ROUNDS_MAX {
            if self
                .round(&keep, round < UNCLEAR_ROUNDS_MAX, |entry, serving| self.end(entry, serving))
                == 0
            {
                return 0;
            }
            tokio::time::sleep(ROUND).await;
        }
        self.round(&keep, false, |_, _| {})
    }

    /// Runs one round, during which no task can start: a task that is not on the list yet would
    /// count as a leftover of the turn. Returns the number of leftovers. Processes whose owner is
    /// unclear count, and are spared, if `is_patient`.
    fn round(
        &self,
        keep: &HashSet<i32>,
        is_patient: bool,
        end: impl Fn(&Entry, &Serving),
    ) -> usize {
        let search = |running: &Running, serving: &Serving| {
            let unclear = Cell::new(0);
            let left = below(self.own, &snapshot(), |entry| {
                self.is_spared(entry, keep, running, serving).unwrap_or_else(|| {
                    unclear.set(unclear.get() + usize::from(is_patient));
                    is_patient
                })
            });
            left.iter().for_each(|entry| end(entry, serving));
            left.len() + unclear.get()
        };
        self.tasks.inspect(|running| {
            // Whatever is below this process is below a child of it, because orphans become its
            // children. Most turns leave nothing, and a busy host has many processes.
            if has_children() {
                self.servers.inspect(|serving| search(running, serving))
            } else {
                0
            }
        })
    }

    /// Returns whether the process has another owner; `None` if that cannot be determined now.
    fn is_spared(
        &self,
        entry: &Entry,
        keep: &HashSet<i32>,
        running: &Running,
        serving: &Serving,
    ) -> Option<bool> {
        let is_kept = self.before.contains(&entry.process) || keep.contains(&entry.process.pid);
        if is_kept || serving.spares(entry, table::lives) {
            return Some(true);
        }
        running.owns(entry, table::environment)
    }

    fn end(&self, entry: &Entry, serving: &Serving) {
        // The service ends it as soon as it sees that the client is gone, and waits for it.
        if serving.has(entry.process) {
            return;
        }
        let Some(pid) = Pid::from_raw(entry.process.pid) else { return };
        if !entry.is_zombie {
            // The process may have ended by now.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        if entry.parent == self.own {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Returns whether this process has children, ended ones that were not waited for included.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

pub fn this() -> Option<Process> {
    find(rustix::process::getpid().as_raw_pid())
}

/// Returns the process that has this number now.
pub fn find(pid: i32) -> Option<Process> {
    read(pid).map(|entry| entry.process)
}

/// Returns the numbers of all processes.
pub fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: i32, parent: i32) -> Entry {
        Entry { process: Process { pid, start: 1 }, parent, group: pid, is_zombie: false }
    }

    fn family(before: HashSet<Process>) -> Family {
        Family { own: 1, before, tasks: Tasks::default(), servers: Servers::default() }
    }

    fn left(family: &Family, entries: &[Entry], keep: &[i32]) -> Vec<i32> {
        let keep = keep.iter().copied().collect();
        let mut pids: Vec<i32> = family.tasks.inspect(|running| {
            let left = below(family.own, entries, |entry| {
                family.is_spared(entry, &keep, running, &Serving::default()) == Some(true)
            });
            left.iter().map(|entry| entry.process.pid).collect()
        });
        pids.sort_unstable();
        pids
    }

    #[test]
    fn earlier_and_kept_processes_and_those_below_them_are_spared() {
        let family = family(HashSet::from([Process { pid: 2, start: 1 }]));
        let entries = [(2, 1), (3, 2), (4, 1), (5, 4), (6, 1), (7, 6), (9, 8)]
            .map(|(pid, parent)| entry(pid, parent));
        assert_eq!(left(&family, &entries, &[]), [4, 5, 6, 7]);
        assert_eq!(left(&family, &entries, &[6]), [4, 5]);
    }

    #[test]
    fn running_tasks_are_left_alone_and_ended_ones_are_not() {
        let family = family(HashSet::new());
        // 5 has left the tree of 4, but not its group.
        let entries = [entry(4, 1), Entry { group: 4, ..entry(5, 1) }, entry(6, 4), entry(7, 1)];
        let task = family
            .tasks
            .enter("n:1", || Ok::<_, ()>(((), Some(Process { pid: 4, start: 1 }))))
            .expect("entered")
            .0;
        assert_eq!(left(&family, &entries, &[]), [7]);
        drop(task);
        assert_eq!(left(&family, &entries, &[]), [4, 5, 6, 7]);
    }

    #[test]
    fn this_process_is_alive_and_another_start_is_not() {
        let this = this().expect("proc is there");
        assert!(is_alive(this));
        assert!(!is_alive(Process { start: this.start + 1, ..this }));
    }
}
