//! Answers: their beginning is encoded while their call has its permit, and they are handed to the
//! connection piece by piece.
//!
//! If the connection got a page as a whole, the call would count as over before its client has read
//! the page. Invariant: of an answer the connection has at most one piece more than its reader has
//! room for. A value that is kept with the body is dropped when the last piece is taken or the
//! answer is abandoned. A handler that has to know what the connection took adds [`Taken`] to its
//! response.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use http_body::{Body as _, Frame, SizeHint};
use prost::bytes::Bytes;
use tonic::Status;
use tonic::body::Body;

/// Bytes of one piece; the size of an HTTP/2 frame.
const PIECE_BYTES: usize = 16 * 1024;

/// A function in the extensions of a response, called each time that the connection has taken
/// everything that the handler has produced so far. It is dropped with the answer.
#[derive(Clone)]
pub(in crate::rpc) struct Taken(Arc<Mutex<dyn FnMut() + Send>>);

impl Taken {
    pub(in crate::rpc) fn new(notify: impl FnMut() + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(notify)))
    }

    fn notify(&self) {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))();
    }
}

impl std::fmt::Debug for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Taken")
    }
}

/// Encodes the beginning of an answer, if it is ready. Its body keeps a value until it is sent or
/// dropped.
pub(in crate::rpc) fn begun<K: Send + Unpin + 'static>(
    answer: http::Response<Body>,
    kept: K,
    cx: &mut Context<'_>,
) -> http::Response<Body> {
    let (mut parts, mut body) = answer.into_parts();
    let taken = parts.extensions.remove::<Taken>();
    let first = match Pin::new(&mut body).poll_frame(cx) {
        Poll::Ready(Some(frame)) => Some(frame),
        // The body has ended, or it is a stream that has no item yet.
        Poll::Ready(None) | Poll::Pending => None,
    };
    http::Response::from_parts(
        parts,
        Body::new(Answer { first, piece: Bytes::new(), body, taken, is_asked: true, kept }),
    )
}

/// Returns the same body, which keeps a value until the body is sent or dropped.
pub(in crate::rpc) fn holding<K: Send + Unpin + 'static>(kept: K, body: Body) -> Body {
    Body::new(Answer { first: None, piece: Bytes::new(), body, taken: None, is_asked: true, kept })
}

/// A body, with the part of it that was taken early.
#[derive(Debug)]
struct Answer<K> {
    first: Option<Result<Frame<Bytes>, Status>>,
    piece: Bytes,
    body: Body,
    taken: Option<Taken>,
    /// Whether the connection waits for the next piece.
    is_asked: bool,
    #[allow(dead_code, reason = "it is dropped with the rest")]
    kept: K,
}

impl<K: Unpin> http_body::Body for Answer<K> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.piece.is_empty() {
            // The connection polls again once it has sent the last piece.
            if !std::mem::replace(&mut self.is_asked, true)
                && let Some(taken) = &self.taken
            {
                taken.notify();
            }
            let frame = match self.first.take() {
                Some(frame) => Some(frame),
                None => ready!(Pin::new(&mut self.body).poll_frame(cx)),
            };
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.piece = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                None => return Poll::Ready(None),
            }
        }
        let bytes = self.piece.len().min(PIECE_BYTES);
        self.is_asked = false;
        Poll::Ready(Some(Ok(Frame::data(self.piece.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.piece.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn frame(body: &mut Body) -> Option<Frame<Bytes>> {
        std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))
            .await
            .map(|frame| frame.expect("no error"))
    }

    #[tokio::test]
    async fn a_page_comes_in_pieces_and_its_guard_goes_with_the_last() {
        let page: Vec<u8> =
            (0..PIECE_BYTES * 2 + 5).map(|at| u8::try_from(at % 251).expect("small")).collect();
        let answer = begun_now(http::Response::new(of_one_frame(page.clone()))).await;
        let kept = Arc::new(());
        let weak = Arc::downgrade(&kept);
        let mut body = holding(kept, answer.into_body());
        let mut came = Vec::new();
        for bytes in [PIECE_BYTES, PIECE_BYTES, 5] {
            let data = frame(&mut body).await.expect("a piece").into_data().expect("data");
            assert_eq!(data.len(), bytes);
            came.extend_from_slice(&data);
            assert!(weak.upgrade().is_some(), "it is kept");
        }
        assert!(came == page && frame(&mut body).await.is_none());
        drop(body);
        assert!(weak.upgrade().is_none());
    }

    #[tokio::test]
    async fn the_handler_is_notified_when_the_last_piece_is_taken() {
        let count = Arc::new(Mutex::new(0));
        let mut answer = http::Response::new(of_one_frame(vec![1; PIECE_BYTES * 2]));
        let counted = Arc::clone(&count);
        let taken = Taken::new(move || *counted.lock().expect("no panic") += 1);
        answer.extensions_mut().insert(taken);
        let mut body = holding((), begun_now(answer).await.into_body());
        assert_eq!(Arc::strong_count(&count), 2, "the body keeps it");
        for expected in [0, 0, 1] {
            let more = frame(&mut body).await.is_some();
            assert_eq!((more, *count.lock().expect("no panic")), (expected == 0, expected));
        }
        drop(body);
        assert_eq!((*count.lock().expect("no panic"), Arc::strong_count(&count)), (1, 1));
    }

    async fn begun_now(answer: http::Response<Body>) -> http::Response<Body> {
        let mut answer = Some(answer);
        std::future::poll_fn(|cx| Poll::Ready(begun(answer.take().expect("polled once"), (), cx)))
            .await
    }

    /// Returns a body of one frame.
    fn of_one_frame(bytes: Vec<u8>) -> Body {
        #[derive(Debug)]
        struct One(Option<Bytes>);
        impl http_body::Body for One {
            type Data = Bytes;
            type Error = Status;
            fn poll_frame(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
                Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
            }
        }
        Body::new(One(Some(bytes.into())))
    }
}
