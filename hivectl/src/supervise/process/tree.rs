//! The host's process table, as far as it concerns our own children.

use std::collections::BTreeMap;

use rustix::process::Pid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    parent: i32,
    name: String,
}

/// Returns all processes that can be seen now.
pub(crate) fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    // A process may end while it is read.
    pids.filter_map(|pid| parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// Parses a line of `/proc/PID/stat`: `pid (name) state parent ...`; the name may have blanks and
/// brackets.
fn parse(stat: &str) -> Option<Process> {
    let (before, after) = stat.rsplit_once(')')?;
    let (pid, name) = before.split_once(" (")?;
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    Some(Process { pid: Pid::from_raw(pid.parse().ok()?)?, parent, name: name.to_owned() })
}

/// Everything below a process, parents before children.
pub(crate) fn below(root: Pid, processes: &[Process]) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<Pid>> = BTreeMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process.pid);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        let here = children.remove(&pid.as_raw_nonzero().get()).unwrap_or_default();
        found.extend(&here);
        open.extend(here);
    }
    found
}

pub(crate) fn children(parent: Pid, processes: &[Process]) -> Vec<Pid> {
    processes
        .iter()
        .filter(|process| process.parent == parent.as_raw_nonzero().get())
        .map(|process| process.pid)
        .collect()
}

/// The program that bubblewrap runs: bubblewrap itself neither passes signals on nor survives them.
pub(crate) fn inside_bubblewrap(outer: Pid, processes: &[Process]) -> Option<Pid> {
    let mut here = outer;
    loop {
        let process = processes.iter().find(|process| process.pid == here)?;
        if process.name != "bwrap" {
            return Some(here);
        }
        here = processes.iter().find(|child| child.parent == here.as_raw_nonzero().get())?.pid;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, name: &str) -> Process {
        Process { pid: Pid::from_raw(pid).expect("not 0"), parent, name: name.to_owned() }
    }

    #[test]
    fn names_with_brackets_are_read() {
        assert_eq!(parse("12 (a) (b c)) S 7 1 1 0"), Some(process(12, 7, "a) (b c)")));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn the_tree_is_walked_down() {
        let table = [
            process(1, 0, "init"),
            process(5, 1, "bwrap"),
            process(6, 5, "bwrap"),
            process(7, 6, "hive"),
            process(8, 7, "claude"),
        ];
        let pids = |pids: Vec<Pid>| {
            pids.into_iter().map(|pid| pid.as_raw_nonzero().get()).collect::<Vec<_>>()
        };
        let outer = table[1].pid;
        assert_eq!(pids(below(outer, &table)), [6, 7, 8]);
        assert_eq!(pids(children(outer, &table)), [6]);
        assert_eq!(inside_bubblewrap(outer, &table), Some(table[3].pid));
        assert_eq!(inside_bubblewrap(outer, &table[..3]), None);
        assert_eq!(inside_bubblewrap(table[3].pid, &table), Some(table[3].pid));
    }

    #[test]
    fn this_process_is_seen() {
        let own = rustix::process::getpid();
        assert!(all().iter().any(|process| process.pid == own));
    }
}
