//! The table of processes, read from `/proc`, and the descendants of a process in it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;

use super::{Process, all};

/// A process as its line in `/proc` shows it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub process: Process,
    /// The number of its parent.
    pub parent: i32,
    pub group: i32,
    /// Whether it has ended and waits to be reaped.
    pub is_zombie: bool,
}

/// Returns all visible processes.
pub fn snapshot() -> Vec<Entry> {
    all().filter_map(read).collect()
}

/// Returns the descendants of `root`, without spared processes and their descendants.
pub fn below(root: i32, entries: &[Entry], is_spared: impl Fn(&Entry) -> bool) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for entry in entries {
        children.entry(entry.parent).or_default().push(*entry);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in
            children.remove(&pid).unwrap_or_default().into_iter().filter(|child| !is_spared(child))
        {
            open.push(child.process.pid);
            found.push(child);
        }
    }
    found
}

/// Returns the entry of the process that has this number now.
pub fn read(pid: i32) -> Option<Entry> {
    // One read returns the whole line: 52 numbers, and a name of at most 64 bytes.
    let mut line = [0; 2048];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    parse(pid, &String::from_utf8_lossy(line.get(..length)?))
}

/// Returns the environment with which a process was started; an empty one for zombies. Reads it
/// twice. Returns `None` if a live process shows no whole environment, or if the two reads differ:
/// either it has no environment, or it is inside an `exec`, where the kernel has removed the old
/// environment and does not show the new one yet.
pub fn environment(process: Process) -> Option<Vec<u8>> {
    let read_once = || fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    let environment = read_once();
    let is_whole = environment.ends_with(&[0]) && environment == read_once();
    (is_whole || !lives(process)).then_some(environment)
}

/// Returns whether this exact process lives.
pub fn lives(process: Process) -> bool {
    read(process.pid).is_some_and(|entry| entry.process == process && !entry.is_zombie)
}

/// Parses the line of `/proc/PID/stat`. The name in parentheses may contain any character,
/// parentheses too.
fn parse(pid: i32, stat: &str) -> Option<Entry> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // `rest` begins with field 3 of proc_pid_stat(5).
    let field = |number: usize| fields.get(number - 3).copied();
    let process = Process { pid, start: field(22)?.parse().ok()? };
    let (parent, group) = (field(4)?.parse().ok()?, field(5)?.parse().ok()?);
    Some(Entry { process, parent, group, is_zombie: field(3)? == "Z" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// During an `exec`, `/proc` shows no environment or a part of it. In this test that is about
    /// one read in a hundred, and `environment` must recognise it.
    #[test]
    fn an_exec_does_not_make_an_environment_seem_empty() {
        let script = "[ $1 = 0 ] && exit; exec bash -c \"$0\" \"$0\" $(($1 - 1))";
        let mut child = std::process::Command::new("bash");
        let mut child = child
            .args(["-c", script, script, "300"])
            .env("HIVE_TASK", "n:1")
            .spawn()
            .expect("bash starts");
        let process =
            read(i32::try_from(child.id()).expect("a number")).expect("it is there").process;
        let (mut right, mut wrong, mut was_right) = (0_u32, 0_u32, true);
        while child.try_wait().expect("it can be waited for").is_none() {
            let found = environment(process);
            if let Some(found) = found
                && lives(process)
            {
                let is_right = super::super::tasks::mark(&found) == Some("n:1");
                right += u32::from(is_right);
                // If the process is preempted inside an `exec`, both reads of `environment` may
                // agree on the same part of it, many times in a row. Such a series counts once.
                wrong += u32::from(was_right && !is_right);
                was_right = is_right;
            }
        }
        assert!(
            right > 0 && wrong <= 3,
            "{wrong} series of wrong reads in 300 execs, {right} right reads"
        );
    }

    #[test]
    fn names_with_parentheses_are_read() {
        let stat = "42 (a) b (c) Z 7 41 42 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 9911 0 0";
        let entry = parse(42, stat).expect("readable");
        assert_eq!(
            (entry.process, entry.parent, entry.group, entry.is_zombie),
            (Process { pid: 42, start: 9911 }, 7, 41, true)
        );
        assert!(parse(1, "nonsense").is_none());
    }
}
