//! Serving: each connection has a task, which reads its calls and answers them.
//!
//! hyper is used without tonic's server, whose layers cost kilobytes for each connection and each
//! call that waits. Invariant: after `shutdown` a connection takes no new call, and it ends with
//! its last one.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::sync::{SetOnce, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;

use super::caller::Calls;
use super::conn::{Conn, ConnInfo};
use super::later::Call;
use super::together::Together;
use crate::spawn::spawn;

/// Largest header block of a request, in bytes; requests of the hive have a token and little else.
const HEADER_BYTES_MAX: u32 = 16 * 1024;
/// Most calls at once on one connection.
const CONCURRENT_CALLS_MAX: u32 = 128;
/// Most calls that a client may reset before they were handled; one more ends the connection.
const UNSEEN_RESETS_MAX: usize = 20;
/// Bytes of one request that may be in flight before the broker has read them.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// Most calls on one connection that the broker had to reset or refuse by the rules of HTTP/2; one
/// more ends the connection.
const OWN_RESETS_MAX: usize = 1024;

/// Serves connections until `shutdown`, then waits for their calls in flight. Calls that come
/// before `calls` are set wait for that.
pub async fn serve(
    calls: Arc<SetOnce<Calls>>,
    mut incoming: mpsc::Receiver<Conn>,
    shutdown: CancellationToken,
) {
    let (tasks, ends) = (TaskTracker::new(), shutdown.child_token());
    loop {
        let conn = tokio::select! {
            conn = incoming.recv() => conn,
            () = shutdown.cancelled() => None,
        };
        let Some(conn) = conn else { break };
        let calls = CallsOf { conn: Arc::clone(conn.info()), calls: Arc::clone(&calls) };
        spawn(&tasks, serve_one(conn, calls, ends.clone()));
    }
    drop(incoming);
    ends.cancel();
    tasks.close();
    tasks.wait().await;
}

/// The calls of one connection.
struct CallsOf {
    conn: Arc<ConnInfo>,
    calls: Arc<SetOnce<Calls>>,
}

impl hyper::service::Service<http::Request<Incoming>> for CallsOf {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Call;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let request = request.map(Body::new);
        match self.calls.get() {
            Some(calls) => calls.call(&self.conn, request),
            None => {
                let (conn, calls) = (Arc::clone(&self.conn), Arc::clone(&self.calls));
                Box::pin(async move { calls.wait().await.call(&conn, request).await })
            }
        }
    }
}

/// Serves a connection. An async function would keep its arguments twice.
fn serve_one(conn: Conn, calls: CallsOf, ends: CancellationToken) -> impl Future<Output = ()> {
    let mut served = Together::new(|executor| {
        let mut builder = http2::Builder::new(executor);
        builder
            .max_header_list_size(HEADER_BYTES_MAX)
            .max_concurrent_streams(CONCURRENT_CALLS_MAX)
            .max_pending_accept_reset_streams(UNSEEN_RESETS_MAX)
            // The default has no limit at all.
            .max_local_error_reset_streams(OWN_RESETS_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES);
        // Apart from each other, because hyper's part alone is of a size that the allocator has.
        let conn = TokioIo::new(Box::new(conn));
        Box::pin(builder.serve_connection(conn, calls))
    });
    async move {
        tokio::select! {
            () = &mut served => return,
            () = ends.cancelled() => served.conn().graceful_shutdown(),
        }
        served.await;
    }
}
