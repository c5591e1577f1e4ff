//! The background tasks of a broker, and what each of them needs.
//!
//! Invariant: each is started with the name that its status has.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Settings;
use crate::engine::{Engine, background};
use crate::notify::Notifier;
use crate::spawn::spawn;
use crate::task::{self, Tracing};

/// The means of background tasks.
pub(super) struct Helpers {
    pub(super) notifier: Option<Notifier>,
    pub(super) tracing: Option<Tracing>,
    pub(super) health: tonic_health::server::HealthReporter,
}

/// Starts the background tasks, each with a name for its status.
pub(super) fn start_reconcilers(
    tasks: &TaskTracker,
    engine: &Arc<Engine>,
    stop: &CancellationToken,
    settings: &Settings,
    Helpers { notifier, tracing, health }: Helpers,
) {
    let start = Start { tasks, engine, stop };
    let keep = Duration::from_secs(u64::from(settings.retention_days) * 24 * 3600);
    start.later(task::START_PAUSE, background::LEASES, task::due);
    start.later(task::START_PAUSE + task::START_STEP, background::DEADLINES, task::wall::wall_due);
    start.later(task::START_PAUSE + 2 * task::START_STEP, background::ACTIONS, task::actions);
    if let Some(notifier) = notifier.map(Arc::new) {
        start.reconciler(background::OUTBOX, move |engine, stop| {
            task::outbox(engine, Arc::clone(&notifier), stop)
        });
    }
    if let Some(tracing) = tracing.map(Arc::new) {
        start.reconciler(background::TRACES, move |engine, stop| {
            task::traces(engine, Arc::clone(&tracing), stop)
        });
    }
    start.later(task::RETENTION_START_PAUSE, background::RETENTION, move |engine, stop| {
        task::retention(engine, keep, stop)
    });
    if let Some(backups) = settings.backups.clone().map(Arc::new) {
        start.later(task::RETENTION_START_PAUSE, background::BACKUP, move |engine, stop| {
            task::backup(engine, Arc::clone(&backups), stop)
        });
    }
    start.reconciler(background::SEARCH, task::search);
    // The reporter begins with this status.
    let is_shown_serving = Arc::new(AtomicBool::new(true));
    start.reconciler(background::HEALTH, move |engine, stop| {
        task::health(engine, health.clone(), Arc::clone(&is_shown_serving), stop)
    });
}

/// The dependencies of every background task.
struct Start<'a> {
    tasks: &'a TaskTracker,
    engine: &'a Arc<Engine>,
    stop: &'a CancellationToken,
}

impl Start<'_> {
    fn reconciler<F, R>(&self, name: &'static str, reconciler: F)
    where
        F: Fn(Arc<Engine>, CancellationToken) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let (engine, stop) = (Arc::clone(self.engine), self.stop.clone());
        spawn(self.tasks, task::keep_running(name, engine, stop, reconciler));
    }

    /// The same after a pause, for work that is done by time.
    fn later<F, R>(&self, pause: Duration, name: &'static str, reconciler: F)
    where
        F: Fn(Arc<Engine>, CancellationToken) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let (engine, stop) = (Arc::clone(self.engine), self.stop.clone());
        spawn(self.tasks, async move {
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
                task::keep_running(name, engine, stop, reconciler).await;
            }
        });
    }
}
