//! Background tasks: their names, and how the last run of each went.
//!
//! A task is known from the first run that it reports. Invariant: a success clears the failures
//! before it, so a status with failures is of a task that fails now.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use hive_core::time::WallTime;

use super::Engine;

/// Sweeps leases and sessions, by the boot clock.
pub const LEASES: &str = "leases";
/// Sweeps questions, reminders, schedules and heartbeats, by the wall clock.
pub const DEADLINES: &str = "deadlines";
/// Reads the operator outbox and starts notifications. A notification that fails is not a failed
/// run: its row stays in the outbox.
pub const OUTBOX: &str = "operator-outbox";
/// Notifies the operator: the last attempt of any item.
pub const NOTIFICATIONS: &str = "notifications";
/// Runs approved actions. An action that fails is not a failed run.
pub const ACTIONS: &str = "actions";
/// Applies the configuration file when it is read again.
pub const CONFIGURATION: &str = "configuration";
/// Deletes settled mail after the retention time.
pub const RETENTION: &str = "retention";
/// Makes backups by their schedule.
pub const BACKUP: &str = "backup";
/// Brings the search index up to date.
pub const SEARCH: &str = "search-index";
/// Exports traces.
pub const TRACES: &str = "traces";
/// Copies the health of the database to the health service.
pub const HEALTH: &str = "health";

/// The result of the last run of a background task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    /// The name of the task, one of the constants above.
    pub name: &'static str,
    /// When its last run ended.
    pub last_run: WallTime,
    /// The number of failed runs since the last success.
    pub failure_count: u32,
    /// Why the last run failed; empty after a success.
    pub error: String,
}

/// The background tasks of a broker.
#[derive(Debug, Default)]
pub struct Background(Mutex<BTreeMap<&'static str, TaskStatus>>);

impl Background {
    /// Returns how many runs have failed since the last success.
    fn report(&self, name: &'static str, now: WallTime, error: Option<String>) -> u32 {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let status = tasks.entry(name).or_insert_with(|| TaskStatus {
            name,
            last_run: now,
            failure_count: 0,
            error: String::new(),
        });
        status.last_run = now;
        status.failure_count =
            if error.is_some() { status.failure_count.saturating_add(1) } else { 0 };
        status.error = error.unwrap_or_default();
        status.failure_count
    }
}

impl Engine {
    /// Notes that a run of the background task succeeded.
    pub fn task_succeeded(&self, name: &'static str) {
        self.background.report(name, self.clock.now().wall, None);
    }

    /// Notes and logs that a run of the background task failed; the task retries by itself.
    pub fn task_failed(&self, name: &'static str, error: &dyn Display) {
        let failures = self.background.report(name, self.clock.now().wall, Some(error.to_string()));
        // A fault may last for hours, and most tasks retry each second.
        if failures.is_power_of_two() {
            tracing::warn!(task = name, failures, %error, "the background task failed; it retries");
        }
    }

    /// Notes that a run failed which is not retried by itself; its caller logs that.
    pub fn task_ended_badly(&self, name: &'static str, error: &dyn Display) {
        self.background.report(name, self.clock.now().wall, Some(error.to_string()));
    }

    /// Returns the status of each background task, by name.
    #[must_use]
    pub fn background_tasks(&self) -> Vec<TaskStatus> {
        let tasks = self.background.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_clears_the_failures_before_it() {
        let background = Background::default();
        for number in 1..=2 {
            background.report(LEASES, WallTime(number), Some("no disk".to_owned()));
        }
        background.report(DEADLINES, WallTime(3), None);
        let of = |background: &Background, name| background.0.lock().expect("whole")[name].clone();
        let failed = TaskStatus {
            name: LEASES,
            last_run: WallTime(2),
            failure_count: 2,
            error: "no disk".to_owned(),
        };
        assert_eq!(of(&background, LEASES), failed);
        background.report(LEASES, WallTime(4), None);
        let well =
            TaskStatus { last_run: WallTime(4), failure_count: 0, error: String::new(), ..failed };
        assert_eq!(of(&background, LEASES), well);
    }
}
