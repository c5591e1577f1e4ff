//! The message to the agent about tasks that ended while no call waited for them.
//!
//! Invariant: the message stays below [`BODY_BYTES_MAX`] for any number of tasks and any output.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::task::record::{End, How, Record};

/// Longest message, in bytes.
pub const BODY_BYTES_MAX: usize = 8 * 1024;

/// Maximum tasks that are described; of further ones only the ids are named.
const DESCRIBED_MAX: usize = 20;
/// Maximum bytes of a command.
const COMMAND_BYTES_MAX: usize = 160;
/// Maximum lines of the end of an output.
const LINES_MAX: usize = 10;
const LINES_BYTES_MAX: usize = 1500;
/// Shortest useful excerpt of an output.
const LINES_BYTES_MIN: usize = 40;
/// Maximum ids of further tasks.
const IDS_MAX: usize = 50;
/// Bytes for the first line, the last one and the ids.
const FRAME_BYTES: usize = 1200;
/// Longest directory, in bytes.
const DIR_BYTES_MAX: usize = 400;
const INDENT: &str = "    ";

/// Returns the message about these tasks, whose output is in `dir`.
pub fn body(records: &[Record], dir: &Path) -> String {
    let ended: Vec<(&Record, &End)> =
        records.iter().filter_map(|record| Some((record, record.end.as_ref()?))).collect();
    let (described, further) = ended.split_at(ended.len().min(DESCRIBED_MAX));
    let heads: Vec<String> = described.iter().map(|(record, end)| head(record, end)).collect();
    let room = BODY_BYTES_MAX
        - FRAME_BYTES
        - heads.iter().map(String::len).sum::<usize>().min(BODY_BYTES_MAX - FRAME_BYTES);
    let lines_bytes = (room / described.len().max(1)).min(LINES_BYTES_MAX);
    let mut text = match ended.len() {
        1 => "A shell task has ended.\n".to_owned(),
        count => format!("{count} shell tasks have ended.\n"),
    };
    for (head, (_, end)) in heads.iter().zip(described) {
        text.push('\n');
        text.push_str(head);
        text.push_str(&last_lines(&end.output.tail, lines_bytes));
    }
    if !further.is_empty() {
        let ids: Vec<String> =
            further.iter().take(IDS_MAX).map(|(record, _)| record.id.to_string()).collect();
        let and_more = if further.len() > IDS_MAX { ", ..." } else { "" };
        // Writing into a String cannot fail.
        let _ = write!(text, "\nAnd {} more: {}{and_more}\n", further.len(), ids.join(", "));
    }
    text.push_str("\nMore of one: the tool `status` of the server `bash`");
    let dir = dir.to_string_lossy();
    if dir.len() <= DIR_BYTES_MAX {
        let _ = write!(text, ", or its output in {dir}/ID.out");
    }
    text.push('.');
    text
}

fn head(record: &Record, end: &End) -> String {
    let ran = u64::try_from(end.time.0 - record.start_time.0).unwrap_or(0);
    let ran = span(Duration::from_millis(ran));
    let how = match end.how {
        How::Exited(code) => format!("exit code {code} after {ran}"),
        How::Signaled(signal) => format!("ended by signal {signal} after {ran}"),
        How::TimedOut => format!("ended after {ran}, because its time was over"),
        How::Lost => format!("ended after {ran}, because the harness stopped"),
    };
    let left = match end.leftover_count {
        0 => String::new(),
        1 => "; a process that it left running was ended".to_owned(),
        count => format!("; {count} processes that it left running were ended"),
    };
    let nothing = if end.output.bytes == 0 { "; no output" } else { "" };
    format!("Task {}: {}\n{INDENT}{how}{left}{nothing}\n", record.id, one_line(&record.command))
}

fn one_line(command: &str) -> String {
    let mut line = command.trim().replace(['\n', '\r'], " ⏎ ");
    if line.len() > COMMAND_BYTES_MAX {
        line.truncate(line.floor_char_boundary(COMMAND_BYTES_MAX));
        line.push('…');
    }
    line
}

/// Returns the last lines, indented, in at most `bytes_max` bytes.
fn last_lines(tail: &str, bytes_max: usize) -> String {
    let tail = tail.trim_end();
    if tail.is_empty() || bytes_max < LINES_BYTES_MIN {
        return String::new();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut room = bytes_max;
    for line in tail.lines().rev().take(LINES_MAX) {
        let whole = INDENT.len() + "| ".len() + line.len() + 1;
        if whole > room {
            // The last line is included in any case, as far as there is room.
            if lines.is_empty() {
                let start =
                    line.ceil_char_boundary(line.len().saturating_sub(room.saturating_sub(16)));
                lines.push(format!("{INDENT}| …{}\n", &line[start..]));
            }
            break;
        }
        room -= whole;
        lines.push(format!("{INDENT}| {line}\n"));
    }
    lines.reverse();
    lines.concat()
}

/// Formats a duration for people.
pub fn span(span: Duration) -> String {
    let secs = span.as_secs();
    match secs {
        0..60 => format!("{}.{} s", secs, span.subsec_millis() / 100),
        60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        _ => format!("{} h {} min", secs / 3600, secs / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::record::tests::ended;

    #[test]
    fn each_task_is_reported_with_its_last_lines() {
        let mut killed = ended(8, How::Signaled(9), "");
        if let Some(end) = &mut killed.end {
            end.leftover_count = 2;
        }
        let text = body(&[ended(7, How::Exited(1), "a\nb\n"), killed], Path::new("/r/tasks"));
        let expected = "2 shell tasks have ended.\n\nTask 7: echo \"hi\"\n    exit code 1 after 12.4 s\n    | a\n    | b\n\n\
            Task 8: echo \"hi\"\n    ended by signal 9 after 12.4 s; 2 processes that it left running were ended; no output\n\n\
            More of one: the tool `status` of the server `bash`, or its output in /r/tasks/ID.out.";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_message_stays_small_for_any_content() {
        let long = "ü\n".repeat(5000);
        for (count, tail, command) in [
            (1, &long, "x"),
            (300, &long, "ü"),
            (20, &"y".repeat(9000), "\n"),
            (2, &"ü".repeat(9000), "z"),
        ] {
            let records: Vec<Record> = (1..=count)
                .map(|id| Record {
                    command: command.repeat(10_000),
                    ..ended(1_000_000_000 + id, How::TimedOut, tail)
                })
                .collect();
            let text = body(&records, Path::new(&"d".repeat(5000)));
            assert!(text.len() < BODY_BYTES_MAX, "{count}: {}", text.len());
            assert!(text.contains("Task 1000000001: "), "{text}");
        }
    }

    #[test]
    fn spans_are_short() {
        let spans = [1_250, 61_000, 3_720_000].map(|ms| span(Duration::from_millis(ms)));
        assert_eq!(spans, ["1.2 s", "1 min 1 s", "1 h 2 min"]);
    }
}
