//! A task as text for a model: one line of facts, then the output of the command.

use hive_proto::harness_v1::{Task, TaskState};
use prost_types::{Duration, Timestamp};

use crate::render::{instant, one_line, visible};

/// Maximum output path, in characters.
const PATH_CHARS_MAX: usize = 4096;

/// Returns the task with all of its output, or with the end of it and the path of the rest.
pub(super) fn render(task: &Task) -> String {
    let mut text = facts(task);
    let Task { output_path, output_bytes, kept_bytes, tail, .. } = task;
    let path = one_line(output_path, PATH_CHARS_MAX);
    // Bytes that are not text are shown as characters, which are longer.
    let is_whole = tail.len() as u64 >= *output_bytes;
    if *output_bytes == 0 {
        text.push_str(if is_running(task) { "; no output yet" } else { "; no output" });
        return text;
    }
    text.push_str(&match (is_whole, kept_bytes < output_bytes) {
        (true, _) => ":\n".to_owned(),
        (false, false) => {
            format!("; the end of {output_bytes} bytes of output, all of it in {path}:\n")
        }
        (false, true) => format!(
            "; the end of {output_bytes} bytes of output, the first {kept_bytes} of it in {path}:\n"
        ),
    });
    text.push_str(&visible(tail.trim_end_matches('\n')));
    text
}

fn facts(task: &Task) -> String {
    let Task {
        id,
        exit_code,
        signal,
        start_time,
        end_time,
        timeout,
        process_group,
        leftover_count,
        ..
    } = task;
    let after = || match (start_time, end_time) {
        (Some(start), Some(end)) => format!(" after {}", between(start, end)),
        _ => String::new(),
    };
    let mut text = match task.state() {
        TaskState::Running => {
            let since = start_time
                .as_ref()
                .map(|time| format!(" since {}", instant(time)))
                .unwrap_or_default();
            let at_most = timeout
                .as_ref()
                .map(|timeout| format!(" for at most {}", span(timeout)))
                .unwrap_or_default();
            // The tasks of an isolated agent do not see each other's processes.
            let group = if *process_group == 0 {
                String::new()
            } else {
                format!(" (process group {process_group})")
            };
            format!("Task {id} runs{since}{at_most}{group}; you get mail when it ends")
        }
        TaskState::Exited => format!("Task {id}: exit code {exit_code}{}", after()),
        TaskState::Signaled => format!("Task {id}: ended by signal {signal}{}", after()),
        TaskState::TimedOut => format!("Task {id}: ended{}, because its time was over", after()),
        TaskState::Lost => {
            format!(
                "Task {id}: ended{}, because the harness stopped; run it again if it is still needed",
                after()
            )
        }
        TaskState::Unspecified => format!("Task {id}: in a state that this version does not know"),
    };
    match leftover_count {
        0 => {}
        1 => text.push_str("; a process that it left running was ended"),
        count => text.push_str(&format!("; {count} processes that it left running were ended")),
    }
    text
}

fn is_running(task: &Task) -> bool {
    task.state() == TaskState::Running
}

fn between(start: &Timestamp, end: &Timestamp) -> String {
    let millis = |time: &Timestamp| {
        time.seconds.saturating_mul(1000).saturating_add(i64::from(time.nanos) / 1_000_000)
    };
    let millis = millis(end).saturating_sub(millis(start)).max(0);
    span(&Duration {
        seconds: millis / 1000,
        nanos: i32::try_from(millis % 1000 * 1_000_000).unwrap_or(0),
    })
}

/// Returns a duration as text.
fn span(span: &Duration) -> String {
    match span.seconds {
        ..60 => format!("{}.{} s", span.seconds, span.nanos / 100_000_000),
        60..3600 => format!("{} min {} s", span.seconds / 60, span.seconds % 60),
        _ => format!("{} h {} min", span.seconds / 3600, span.seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: TaskState, tail: &str) -> Task {
        let mut task = Task {
            id: 7,
            start_time: Some(Timestamp { seconds: 1_700_000_000, nanos: 900_000_000 }),
            end_time: Some(Timestamp { seconds: 1_700_000_002, nanos: 100_000_000 }),
            timeout: Some(Duration { seconds: 1800, nanos: 0 }),
            output_path: "/r/tasks/7.out".to_owned(),
            output_bytes: tail.len() as u64,
            kept_bytes: tail.len() as u64,
            tail: tail.to_owned(),
            ..Task::default()
        };
        task.set_state(state);
        task
    }

    #[test]
    fn short_output_is_complete_and_made_visible() {
        assert_eq!(
            render(&task(TaskState::Exited, "a\n\u{1b}[31mb\n")),
            "Task 7: exit code 0 after 1.2 s:\na\n␛[31mb"
        );
        let failed = Task { exit_code: 3, leftover_count: 2, ..task(TaskState::Exited, "") };
        assert_eq!(
            render(&failed),
            "Task 7: exit code 3 after 1.2 s; 2 processes that it left running were ended; no output"
        );
    }

    #[test]
    fn long_output_shows_its_end_and_names_the_file() {
        let long =
            Task { output_bytes: 90_000, kept_bytes: 90_000, ..task(TaskState::TimedOut, "x\n") };
        let head = "Task 7: ended after 1.2 s, because its time was over; the end of 90000 bytes of output, ";
        assert_eq!(render(&long), format!("{head}all of it in /r/tasks/7.out:\nx"));
        let cut = Task { kept_bytes: 80_000, ..long };
        assert_eq!(render(&cut), format!("{head}the first 80000 of it in /r/tasks/7.out:\nx"));
    }

    #[test]
    fn a_running_task_says_how_its_end_is_reported() {
        let running = Task { process_group: 42, end_time: None, ..task(TaskState::Running, "") };
        let text = "Task 7 runs since 2023-11-14T22:13:20Z for at most 30 min 0 s (process group 42); you get mail when it ends; no output yet";
        assert_eq!(render(&running), text);
    }

    #[test]
    fn other_ends_are_sentences() {
        let signaled = Task { signal: 9, ..task(TaskState::Signaled, "") };
        assert_eq!(render(&signaled), "Task 7: ended by signal 9 after 1.2 s; no output");
        assert!(
            render(&task(TaskState::Lost, ""))
                .contains("because the harness stopped; run it again")
        );
    }
}
