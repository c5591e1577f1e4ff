//! Tells the operator what begins to wait on them: works off the outbox of
//! [`crate::engine::attention`] with the notifier.
//!
//! Invariant: a thing leaves the outbox only after it was told, or because it waits no more; a
//! broker that dies between telling and deleting tells it again. A few are told at once, each is
//! told by one telling at a time, and none of it is in the way of anybody's call.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::RETRY_PAUSE;
use crate::engine::Engine;
use crate::engine::attention::Item;
use crate::engine::background::OUTBOX;
use crate::notify::Notifier;

/// How many things are told at once.
const TELLINGS_MAX: usize = 4;

/// Tells what waits, until `stop`; what is being told then is broken off and stays in the outbox.
pub async fn attention(engine: Arc<Engine>, notifier: Arc<Notifier>, stop: CancellationToken) {
    let (mut tellings, mut telling) = (JoinSet::new(), BTreeSet::new());
    while let Err(error) = engine.begin_attention().await {
        engine.task_failed(OUTBOX, &error);
        if stop.run_until_cancelled(tokio::time::sleep(RETRY_PAUSE)).await.is_none() {
            return;
        }
    }
    loop {
        let signal = engine.hints().attention.notified();
        let free = TELLINGS_MAX - telling.len();
        let wait = match engine.due_attention(&telling, free).await {
            Ok(due) => {
                engine.task_succeeded(OUTBOX);
                for item in due.items {
                    telling.insert(item.row);
                    tellings.spawn(tell(
                        Arc::clone(&engine),
                        Arc::clone(&notifier),
                        item,
                        stop.clone(),
                    ));
                }
                // Where all hands are full, the next free one looks.
                due.next.filter(|_| telling.len() < TELLINGS_MAX)
            }
            Err(error) => {
                engine.task_failed(OUTBOX, &error);
                Some(RETRY_PAUSE)
            }
        };
        tokio::select! {
            () = signal => {}
            () = timer(wait) => {}
            Some(over) = tellings.join_next() => match over {
                Ok(row) => {
                    telling.remove(&row);
                }
                // Which one it was is not known; the others end by themselves, and then all is
                // looked at anew.
                Err(error) => {
                    tracing::error!(%error, "telling the operator panicked");
                    while tellings.join_next().await.is_some() {}
                    telling.clear();
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            },
            () = stop.cancelled() => break,
        }
    }
    while tellings.join_next().await.is_some() {}
}

async fn timer(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// Tells one thing and notes in the outbox how that went; answers with its row.
async fn tell(
    engine: Arc<Engine>,
    notifier: Arc<Notifier>,
    item: Item,
    stop: CancellationToken,
) -> i64 {
    let Some(told) = stop.run_until_cancelled(notifier.tell(&item)).await else { return item.row };
    if let Err(error) = &told {
        tracing::warn!(kind = ?item.kind, id = item.id, failures = item.failures + 1, "the operator could not be told: {error}");
    }
    loop {
        let noted = match told {
            Ok(()) => engine.told(&item).await.map(
                |()| tracing::debug!(kind = ?item.kind, id = item.id, "the operator was told"),
            ),
            Err(_) => engine
                .not_told(&item)
                .await
                .map(|pause| tracing::debug!(id = item.id, ?pause, "it is tried again")),
        };
        let Err(error) = noted else { return item.row };
        // Not given up: an item that was told and is still in the outbox would be told again.
        tracing::warn!(%error, id = item.id, "what became of telling the operator could not be noted; trying again");
        if stop.run_until_cancelled(tokio::time::sleep(RETRY_PAUSE)).await.is_none() {
            return item.row;
        }
    }
}
