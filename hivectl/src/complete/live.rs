//! What the broker knows, asked while somebody waits at a prompt.

use std::ffi::OsStr;
use std::future::Future;
use std::time::Duration;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use tokio::runtime;

use super::candidate::{Candidate, fitting};
use super::line::Line;
use crate::connect::Broker;
use crate::error::Failure;

/// How long somebody waits at a prompt.
const PATIENCE: Duration = Duration::from_millis(250);

/// Changes that, in milliseconds.
const PATIENCE_ENV: &str = "HIVE_COMPLETION_MS";

/// More rows are not read while somebody waits.
pub(super) const ROWS_MAX: usize = 500;

/// Completes by what the broker says that the line is for.
pub(super) fn live<R, F>(read: R) -> ArgValueCompleter
where
    R: Fn(Broker, Line) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<Candidate>, Failure>>,
{
    ArgValueCompleter::new(move |current: &OsStr| -> Vec<CompletionCandidate> {
        let line = Line::given();
        fitting(current, asked(&line, &read).unwrap_or_default())
    })
}

/// The broker's answer; none where there is none in time.
fn asked<R, F>(line: &Line, read: R) -> Option<Vec<Candidate>>
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
