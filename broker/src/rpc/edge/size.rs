//! Sizes of requests: a message that is longer than its call allows is refused by its announced
//! length.
//!
//! A message follows a flag and four bytes of length. Because these are checked first, a body of
//! megabytes costs the broker only its first piece, and no other call waits until it is read and
//! decoded. Streams are checked message by message. Invariant: an accepted request passes byte for
//! byte; no byte of a refused message is decoded.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hive_core::limits::{
    ANSWER_BYTES_MAX, OPERATOR_REQUEST_BYTES_MAX, QUESTION_BYTES_MAX, REQUEST_BYTES_MAX,
    REQUEST_FIELDS_BYTES_MAX, REQUEST_LIST_BYTES_MAX,
};
use http_body::{Body as _, Frame};
use prost::bytes::Bytes;
use tonic::Status;
use tonic::body::Body;

use super::conn::Owner;
use super::method::Size;
use crate::engine::Refusal;

/// Bytes of a flag and a length.
const PREFIX_BYTES: usize = 5;

/// The limit of a call's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rpc) struct SizeLimit {
    /// Limit of the message in bytes.
    bytes: usize,
    /// The limit that the refusal names: a part of the message, its field, and its bytes.
    stated: (&'static str, Option<&'static str>, usize),
}

impl SizeLimit {
    /// Returns the limit of messages of this size on this owner's socket.
    pub(in crate::rpc) fn new(owner: &Owner, size: Size, body_bytes_max: u32) -> Self {
        let whole = |bytes| Self { bytes, stated: ("it", None, bytes) };
        let part = |part, max| Self { bytes: REQUEST_BYTES_MAX, stated: (part, Some("text"), max) };
        let body = usize::try_from(body_bytes_max).unwrap_or(usize::MAX);
        match (owner, size) {
            (Owner::Operator, _) => whole(OPERATOR_REQUEST_BYTES_MAX),
            (Owner::Agent(_), Size::Body) => Self {
                bytes: body.saturating_add(REQUEST_FIELDS_BYTES_MAX),
                stated: ("a body", Some("body"), body),
            },
            (Owner::Agent(_), Size::Question) => part("a question", QUESTION_BYTES_MAX),
            (Owner::Agent(_), Size::Answer) => part("an answer", ANSWER_BYTES_MAX),
            (Owner::Agent(_), Size::List) => whole(REQUEST_LIST_BYTES_MAX),
            (Owner::Agent(_), Size::Plain) => whole(REQUEST_BYTES_MAX),
        }
    }

    /// Returns the same body, up to the first message that is too long. It waits for the first
    /// message, because a client may send it late.
    pub(in crate::rpc) async fn on(self, body: Body) -> Body {
        let mut limited = LimitedBody {
            body,
            limit: self,
            known: 0,
            length: 0,
            rest: 0,
            messages: 0,
            early: VecDeque::new(),
        };
        while limited.messages == 0 {
            match std::future::poll_fn(|cx| limited.poll_body(cx)).await {
                Some(frame) => limited.early.push_back(frame),
                None => break,
            }
            if matches!(limited.early.back(), Some(Err(_))) {
                break;
            }
        }
        Body::new(limited)
    }
}

/// A request's body with the state of its present message.
#[derive(Debug)]
struct LimitedBody {
    body: Body,
    limit: SizeLimit,
    /// Received bytes of its prefix.
    known: usize,
    /// The length in the prefix; the flag has been shifted out.
    length: u32,
    /// Bytes of the message that are still to come.
    rest: usize,
    /// Complete messages.
    messages: usize,
    /// Frames that were read early.
    early: VecDeque<Result<Frame<Bytes>, Status>>,
}

impl LimitedBody {
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref())
            && let Err(refusal) = self.judge(data)
        {
            return Poll::Ready(Some(Err(refusal.into())));
        }
        Poll::Ready(frame)
    }

    fn judge(&mut self, mut data: &[u8]) -> Result<(), Refusal> {
        loop {
            let passed = self.rest.min(data.len());
            self.rest -= passed;
            self.messages += usize::from(passed > 0 && self.rest == 0);
            let Some((byte, after)) = data[passed..].split_first() else { return Ok(()) };
            data = after;
            self.length = (self.length << 8) | u32::from(*byte);
            self.known += 1;
            if self.known == PREFIX_BYTES {
                self.known = 0;
                self.rest = usize::try_from(self.length).unwrap_or(usize::MAX);
                self.messages += usize::from(self.rest == 0);
                if self.rest > self.limit.bytes {
                    let (part, field, max) = self.limit.stated;
                    let bytes = self.length;
                    return Err(Refusal::RequestTooLarge { bytes, part, field, max });
                }
            }
        }
    }
}

impl http_body::Body for LimitedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.early.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => self.poll_body(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.early.is_empty() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(limit: usize, pieces: &[&[u8]]) -> Result<(), Refusal> {
        let limit = SizeLimit { bytes: limit, stated: ("it", None, limit) };
        let mut limited = LimitedBody {
            body: Body::empty(),
            limit,
            known: 0,
            length: 0,
            rest: 0,
            messages: 0,
            early: VecDeque::new(),
        };
        pieces.iter().try_for_each(|piece| limited.judge(piece))
    }

    #[test]
    fn each_message_of_a_stream_is_judged_wherever_it_is_cut() {
        // An empty message, one of three bytes, one at the limit, and one longer than it.
        let stream = b"\0\0\0\0\0\x01\0\0\0\x03abc\0\0\0\0\x05ABCDE\0\0\0\0\x06";
        for at in 0..stream.len() {
            let (one, two) = stream.split_at(at);
            assert!(judged(6, &[one, two]).is_ok(), "cut at {at}");
            let refusal = judged(5, &[one, two]);
            assert!(
                matches!(refusal, Err(Refusal::RequestTooLarge { bytes: 6, max: 5, .. })),
                "cut at {at}: {refusal:?}"
            );
            assert!(
                judged(5, &[one, &two[..two.len() - 1]]).is_ok(),
                "cut at {at}: the length is not known yet"
            );
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert!(judged(6, &bytes).is_ok() && judged(5, &bytes).is_err());
    }

    /// A body that a test sends piece by piece.
    #[derive(Debug)]
    struct Said(tokio::sync::mpsc::UnboundedReceiver<Bytes>);

    impl http_body::Body for Said {
        type Data = Bytes;
        type Error = Status;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    #[tokio::test]
    async fn a_call_begins_when_its_first_message_is_there() {
        let limit = SizeLimit { bytes: 9, stated: ("it", None, 9) };
        let (say, said) = tokio::sync::mpsc::unbounded_channel();
        let mut begun = tokio::spawn(limit.on(Body::new(Said(said))));
        let pieces: [&[u8]; 3] = [b"\0\0\0", b"\0\x03ab", b"c\0\0"];
        for piece in pieces {
            tokio::task::yield_now().await;
            assert!(!begun.is_finished(), "before {piece:?}");
            say.send(Bytes::from_static(piece)).expect("it listens");
        }
        let mut body = (&mut begun).await.expect("it goes on");
        drop(say);
        let mut came = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
        {
            came.extend_from_slice(&frame.expect("no error").into_data().expect("data"));
        }
        assert_eq!(came, pieces.concat(), "nothing is lost");
    }

    #[test]
    fn a_flag_is_no_part_of_the_length() {
        assert!(judged(1, &[b"\xff\0\0\0\x01x\xff\0\0\0\x01"]).is_ok());
        let most = judged(1, &[b"\0\xff\xff\xff\xff"]);
        assert!(matches!(most, Err(Refusal::RequestTooLarge { bytes: u32::MAX, .. })), "{most:?}");
    }
}
