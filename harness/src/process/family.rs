//! The processes below this one, as `/proc` shows them.
//!
//! Invariant: what was there when the harness started is somebody else's and is never touched.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};

/// How often the leftovers of a turn are looked for before giving up.
const ROUNDS_MAX: u32 = 400;
/// The rest between two looks.
const ROUND: Duration = Duration::from_millis(5);

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it started, in the kernel's ticks.
    pub start: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    process: Process,
    parent: i32,
    is_zombie: bool,
}

/// The harness's processes, less those that were there before.
#[derive(Clone, Debug)]
pub struct Family {
    own: i32,
    before: HashSet<Process>,
}

impl Family {
    /// Becomes the subreaper, and remembers which processes are not ours to end.
    pub fn found() -> std::io::Result<Self> {
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own))?;
        let own = own.as_raw_pid();
        let before = below(own, &HashSet::new(), &snapshot()).into_iter().map(|entry| entry.process).collect();
        Ok(Self { own, before })
    }

    /// Kills and reaps everything below us, until nothing is left; the number of processes that could not be ended.
    pub async fn end_all(&self) -> usize {
        for _ in 0..ROUNDS_MAX {
            let left = below(self.own, &self.before, &snapshot());
            if left.is_empty() {
                return 0;
            }
            for entry in &left {
                self.end(entry);
            }
            tokio::time::sleep(ROUND).await;
        }
        below(self.own, &self.before, &snapshot()).len()
    }

    fn end(&self, entry: &Entry) {
        let Some(pid) = Pid::from_raw(entry.process.pid) else { return };
        if !entry.is_zombie {
            // It may be gone by now.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        if entry.parent == self.own {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// This very process.
#[must_use]
pub fn this() -> Option<Process> {
    look(rustix::process::getpid().as_raw_pid())
}

/// Whether this very process lives.
#[must_use]
pub fn is_alive(process: Process) -> bool {
    read(process.pid).is_some_and(|entry| entry.process == process && !entry.is_zombie)
}

/// The process with this number now.
#[must_use]
pub fn look(pid: i32) -> Option<Process> {
    read(pid).map(|entry| entry.process)
}

/// The numbers of all processes.
pub fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn snapshot() -> Vec<Entry> {
    all().filter_map(read).collect()
}

/// Everything below `root`, without the processes in `without` and what is below those.
fn below(root: i32, without: &HashSet<Process>, entries: &[Entry]) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for entry in entries.iter().filter(|entry| !without.contains(&entry.process)) {
        children.entry(entry.parent).or_default().push(*entry);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            open.push(child.process.pid);
            found.push(child);
        }
    }
    found
}

fn read(pid: i32) -> Option<Entry> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &stat)
}

/// The line of `/proc/PID/stat`. The name in parentheses may contain anything, parentheses too.
fn parse(pid: i32, stat: &str) -> Option<Entry> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first field here is the third of the manual page.
    let field = |number: usize| fields.get(number - 3).copied();
    let process = Process { pid, start: field(22)?.parse().ok()? };
    Some(Entry { process, parent: field(4)?.parse().ok()?, is_zombie: field(3)? == "Z" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_are_read() {
        let stat = "42 (a) b (c) Z 7 42 42 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 9911 0 0";
        let entry = parse(42, stat).expect("readable");
        assert_eq!((entry.process, entry.parent, entry.is_zombie), (Process { pid: 42, start: 9911 }, 7, true));
        assert!(parse(1, "nonsense").is_none());
    }

    #[test]
    fn what_was_there_before_and_below_it_is_left_alone() {
        let entry = |pid, parent| Entry { process: Process { pid, start: 1 }, parent, is_zombie: false };
        let entries = [entry(2, 1), entry(3, 2), entry(4, 1), entry(5, 4), entry(9, 8)];
        let without = HashSet::from([Process { pid: 2, start: 1 }]);
        let mut pids: Vec<i32> = below(1, &without, &entries).iter().map(|entry| entry.process.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [4, 5]);
    }

    #[test]
    fn this_process_is_alive_and_another_start_is_not() {
        let this = this().expect("proc is there");
        assert!(is_alive(this));
        assert!(!is_alive(Process { start: this.start + 1, ..this }));
    }
}
