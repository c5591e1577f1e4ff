//! Answers to requests for logs, which agents make of the launcher through the broker.
//!
//! - `journal`: the journal of the host; `tail`: the end of a file
//!
//! Invariants: a request names an agent or a unit, and never a path or an option. Each request is
//! answered, and none keeps another one waiting.

mod journal;
mod tail;

use std::path::PathBuf;
use std::sync::Arc;

use hive_core::name::AgentName;
use hive_proto::connect::connect;
use hive_proto::v1::launcher_service_client::LauncherServiceClient;
use hive_proto::v1::logs_wanted::Source;
use hive_proto::v1::{AnswerLogsRequest, JournalOfUnit, LogsWanted};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use crate::supervise::process::child::Registry;
use crate::supervise::setup::plan::Plan;

/// Maximum bytes of an answer.
const BYTES_MAX: usize = 64 * 1024;

/// The end of a log.
#[derive(Debug, Default, PartialEq, Eq)]
struct End {
    text: String,
    /// Whether lines that were wanted are left out because of the limit of bytes.
    truncated: bool,
}

/// Returns the last lines of the end of a log. `is_whole`: whether the log has no byte before.
fn last_lines(bytes: &[u8], is_whole: bool, lines: u32) -> End {
    let text = String::from_utf8_lossy(bytes);
    // The first line may have begun before.
    let text = match text.split_once('\n') {
        Some((_, rest)) if !is_whole => rest,
        Some(_) | None => text.as_ref(),
    };
    let all: Vec<&str> = text.lines().collect();
    let last = &all[all.len().saturating_sub(lines as usize)..];
    let truncated = !is_whole && last.len() < lines as usize;
    End { text: last.iter().map(|line| format!("{line}\n")).collect(), truncated }
}

/// Where the output of the harnesses of a launcher goes.
#[derive(Clone, Debug)]
pub(crate) enum Harnesses {
    /// To files of `hivectl up`, which also ends each process that is not in its registry.
    Files(Arc<Plan>, Registry),
    /// To the journal, under these names of units.
    Units(fn(&AgentName) -> String),
}

/// Answers requests, until it is aborted.
pub(crate) async fn run(
    socket: PathBuf,
    harnesses: Harnesses,
    mut wanted: UnboundedReceiver<LogsWanted>,
) {
    let mut answers = JoinSet::new();
    loop {
        tokio::select! {
            Some(request) = wanted.recv() => {
                answers.spawn(answer(socket.clone(), harnesses.clone(), request));
            }
            Some(_) = answers.join_next() => {}
            else => return,
        }
    }
}

async fn answer(socket: PathBuf, harnesses: Harnesses, request: LogsWanted) {
    let LogsWanted { id, source, lines } = request;
    let registry = match &harnesses {
        Harnesses::Files(_, registry) => Some(registry),
        Harnesses::Units(_) => None,
    };
    let read = match source {
        Some(Source::Agent(name)) => match (AgentName::parse(&name), &harnesses) {
            (Ok(name), Harnesses::Files(plan, _)) => {
                of_file(plan.log_file(name.as_str()), lines).await
            }
            (Ok(name), Harnesses::Units(unit)) => {
                journal::read(registry, &unit(&name), None, lines).await
            }
            (Err(_), _) => Err("there can be no agent of that name".to_owned()),
        },
        Some(Source::Journal(JournalOfUnit { unit, since })) => {
            journal::read(registry, &unit, since.map(|since| since.seconds), lines).await
        }
        None => Err("this launcher does not know what is wanted".to_owned()),
    };
    let (End { text, truncated }, problem) = match read {
        Ok(end) => (end, String::new()),
        Err(problem) => (End::default(), problem),
    };
    let answer = AnswerLogsRequest { id, text, truncated, problem };
    // Without the broker nothing waits for it.
    if let Ok(channel) = connect(&socket).await {
        drop(LauncherServiceClient::new(channel).answer_logs(answer).await);
    }
}

async fn of_file(path: PathBuf, lines: u32) -> Result<End, String> {
    let read = tokio::task::spawn_blocking(move || tail::read(&path, lines)).await;
    match read {
        Ok(Ok(end)) => Ok(end),
        Ok(Err(error)) => Err(format!("the log cannot be read: {error}")),
        Err(error) => Err(format!("the log cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str, truncated: bool) -> End {
        End { text: text.to_owned(), truncated }
    }

    #[test]
    fn the_last_lines_are_whole() {
        assert_eq!(last_lines(b"a\nb\nc\n", true, 2), end("b\nc\n", false));
        assert_eq!(last_lines(b"a\nb\nc", true, 9), end("a\nb\nc\n", false));
        assert_eq!(last_lines(b"part\nb\nc\n", false, 9), end("b\nc\n", true));
        assert_eq!(last_lines(b"part\nb\nc\n", false, 2), end("b\nc\n", false));
        assert_eq!(last_lines(b"a\xff\n", true, 2), end("a\u{fffd}\n", false));
        assert_eq!(last_lines(b"", true, 2), end("", false));
    }
}
