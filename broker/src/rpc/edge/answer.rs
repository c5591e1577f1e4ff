//! Answers: their beginning is encoded while their call has its permit, and they are handed to the
//! connection piece by piece.
//!
//! If the connection got a page as a whole, the call would count as over before its client has read
//! the page. Invariant: of an answer the connection has at most one piece more than its reader has
//! room for. A value that is kept with the body is dropped when the last piece is taken or the
//! answer is abandoned.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body as _, Frame, SizeHint};
use prost::bytes::Bytes;
use tonic::Status;
use tonic::body::Body;

/// Bytes of one piece; the size of an HTTP/2 frame.
const PIECE_BYTES: usize = 16 * 1024;

/// Encodes the beginning of an answer, if it is ready.
pub(in crate::rpc) async fn begun(answer: http::Response<Body>) -> http::Response<Body> {
    let (parts, mut body) = answer.into_parts();
    let first = std::future::poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
        Poll::Ready(Some(frame)) => Poll::Ready(Some(frame)),
        // The body has ended, or it is a stream that has no item yet.
        Poll::Ready(None) | Poll::Pending => Poll::Ready(None),
    })
    .await;
    http::Response::from_parts(
        parts,
        Body::new(Answer { first, piece: Bytes::new(), body, kept: () }),
    )
}

/// Returns the same body, which keeps a value until the body is sent or dropped.
pub(in crate::rpc) fn holding<K: Send + Unpin + 'static>(kept: K, body: Body) -> Body {
    Body::new(Answer { first: None, piece: Bytes::new(), body, kept })
}

/// A body, with the part of it that was taken early.
#[derive(Debug)]
struct Answer<K> {
    first: Option<Result<Frame<Bytes>, Status>>,
    piece: Bytes,
    body: Body,
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
        let answer = begun(http::Response::new(of_one_frame(page.clone()))).await;
        let kept = std::sync::Arc::new(());
        let weak = std::sync::Arc::downgrade(&kept);
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
