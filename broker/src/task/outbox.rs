//! Drains the operator outbox of [`crate::engine::mail::outbox`] with the notifier.
//!
//! Invariant: an item leaves the outbox only after the operator was notified, or because it is
//! settled. A broker that dies between the two steps notifies again. A few notifications run at
//! once, one per item, and none delays a call.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::RETRY_PAUSE;
use crate::engine::Engine;
use crate::engine::background::{NOTIFICATIONS, OUTBOX};
use crate::engine::mail::outbox::Item;
use crate::notify::Notifier;

/// Most notifications at once.
const NOTIFICATIONS_MAX: usize = 4;

/// Notifies the operator of due items until `stop`. A notification that runs then is cancelled, and
/// its item stays in the outbox.
pub async fn outbox(engine: Arc<Engine>, notifier: Arc<Notifier>, stop: CancellationToken) {
    let (mut notifications, mut under_way) = (JoinSet::new(), BTreeSet::new());
    while let Err(error) = engine.begin_outbox().await {
        engine.task_failed(OUTBOX, &error);
        if stop.run_until_cancelled(tokio::time::sleep(RETRY_PAUSE)).await.is_none() {
            return;
        }
    }
    loop {
        let signal = engine.hints().outbox.notified();
        let free = NOTIFICATIONS_MAX - under_way.len();
        let wait = match engine.due_items(&under_way, free).await {
            Ok(due) => {
                engine.task_succeeded(OUTBOX);
                for item in due.items {
                    under_way.insert(item.row);
                    notifications.spawn(notify(
                        Arc::clone(&engine),
                        Arc::clone(&notifier),
                        item,
                        stop.clone(),
                    ));
                }
                // If all slots are taken, the next free one reads the outbox again.
                due.next.filter(|_| under_way.len() < NOTIFICATIONS_MAX)
            }
            Err(error) => {
                engine.task_failed(OUTBOX, &error);
                Some(RETRY_PAUSE)
            }
        };
        tokio::select! {
            () = signal => {}
            () = timer(wait) => {}
            Some(over) = notifications.join_next() => match over {
                Ok(row) => {
                    under_way.remove(&row);
                }
                // The panicked notification is unknown; the others end by themselves, and then the
                // outbox is read again.
                Err(error) => {
                    tracing::error!(%error, "a notification of the operator panicked");
                    while notifications.join_next().await.is_some() {}
                    under_way.clear();
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            },
            () = stop.cancelled() => break,
        }
    }
    while notifications.join_next().await.is_some() {}
}

async fn timer(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// Notifies the operator of one item and stores the result in the outbox; returns its row.
async fn notify(
    engine: Arc<Engine>,
    notifier: Arc<Notifier>,
    item: Item,
    stop: CancellationToken,
) -> i64 {
    let Some(sent) = stop.run_until_cancelled(notifier.notify(&item)).await else {
        return item.row;
    };
    if let Err(error) = &sent {
        engine.task_ended_badly(NOTIFICATIONS, error);
        tracing::warn!(kind = ?item.kind, id = item.id, failures = item.failures + 1, "the operator could not be notified: {error}");
    }
    loop {
        let noted = match sent {
            Ok(()) => engine.remove_item(&item).await.map(|()| {
                engine.task_succeeded(NOTIFICATIONS);
                tracing::debug!(kind = ?item.kind, id = item.id, "the operator was notified");
            }),
            Err(_) => engine
                .postpone_item(&item)
                .await
                .map(|pause| tracing::debug!(id = item.id, ?pause, "it is retried")),
        };
        let Err(error) = noted else { return item.row };
        // Retried: an item that was reported and is still in the outbox would be reported again.
        tracing::warn!(%error, id = item.id, "the result of a notification could not be stored; it is retried");
        if stop.run_until_cancelled(tokio::time::sleep(RETRY_PAUSE)).await.is_none() {
            return item.row;
        }
    }
}
