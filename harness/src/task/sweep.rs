//! Search and end of all processes of a task.
//!
//! Invariant: only processes that certainly belong to the task are ended: its first process, its
//! process group while no other can have that number, processes with its mark, and descendants of
//! those.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::time::Instant;

use crate::process::family::table::{Entry, below, environment, snapshot};
use crate::process::family::{Process, tasks};

/// The pause between two rounds.
const ROUND: Duration = Duration::from_millis(10);
/// Maximum rounds that wait for killed processes.
const KILL_ROUNDS_MAX: u32 = 300;

/// A task whose processes are searched.
#[derive(Clone, Copy, Debug)]
pub struct TaskProcesses<'a> {
    pub mark: &'a str,
    /// Its first process, if that is known for this boot of the host.
    pub root: Option<Process>,
    /// Whether the first process was not reaped yet, so that no other can have its number.
    pub is_held: bool,
    /// Whether the first process and its children are those of a sandbox around the task. They are
    /// not asked to end, because the others would end with them at once; and they are not counted.
    pub is_sandboxed: bool,
}

impl TaskProcesses<'_> {
    /// Ends all processes of the task: sends SIGTERM first, and kills those that remain after
    /// `grace`. Returns the number of processes besides the first, and besides those of a sandbox.
    pub async fn end(&self, grace: Duration) -> u32 {
        let (mut met, mut around) = (HashSet::new(), HashSet::from_iter(self.root));
        let asked = Instant::now();
        let mut signal = Signal::TERM;
        let mut kills = 0;
        loop {
            let entries = snapshot();
            // A process during an `exec` may belong to another task; it is a leftover when the turn
            // ends.
            let mut living =
                self.living(&entries, |process| environment(process).unwrap_or_default());
            let is_around = |entry: &Entry| self.is_around(entry);
            around
                .extend(living.iter().filter(|entry| is_around(entry)).map(|entry| entry.process));
            if signal == Signal::TERM {
                living.retain(|entry| !is_around(entry));
            }
            for entry in &living {
                // A process is asked once, and killed until it is gone.
                if met.insert(entry.process) || signal == Signal::KILL {
                    send(entry.process, signal);
                }
            }
            reap(&entries, &met, self.root);
            if living.is_empty() {
                break;
            }
            if signal == Signal::KILL {
                kills += 1;
                if kills > KILL_ROUNDS_MAX {
                    tracing::error!(
                        mark = self.mark,
                        left = living.len(),
                        "processes of a task cannot be ended"
                    );
                    break;
                }
            } else if asked.elapsed() >= grace {
                signal = Signal::KILL;
                continue;
            }
            tokio::time::sleep(ROUND).await;
        }
        u32::try_from(met.difference(&around).count()).unwrap_or(u32::MAX)
    }

    /// Returns whether it belongs to the sandbox around the task: the first process and its child,
    /// which is process 1 inside.
    fn is_around(&self, entry: &Entry) -> bool {
        self.is_sandboxed
            && self.root.is_some_and(|root| entry.process == root || entry.parent == root.pid)
    }

    /// Returns the live processes of the task.
    fn living(&self, entries: &[Entry], environment: impl Fn(Process) -> Vec<u8>) -> Vec<Entry> {
        let own = rustix::process::getpid().as_raw_pid();
        let since = self.root.map_or(0, |root| root.start);
        let candidates = || {
            entries.iter().filter(|entry| entry.process.pid != own && entry.process.start >= since)
        };
        let is_marked = |entry: &Entry| tasks::mark(&environment(entry.process)) == Some(self.mark);
        let mut found: Vec<Entry> = candidates()
            .filter(|entry| Some(entry.process) == self.root || is_marked(entry))
            .copied()
            .collect();
        if let Some(root) = self.root {
            // While a process of the task is in the group, or its leader is not reaped, no other
            // group can have this number.
            if self.is_held || found.iter().any(|entry| entry.group == root.pid) {
                found.extend(candidates().filter(|entry| entry.group == root.pid));
            }
        }
        let further: Vec<Entry> =
            found.iter().flat_map(|entry| below(entry.process.pid, entries, |_| false)).collect();
        found.extend(further);
        let mut seen = HashSet::new();
        found.retain(|entry| {
            entry.process.pid != own && !entry.is_zombie && seen.insert(entry.process)
        });
        found
    }
}

fn send(process: Process, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process.pid) {
        // The process may have ended by now.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Reaps processes that became our children when they lost their parents. The starter of the first
/// process waits for that one.
fn reap(entries: &[Entry], met: &HashSet<Process>, root: Option<Process>) {
    let own = rustix::process::getpid().as_raw_pid();
    let dead = entries
        .iter()
        .filter(|entry| entry.is_zombie && entry.parent == own && met.contains(&entry.process));
    for entry in dead.filter(|entry| Some(entry.process) != root) {
        if let Some(pid) = Pid::from_raw(entry.process.pid) {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: i32, parent: i32, group: i32) -> Entry {
        Entry { process: Process { pid, start: 10 }, parent, group, is_zombie: false }
    }

    fn pids(processes: &TaskProcesses<'_>, entries: &[Entry], marked: &[i32]) -> Vec<i32> {
        let environment = |process: Process| {
            if marked.contains(&process.pid) {
                b"HIVE_TASK=n:1\0".to_vec()
            } else {
                b"HIVE_TASK=n:2\0".to_vec()
            }
        };
        let mut pids: Vec<i32> =
            processes.living(entries, environment).iter().map(|entry| entry.process.pid).collect();
        pids.sort_unstable();
        pids
    }

    // Numbers that no process has, so that the test's own is not among them.
    const A: i32 = 2_000_000_000;

    fn of_task(is_held: bool) -> TaskProcesses<'static> {
        let root = Some(Process { pid: A, start: 10 });
        TaskProcesses { mark: "n:1", root, is_held, is_sandboxed: false }
    }

    #[test]
    fn group_mark_and_descent_make_a_process_the_tasks() {
        let entries = [(0, 1, 0), (1, 1, 0), (2, 1, 2), (3, A + 2, 3), (4, 1, 4)]
            .map(|(pid, parent, group)| entry(A + pid, parent, A + group));
        let processes = of_task(true);
        assert_eq!(pids(&processes, &entries, &[A + 2]), [A, A + 1, A + 2, A + 3]);
        assert_eq!(pids(&processes, &entries, &[]), [A, A + 1]);
    }

    #[test]
    fn a_reused_process_number_is_spared() {
        let later = Entry { process: Process { pid: A, start: 11 }, ..entry(A, 1, A) };
        let entries = [later, entry(A + 1, A, A)];
        let processes = of_task(false);
        assert!(pids(&processes, &entries, &[]).is_empty());
        // Another group would have another number while this process is in it.
        assert_eq!(pids(&processes, &entries, &[A + 1]), [A, A + 1]);
        let unknown = TaskProcesses { root: None, ..processes };
        assert!(pids(&unknown, &entries, &[]).is_empty());
    }

    #[test]
    fn processes_from_before_the_task_do_not_count() {
        let early = Entry { process: Process { pid: A + 1, start: 9 }, ..entry(A + 1, 1, A + 1) };
        let processes = of_task(false);
        assert!(pids(&processes, &[early], &[A + 1]).is_empty());
    }
}
