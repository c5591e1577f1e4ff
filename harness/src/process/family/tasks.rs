//! The list of running shell tasks: the descendants of this process that belong to them.
//!
//! A task is identified by its first process and by its mark, a word in the environment that all
//! its processes inherit. A process is the task's if it is below the first one, in its process
//! group, or carries the mark.
//!
//! Invariant: a task is on the list before its process is visible, and until all its processes are
//! gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Process;
use super::table::Entry;

/// The environment variable that carries the mark.
pub const MARK_ENV: &str = "HIVE_TASK";

/// The running tasks, shared between their supervisor and the search for leftovers of turns.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Mutex<Running>>);

/// The running tasks by their mark, with their first process if it is known.
#[derive(Debug, Default)]
pub struct Running(HashMap<String, Option<Process>>);

impl Tasks {
    /// Starts a task under its mark. No round runs in the meantime.
    pub fn enter<T, E>(
        &self,
        mark: &str,
        start: impl FnOnce() -> Result<(T, Option<Process>), E>,
    ) -> Result<(Entered, T), E> {
        let mut running = self.lock();
        let (started, root) = start()?;
        running.0.insert(mark.to_owned(), root);
        Ok((Entered { tasks: self.clone(), mark: mark.to_owned() }, started))
    }

    /// Calls `inspect` on the list while no task can start.
    pub fn inspect<T>(&self, inspect: impl FnOnce(&Running) -> T) -> T {
        inspect(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Returns whether a process is a running task's; `None` if its environment cannot be read yet.
    /// The descendants of a task's process need no check.
    pub fn owns(
        &self,
        entry: &Entry,
        environment: impl FnOnce(Process) -> Option<Vec<u8>>,
    ) -> Option<bool> {
        if self.0.is_empty() {
            return Some(false);
        }
        let mut roots = self.0.values().flatten();
        if roots.any(|root| *root == entry.process || root.pid == entry.group) {
            return Some(true);
        }
        environment(entry.process)
            .map(|found| mark(&found).is_some_and(|mark| self.0.contains_key(mark)))
    }
}

pub fn mark(environment: &[u8]) -> Option<&str> {
    let line = environment
        .split(|byte| *byte == 0)
        .find_map(|line| line.strip_prefix(MARK_ENV.as_bytes())?.strip_prefix(b"="));
    line.and_then(|mark| std::str::from_utf8(mark).ok())
}

/// An entry of the list; it is removed when this is dropped.
#[derive(Debug)]
pub struct Entered {
    tasks: Tasks,
    mark: String,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.tasks.lock().0.remove(&self.mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_counts_and_nothing_that_looks_like_it() {
        let tasks = Tasks::default();
        let stray =
            Entry { process: Process { pid: 9, start: 5 }, parent: 1, group: 9, is_zombie: false };
        let owned = |environment: Option<&[u8]>| {
            tasks.inspect(|running| running.owns(&stray, |_| environment.map(<[u8]>::to_vec)))
        };
        let owns = |environment: &[u8]| owned(Some(environment)) == Some(true);
        assert!(!owns(b"HIVE_TASK=n:1\0"));
        assert_eq!(owned(None), Some(false), "no task runs");
        let task = tasks.enter("n:1", || Ok::<_, ()>(((), None))).expect("entered").0;
        assert!(owns(b"PATH=/bin\0HIVE_TASK=n:1\0A=b\0"));
        for other in [
            &b"HIVE_TASK=n:2\0"[..],
            b"HIVE_TASK=n:11\0",
            b"XHIVE_TASK=n:1\0",
            b"HIVE_TASKS=n:1\0",
            b"X=HIVE_TASK=n:1\0",
            b"",
        ] {
            assert!(!owns(other), "{}", String::from_utf8_lossy(other));
        }
        assert_eq!(owned(None), None, "it may be the task's");
        drop(task);
        assert!(!owns(b"HIVE_TASK=n:1\0"));
    }

    #[test]
    fn a_task_that_does_not_start_is_not_listed() {
        let tasks = Tasks::default();
        assert_eq!(
            tasks.enter("n:1", || Err::<((), Option<Process>), _>("no bash")).err(),
            Some("no bash")
        );
        assert!(tasks.inspect(|running| running.0.is_empty()));
    }
}
