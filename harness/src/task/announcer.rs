//! Notification of the agent about ended tasks: one message for all of them, until the broker has
//! accepted it.
//!
//! Invariant: no message is sent if the newest one that the broker accepted has the same content.

use std::sync::Arc;
use std::time::Duration;

use hive_proto::status::{is_transient, retry_after};
use tokio::time::sleep;

use crate::driver::backoff::Backoff;
use crate::exit::describe;
use crate::task::notice;
use crate::task::supervisor::Inner;
use crate::task::wake::Waker;
use crate::token;

/// Wait for further ends, so that tasks that end together share a message.
const GATHER: Duration = Duration::from_millis(300);
/// The pause after a refusal although the broker is reachable, for example because of a full inbox.
const REFUSED_REST: Duration = Duration::from_secs(30);

/// A message that the broker has not accepted yet. A repeated one keeps its request id.
struct Message {
    request_id: String,
    ids: Vec<u64>,
    body: String,
}

/// Sends messages for as long as the supervisor lives.
pub(super) async fn run(inner: Arc<Inner>, waker: Arc<dyn Waker>) {
    let mut last: Option<Message> = None;
    let mut backoff = Backoff::default();
    loop {
        inner.ended_hint.notified().await;
        sleep(GATHER).await;
        while let Some(message) = next(&inner, last.take()) {
            match waker.wake(message.request_id.clone(), message.body.clone()).await {
                Ok(superseded) => {
                    tracing::info!(tasks = ?message.ids, "the agent is notified of ended tasks");
                    backoff.reset();
                    inner.table().announced(&message.ids, superseded != 0, &inner.store);
                }
                Err(status) if is_transient(&status) => {
                    last = Some(message);
                    backoff.rest().await;
                }
                Err(status) => {
                    tracing::warn!(reason = %describe(&status), "the agent cannot be notified of ended tasks now");
                    last = Some(message);
                    sleep(retry_after(&status).unwrap_or_default().max(REFUSED_REST)).await;
                }
            }
        }
    }
}

/// Returns the message about all unreported ends; the last one if its content is the same.
fn next(inner: &Inner, last: Option<Message>) -> Option<Message> {
    let records = inner.table().unreported()?;
    let ids: Vec<u64> = records.iter().map(|record| record.id).collect();
    if let Some(last) = last.filter(|last| last.ids == ids) {
        return Some(last);
    }
    Some(Message {
        request_id: token::random(),
        ids,
        body: notice::body(&records, inner.store.dir()),
    })
}
