//! Reconcilers: the background tasks of the broker. Each has a timer and a signal, reads the due
//! rows from the database, and may run at any time.
//!
//! Invariant: a failed run is logged, shown in the broker's status and retried; neither a failure
//! nor a panic ends a reconciler.

pub mod wall;

mod actions;
mod backup;
mod outbox;
mod search;
mod traces;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hive_core::time::BootTime;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic_health::ServingStatus::{NotServing, Serving};

use crate::engine::{Engine, Refusal};
use crate::store::Health;
pub use actions::actions;
pub use backup::backup;
pub use outbox::outbox;
pub use search::search;
pub use traces::{Tracing, traces};

use crate::engine::background::{HEALTH, LEASES, RETENTION};

/// Pause after a failed run.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before a reconciler that panics again and again starts again.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(60);
/// Pause after the start of the broker before work that is done by time. Clients that have waited
/// for the broker come first: that work needs connections and threads of its own.
pub const START_PAUSE: Duration = Duration::from_millis(200);
/// Pause between the first looks of the tasks. Looks at the same time would each need a thread and
/// a connection, whose memory is kept.
pub const START_STEP: Duration = Duration::from_millis(50);
/// The same before old rows are deleted. It is longer, so that this work reads by the connection
/// that the other has made.
pub const RETENTION_START_PAUSE: Duration = Duration::from_millis(400);
/// Period of the deletion of old rows.
const RETENTION_PERIOD: Duration = Duration::from_secs(3600);
/// Pause between two steps of deleting, so that sends run in between.
const RETENTION_STEP_PAUSE: Duration = Duration::from_millis(40);

/// Runs a reconciler until `stop`. One that panics starts again after a pause that doubles: all
/// that it does can be done twice.
pub async fn keep_running<F, R>(
    name: &'static str,
    engine: Arc<Engine>,
    stop: CancellationToken,
    reconciler: F,
) where
    F: Fn(Arc<Engine>, CancellationToken) -> R,
    R: Future<Output = ()> + Send + 'static,
{
    let mut run = JoinSet::new();
    let mut pause = RETRY_PAUSE;
    loop {
        let start = Instant::now();
        run.spawn(reconciler(Arc::clone(&engine), stop.clone()));
        match run.join_next().await {
            Some(Err(error)) if error.is_panic() => {
                engine.task_failed(name, &"it panicked; the broker's log has the reason");
            }
            _ => return,
        }
        if start.elapsed() > RESTART_PAUSE_MAX {
            pause = RETRY_PAUSE;
        }
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        pause = RESTART_PAUSE_MAX.min(2 * pause);
    }
}

/// Ends expired leases and sessions, and requeues leases that no client got.
pub async fn due(engine: Arc<Engine>, stop: CancellationToken) {
    loop {
        let due = &engine.hints().due;
        let signal = due.begin();
        let wait = match sweep(&engine).await {
            Ok(next) => {
                engine.task_succeeded(LEASES);
                due.wait_until(next);
                next.map(|next| next.since(engine.clock().now().boot))
            }
            Err(error) => {
                engine.task_failed(LEASES, &error);
                Some(RETRY_PAUSE)
            }
        };
        let timer = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        // In this order, so that a simulation of it is the same each time.
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = signal => {}
            () = timer => {}
        }
    }
}

async fn sweep(engine: &Engine) -> Result<Option<BootTime>, Refusal> {
    engine.sweep_handovers().await?;
    engine.sweep_streams().await?;
    let (leases, sessions) = (engine.sweep_leases().await?, engine.sweep_sessions().await?);
    Ok(leases.into_iter().chain(sessions).min())
}

/// Deletes settled rows that are older than `keep`.
pub async fn retention(engine: Arc<Engine>, keep: Duration, stop: CancellationToken) {
    loop {
        let pause = match engine.sweep_retention(keep).await {
            Ok(true) => {
                engine.task_succeeded(RETENTION);
                RETENTION_STEP_PAUSE
            }
            Ok(false) => {
                match search::prune(&engine, keep, &stop).await {
                    Ok(()) => engine.task_succeeded(RETENTION),
                    Err(error) => engine.task_failed(RETENTION, &error),
                }
                RETENTION_PERIOD
            }
            Err(error) => {
                engine.task_failed(RETENTION, &error);
                RETENTION_PERIOD
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Shows in the health service whether the database can be used, and that the broker ends. A status
/// that is shown already is not set again, because a client that watches would see a change.
pub async fn health(
    engine: Arc<Engine>,
    reporter: tonic_health::server::HealthReporter,
    is_shown_serving: Arc<AtomicBool>,
    stop: CancellationToken,
) {
    let mut health = engine.store().health();
    loop {
        let is_serving = *health.borrow_and_update() == Health::Ok;
        if is_shown_serving.swap(is_serving, Ordering::Relaxed) != is_serving {
            let status = if is_serving { Serving } else { NotServing };
            reporter.set_service_status("", status).await;
        }
        engine.task_succeeded(HEALTH);
        tokio::select! {
            changed = health.changed() => if changed.is_err() { return },
            () = stop.cancelled() => {
                reporter.set_service_status("", NotServing).await;
                return;
            }
        }
    }
}
