//! Updates the search index after commits, once anything was searched, and removes pruned mail from
//! it.
//!
//! The task runs after a commit, not by time, and first waits a moment for more mail, so that one
//! commit of the index covers all of it.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::RETRY_PAUSE;
use crate::engine::background::SEARCH;
use crate::engine::{Engine, Refusal};

/// Pause for more mail. With the step itself it stays well below one second, the time within which
/// mail is found.
const GATHER_PAUSE: Duration = Duration::from_millis(300);
/// Pause between two of many steps, so that sends run in between.
const STEP_PAUSE: Duration = Duration::from_millis(5);
/// Longest pause after failed runs.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Keeps the search index up to date.
pub async fn search(engine: Arc<Engine>, stop: CancellationToken) {
    let mut newest = engine.hints().last_event();
    let mut retry = RETRY_PAUSE;
    loop {
        while !engine.is_search_used() {
            // There is nothing to do, which its status shows as a success.
            engine.task_succeeded(SEARCH);
            tokio::select! {
                () = engine.index_wanted() => {}
                () = stop.cancelled() => return,
            }
        }
        // A commit from here on is a reason to run again.
        newest.borrow_and_update();
        let pause = match engine.index_search().await {
            Ok(true) => {
                engine.task_succeeded(SEARCH);
                STEP_PAUSE
            }
            Ok(false) => {
                engine.task_succeeded(SEARCH);
                retry = RETRY_PAUSE;
                tokio::select! {
                    changed = newest.changed() => if changed.is_err() { return },
                    () = engine.index_wanted() => {}
                    () = stop.cancelled() => return,
                }
                GATHER_PAUSE
            }
            Err(error) => {
                engine.task_failed(SEARCH, &error);
                let pause = retry;
                retry = RETRY_PAUSE_MAX.min(2 * retry);
                pause
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Deletes pruned mail from the index.
pub(super) async fn prune(
    engine: &Engine,
    keep: Duration,
    stop: &CancellationToken,
) -> Result<(), Refusal> {
    while engine.prune_search(keep).await? {
        if stop.run_until_cancelled(tokio::time::sleep(STEP_PAUSE)).await.is_none() {
            break;
        }
    }
    Ok(())
}
