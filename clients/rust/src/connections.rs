//! The connections of a channel: how many were made, and whether one is open.
//!
//! A call without a connection can be lost. When a connection ends, the queue between hyper's
//! handle and its connection task takes a request that was counted before the receiver of the queue
//! was dropped, and pushed after it was drained: tokio's `mpsc` keeps it as long as the handle
//! exists, and tonic keeps the handle until the next call. So the caller is never answered. (Issue
//! 7714 of tokio has the same for permits.) Invariant: a connection counts as open from its connect
//! until its socket is closed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a call waits while no connection is open: longer than one may take to open.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// The connections of a channel.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    made: AtomicU64,
    open: watch::Sender<usize>,
}

impl Connections {
    /// Returns the number of connections that were made.
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::Acquire)
    }

    /// Adds one.
    pub(crate) fn add(self: &Arc<Self>, stream: UnixStream) -> Connection {
        self.made.fetch_add(1, Ordering::Release);
        self.open.send_modify(|open| *open += 1);
        Connection { stream, of: Arc::clone(self) }
    }

    /// Ends once none has been open for [`GONE_AFTER`].
    pub(crate) async fn gone(&self) {
        let mut open = self.open.subscribe();
        // The sender is this value, so neither wait fails.
        while open.wait_for(|open| *open == 0).await.is_ok() {
            if timeout(GONE_AFTER, open.wait_for(|open| *open > 0)).await.is_err() {
                return;
            }
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    of: Arc<Connections>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.of.open.send_modify(|open| *open -= 1);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn connection(of: &Arc<Connections>) -> Connection {
        of.add(UnixStream::pair().expect("a pair").0)
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_is_gone_once_no_connection_was_open_for_some_time() {
        let connections = Arc::new(Connections::default());
        let began = Instant::now();
        connections.gone().await;
        assert_eq!(began.elapsed(), GONE_AFTER);

        let first = connection(&connections);
        let second = connection(&connections);
        assert_eq!(connections.made(), 2);
        let mut gone = std::pin::pin!(connections.gone());
        drop(first);
        assert!(timeout(3 * GONE_AFTER, &mut gone).await.is_err(), "one is open");
        drop(second);
        assert!(timeout(GONE_AFTER / 2, &mut gone).await.is_err());
        let third = connection(&connections);
        assert!(timeout(3 * GONE_AFTER, &mut gone).await.is_err(), "it opened in time");
        drop(third);
        let began = Instant::now();
        gone.await;
        assert_eq!(began.elapsed(), GONE_AFTER);
    }
}
