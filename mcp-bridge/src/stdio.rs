//! A reader of stdin that reports its end.
//!
//! Why: when claude is killed the bridge sees only the end of stdin. A waiting `recv` must end
//! then, not after its wait.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// A reader that cancels `ended` at the end of its input.
#[derive(Debug)]
pub struct WatchedReader<R> {
    inner: R,
    ended: CancellationToken,
}

impl<R> WatchedReader<R> {
    /// Returns a reader around `inner`.
    pub fn new(inner: R, ended: CancellationToken) -> Self {
        Self { inner, ended }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for WatchedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        if polled.is_ready() && buf.filled().len() == before {
            self.ended.cancel();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn the_end_is_reported_and_not_earlier() {
        let ended = CancellationToken::new();
        let mut reader = WatchedReader::new(&b"abc"[..], ended.clone());
        let mut three = [0; 3];
        reader.read_exact(&mut three).await.expect("three bytes are there");
        assert!(!ended.is_cancelled());
        assert_eq!(reader.read(&mut three).await.expect("the end is no error"), 0);
        assert!(ended.is_cancelled());
    }
}
