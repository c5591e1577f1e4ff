//! An answer that comes later than its handler returns.
//!
//! Until a handler returns, tonic keeps the request three times and has room to read it: two
//! kilobytes for each call that waits. So a handler that may wait for hours returns at once, with
//! what waits in the extensions of its response. Invariant: such a response is not sent; the call
//! goes on with what it has, and ends with that answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use hive_proto::codec::ProstCodec;
use http::header::CONTENT_TYPE;
use prost::Message;
use tonic::body::Body;
use tonic::codec::{Codec as _, EncodeBody, SingleMessageCompressionOverride};
use tonic::metadata::GRPC_CONTENT_TYPE;
use tonic::{Response, Status};

/// The result of a call.
pub(super) type Answered = Result<http::Response<Body>, Infallible>;
/// A call. It is moved about while it waits, so it is a pointer.
pub(in crate::rpc) type Call = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// See the module.
#[derive(Clone)]
struct Later(Arc<Mutex<Option<Call>>>);

/// Returns the response of a handler whose answer comes later.
pub(in crate::rpc) fn response<T: Message + Default + 'static>(
    answer: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Response<T> {
    // An async block would keep the future twice.
    let mut answer = Box::pin(answer);
    let call: Call = Box::pin(std::future::poll_fn(move |cx| {
        Poll::Ready(Ok(match ready!(answer.as_mut().poll(cx)) {
            Ok(message) => encoded(message),
            Err(status) => status.into_http(),
        }))
    }));
    let mut response = Response::new(T::default());
    response.extensions_mut().insert(Later(Arc::new(Mutex::new(Some(call)))));
    response
}

/// Polls a call, which goes on with what its handler has returned.
pub(super) fn poll(call: &mut Call, cx: &mut Context<'_>) -> Poll<Answered> {
    loop {
        let Ok(mut answer) = ready!(call.as_mut().poll(cx));
        let Some(Later(later)) = answer.extensions_mut().remove() else {
            return Poll::Ready(Ok(answer));
        };
        match later.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(later) => *call = later,
            None => return Poll::Ready(Ok(answer)),
        }
    }
}

/// Returns an answer of one message, as tonic does for a handler that returned it.
fn encoded<T: Message + 'static>(message: T) -> http::Response<Body> {
    let encoder = ProstCodec::<T, ()>::default().encoder();
    let message = tokio_stream::once(Ok(message));
    let compression = SingleMessageCompressionOverride::default();
    let body = EncodeBody::new_server(encoder, message, None, compression, None);
    let mut answer = http::Response::new(Body::new(body));
    answer.headers_mut().insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    use hive_proto::v1::WakeResponse;
    use tokio::sync::oneshot;

    /// Returns the call of a handler that returns this response.
    fn call(response: Response<WakeResponse>) -> Call {
        let (_, message, extensions) = response.into_parts();
        let mut answer = encoded(message);
        *answer.extensions_mut() = extensions;
        Box::pin(std::future::ready(Ok(answer)))
    }

    async fn answer(mut call: Call) -> http::Response<Body> {
        let Ok(answer) = std::future::poll_fn(|cx| poll(&mut call, cx)).await;
        answer
    }

    #[tokio::test]
    async fn a_call_ends_with_the_later_answer() {
        let (say, said) = oneshot::channel();
        let later = response(async move { said.await.map_err(|_| Status::aborted("silence")) });
        let waiting = tokio::spawn(answer(call(later)));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "the response of the handler is no answer");
        say.send(WakeResponse::default()).expect("it listens");
        let answered = waiting.await.expect("an answer");
        assert_eq!(answered.headers()[CONTENT_TYPE], "application/grpc");
        assert!(!answered.headers().contains_key(Status::GRPC_STATUS));
    }

    #[tokio::test]
    async fn a_later_refusal_is_a_status() {
        let later = response(async { Err(Status::aborted("no")) });
        assert_eq!(answer(call(later)).await.headers()[Status::GRPC_STATUS], "10");
    }
}
