//! Candidates from the broker, which a shell waits for.

use std::ffi::OsStr;
use std::future::Future;
use std::time::Duration;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use tokio::runtime;

use super::candidate::{Candidate, fitting};
use super::line::Line;
use crate::connect::Broker;
use crate::error::Failure;

/// Maximum wait of a shell for completions.
const PATIENCE: Duration = Duration::from_millis(250);

/// Overrides [`PATIENCE`], in milliseconds.
const PATIENCE_ENV: &str = "HIVE_COMPLETION_MS";

/// Most rows to read, because a shell waits.
pub(super) const ROWS_MAX: usize = 500;

/// Returns a completer that asks the broker of the line.
pub(super) fn live<R, F>(read: R) -> ArgValueCompleter
where
    R: Fn(Broker, Line) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<Candidate>, Failure>>,
{
    ArgValueCompleter::new(move |current: &OsStr| -> Vec<CompletionCandidate> {
        let line = Line::given();
        fitting(current, ask(&line, &read).unwrap_or_default())
    })
}

/// Returns the broker's candidates; `None` without an answer in time.
fn ask<R, F>(line: &Line, read: R) -> Option<Vec<Candidate>>
where
    R: Fn(Broker, Line) -> F,
    F: Future<Output = Result<Vec<Candidate>, Failure>>,
{
    let patience = std::env::var(PATIENCE_ENV)
        .ok()
        .and_then(|millis| millis.parse().ok())
        .map_or(PATIENCE, Duration::from_millis);
    let runtime = runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let answer = runtime.block_on(async {
        let answer = async {
            let broker = Broker::connect(&line.socket(), patience).await?;
            read(broker, line.clone()).await
        };
        tokio::time::timeout(patience, answer).await
    });
    runtime.shutdown_background();
    answer.ok()?.ok()
}
