//! Telling the agent of ended tasks: one message for all of them, until the broker has taken it.
//!
//! Invariant: nothing is sent while the newest message that the broker took says it already.

use std::sync::Arc;
use std::time::Duration;

use hive_proto::status::{is_transient, retry_after};
use tokio::time::sleep;

use crate::driver::backoff::Backoff;
use crate::exit::describe;
use crate::task::news;
use crate::task::supervisor::Inner;
use crate::task::wake::Waker;
use crate::token;

/// How long further ends are waited for, so that tasks that end together are told together.
const GATHER: Duration = Duration::from_millis(300);
/// The rest after a refusal that is not about the broker being away, such as a full inbox.
const REFUSED_REST: Duration = Duration::from_secs(30);

/// A message that was not taken yet. The same message keeps its request id.
struct Message {
    request_id: String,
    ids: Vec<u64>,
    body: String,
}

/// Tells for as long as the supervisor lives.
pub(super) async fn run(inner: Arc<Inner>, waker: Arc<dyn Waker>) {
    let mut last: Option<Message> = None;
    let mut backoff = Backoff::default();
    loop {
        inner.news.notified().await;
        sleep(GATHER).await;
        while let Some(message) = next(&inner, last.take()) {
            match waker.wake(message.request_id.clone(), message.body.clone()).await {
                Ok(superseded) => {
                    tracing::info!(tasks = ?message.ids, "the agent is told of ended tasks");
                    backoff.reset();
                    inner.table().announced(&message.ids, superseded != 0, &inner.store);
                }
                Err(status) if is_transient(&status) => {
                    last = Some(message);
                    backoff.rest().await;
                }
                Err(status) => {
                    tracing::warn!(reason = %describe(&status), "the agent cannot be told of ended tasks now");
                    last = Some(message);
                    sleep(retry_after(&status).unwrap_or_default().max(REFUSED_REST)).await;
                }
            }
        }
    }
}

/// The message that says what is to be told; the last one where it says just that.
fn next(inner: &Inner, last: Option<Message>) -> Option<Message> {
    let records = inner.table().untold()?;
    let ids: Vec<u64> = records.iter().map(|record| record.id).collect();
    if let Some(last) = last.filter(|last| last.ids == ids) {
        return Some(last);
    }
    Some(Message {
        request_id: token::random(),
        ids,
        body: news::body(&records, inner.store.dir()),
    })
}
