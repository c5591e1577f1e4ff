//! Exports traces: one part follows the event log, the other posts what waits in the queue.
//!
//! A post that fails delays no reading: the queue drops its oldest spans. When the broker ends, the
//! last spans have a limited time.

use std::sync::Arc;
use std::time::Duration;

use hive_export::{Export, Follower};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::RETRY_PAUSE;
use crate::engine::background::TRACES;
use crate::engine::{Engine, Refusal};

/// Pause for more events, so that one post has the spans of all.
const GATHER_PAUSE: Duration = Duration::from_millis(500);
/// Time limit for the last spans when the broker ends.
const LAST_LIMIT: Duration = Duration::from_secs(2);

/// The means of the export.
#[derive(Debug)]
pub struct Tracing {
    /// The export of the configuration.
    pub export: Arc<Export>,
    /// Its place in the event log is taken before the first call is served, so that no span is
    /// missing. A task that starts again continues there.
    pub follower: Mutex<Follower>,
}

/// Exports traces until `stop`.
pub async fn traces(engine: Arc<Engine>, tracing: Arc<Tracing>, stop: CancellationToken) {
    let export = &*tracing.export;
    let mut follower = tracing.follower.lock().await;
    // The end of the following, not of the broker: the last spans are posted after it.
    let followed = CancellationToken::new();
    let following = async {
        follow(&engine, export, &mut follower, &stop).await;
        followed.cancel();
    };
    let report = |posted: Result<(), _>| match posted {
        Ok(()) => engine.task_succeeded(TRACES),
        Err(error) => engine.task_failed(TRACES, &error),
    };
    let posting = export.post(&followed, &report);
    let until_stop = async {
        stop.cancelled().await;
        tokio::time::sleep(LAST_LIMIT).await;
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(following, posting) } => {}
        () = until_stop => {}
    }
    let dropped = export.queue().clear();
    if dropped > 0 {
        tracing::warn!(spans = dropped, "the broker ends before these spans were exported");
    }
}

async fn follow(
    engine: &Engine,
    export: &Export,
    follower: &mut Follower,
    stop: &CancellationToken,
) {
    let (mut newest, mut lines) = (engine.hints().last_event(), engine.lines_changed());
    engine.task_succeeded(TRACES);
    let mut has_failed = false;
    loop {
        newest.borrow_and_update();
        lines.borrow_and_update();
        let is_last = stop.is_cancelled();
        let again = match step(follower, engine, export, is_last).await {
            Ok(again) => {
                if std::mem::take(&mut has_failed) {
                    engine.task_succeeded(TRACES);
                }
                again
            }
            Err(error) => {
                engine.task_failed(TRACES, &error);
                has_failed = true;
                Some(Instant::now() + RETRY_PAUSE)
            }
        };
        if is_last {
            return;
        }
        let has_ending = again.is_some();
        tokio::select! {
            changed = newest.changed() => if changed.is_err() { return },
            changed = lines.changed(), if has_ending => if changed.is_err() { return },
            () = at(again) => {}
            () = stop.cancelled() => continue,
        }
        stop.run_until_cancelled(tokio::time::sleep(GATHER_PAUSE)).await;
    }
}

/// Makes spans of all that is new; returns when to look again at the latest.
async fn step(
    follower: &mut Follower,
    engine: &Engine,
    export: &Export,
    is_last: bool,
) -> Result<Option<Instant>, Refusal> {
    loop {
        let part = engine.next_part(follower.position()).await?;
        if part.events.is_empty() {
            break;
        }
        follower.take(part, export.queue());
    }
    for (turn, mut last) in follower.unread() {
        loop {
            let lines = engine.lines_after(turn, last).await?;
            let Some(line) = lines.last() else { break };
            last = line.sequence;
            for line in lines {
                follower.read(turn, line.sequence, line.stream, &line.text, line.time);
            }
        }
    }
    Ok(follower.finish(export.queue(), is_last))
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
