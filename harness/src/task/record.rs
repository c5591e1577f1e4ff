//! The record of a task on disk.
//!
//! Invariant: if a record says that its task runs, its harness lives, or died before it could write
//! the end.

use std::time::Duration;

use hive_core::time::WallTime;
use serde_json::{Value, json};

use crate::process::family::Process;
use crate::task::output::Summary;

// The kinds of a task's end in a record.
const EXITED: &str = "TASK_STATE_EXITED";
const SIGNALED: &str = "TASK_STATE_SIGNALED";
const TIMED_OUT: &str = "TASK_STATE_TIMED_OUT";
const LOST: &str = "TASK_STATE_LOST";

/// A task with its end, if it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub id: u64,
    /// The request that started it.
    pub request_id: String,
    pub command: String,
    /// The mark of its processes.
    pub mark: String,
    /// The boot of the host in which it runs.
    pub boot_id: String,
    /// Its first process.
    pub root: Option<Process>,
    /// When it was started.
    pub start_time: WallTime,
    pub timeout: Duration,
    /// The end; `None` while it runs.
    pub end: Option<End>,
    /// Whether the agent was notified of the end.
    pub is_reported: bool,
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub time: WallTime,
    pub how: How,
    /// Number of processes that it left behind, which were ended.
    pub leftover_count: u32,
    pub output: Summary,
}

/// The kind of a task's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By itself, with this code.
    Exited(i32),
    Signaled(i32),
    /// Its timeout expired.
    TimedOut,
    /// With its harness.
    Lost,
}

impl How {
    /// Returns the word in a record, the exit code and the signal.
    fn parts(self) -> (&'static str, i32, i32) {
        match self {
            Self::Exited(code) => (EXITED, code, 0),
            Self::Signaled(signal) => (SIGNALED, 0, signal),
            Self::TimedOut => (TIMED_OUT, 0, 0),
            Self::Lost => (LOST, 0, 0),
        }
    }
}

impl Record {
    /// Returns the text of the record.
    pub fn text(&self) -> String {
        let Self {
            id,
            request_id,
            command,
            mark,
            boot_id,
            root,
            start_time,
            timeout,
            end,
            is_reported,
        } = self;
        let end = end.as_ref().map(|end| {
            let End { time, how, leftover_count, output: Summary { bytes, kept_bytes, tail } } = end;
            let (state, exit_code, signal) = how.parts();
            json!({
                "time": time.0, "state": state, "exit_code": exit_code, "signal": signal,
                "leftover_count": leftover_count, "output_bytes": bytes, "kept_bytes": kept_bytes, "tail": tail,
            })
        });
        let value = json!({
            "id": id, "request_id": request_id, "command": command, "mark": mark, "boot_id": boot_id,
            "pid": root.map(|root| root.pid), "pid_start": root.map(|root| root.start),
            "start_time": start_time.0, "timeout_secs": timeout.as_secs(), "end": end, "told": is_reported,
        });
        format!("{value:#}\n")
    }

    /// Parses a record; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let word = |name: &str| value[name].as_str().map(str::to_owned);
        let root = match (&value["pid"], &value["pid_start"]) {
            (Value::Null, _) => None,
            (pid, start) => Some(Process { pid: number(pid)?, start: start.as_u64()? }),
        };
        let end = &value["end"];
        Some(Self {
            id: value["id"].as_u64()?,
            request_id: word("request_id")?,
            command: word("command")?,
            mark: word("mark")?,
            boot_id: word("boot_id")?,
            root,
            start_time: WallTime(value["start_time"].as_i64()?),
            timeout: Duration::from_secs(value["timeout_secs"].as_u64()?),
            end: if end.is_null() { None } else { Some(parse_end(end)?) },
            is_reported: value["told"].as_bool()?,
        })
    }
}

fn parse_end(end: &Value) -> Option<End> {
    let how = match end["state"].as_str()? {
        EXITED => How::Exited(number(&end["exit_code"])?),
        SIGNALED => How::Signaled(number(&end["signal"])?),
        TIMED_OUT => How::TimedOut,
        LOST => How::Lost,
        _ => return None,
    };
    let output = Summary {
        bytes: end["output_bytes"].as_u64()?,
        kept_bytes: end["kept_bytes"].as_u64()?,
        tail: end["tail"].as_str()?.to_owned(),
    };
    let leftover_count = u32::try_from(end["leftover_count"].as_u64()?).ok()?;
    Some(End { time: WallTime(end["time"].as_i64()?), how, leftover_count, output })
}

fn number(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|number| i32::try_from(number).ok())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn running(id: u64) -> Record {
        Record {
            id,
            request_id: format!("r{id}"),
            command: "echo \"hi\"\n".into(),
            mark: format!("n:{id}"),
            boot_id: "b".into(),
            root: Some(Process { pid: 42, start: 7 }),
            start_time: WallTime(1000),
            timeout: Duration::from_secs(60),
            end: None,
            is_reported: false,
        }
    }

    pub(crate) fn ended(id: u64, how: How, tail: &str) -> Record {
        let bytes = tail.len() as u64;
        let output = Summary { bytes, kept_bytes: bytes, tail: tail.into() };
        Record {
            end: Some(End { time: WallTime(13_400), how, leftover_count: 0, output }),
            ..running(id)
        }
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let all = [
            running(1),
            Record { root: None, is_reported: true, ..running(2) },
            ended(3, How::Exited(3), "a\nü"),
            ended(4, How::Signaled(9), ""),
            ended(5, How::TimedOut, ""),
            ended(6, How::Lost, ""),
        ];
        for record in all {
            assert_eq!(Record::parse(&record.text()), Some(record));
        }
        assert_eq!(Record::parse("{}"), None);
        assert_eq!(Record::parse(&running(1).text()[..50]), None);
    }
}
