//! Requests' sizes: what is longer than its call may be is refused by the length that it announces.
//!
//! A message comes behind a flag and four bytes of length. Judged by these, a body of megabytes costs the broker the first piece of it, and no
//! other call waits until all of it is read and decoded. Streams are judged message by message.
//! Invariant: what passes is what came, byte for byte; nothing of a message that does not pass is decoded.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hive_core::limits::{
    ANSWER_BYTES_MAX, OPERATOR_REQUEST_BYTES_MAX, QUESTION_BYTES_MAX, REQUEST_BYTES_MAX, REQUEST_FIELDS_BYTES_MAX,
    REQUEST_LIST_BYTES_MAX,
};
use http_body::{Frame, SizeHint};
use prost::bytes::Bytes;
use tonic::Status;
use tonic::body::Body;

use super::conn::Owner;
use crate::engine::Refusal;

/// A flag and a length.
const PREFIX_BYTES: usize = 5;

/// How long a call's messages may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// Of the message.
    bytes: usize,
    /// What the caller is told: which part of it may have how many bytes.
    told: (&'static str, usize),
}

impl Bound {
    /// That of a path, on this owner's socket.
    pub(super) fn of(owner: &Owner, path: &str, body_bytes_max: u32) -> Self {
        let whole = |bytes| Self { bytes, told: ("it", bytes) };
        let short = |part, max| Self { bytes: REQUEST_BYTES_MAX, told: (part, max) };
        let body = usize::try_from(body_bytes_max).unwrap_or(usize::MAX);
        match (owner, path.rsplit('/').next()) {
            (Owner::Operator, _) => whole(OPERATOR_REQUEST_BYTES_MAX),
            (Owner::Agent(_), Some("SendMessage" | "Wake" | "CreateReminder")) => {
                Self { bytes: body.saturating_add(REQUEST_FIELDS_BYTES_MAX), told: ("a body", body) }
            }
            (Owner::Agent(_), Some("AskQuestion")) => short("a question", QUESTION_BYTES_MAX),
            (Owner::Agent(_), Some("AnswerQuestion")) => short("an answer", ANSWER_BYTES_MAX),
            (Owner::Agent(_), Some("ReplaceLooseEnds" | "ReportTurnEvents" | "EndTurn")) => whole(REQUEST_LIST_BYTES_MAX),
            (Owner::Agent(_), _) => whole(REQUEST_BYTES_MAX),
        }
    }

    /// The same body, up to the first message that is longer.
    pub(super) fn on(self, body: Body) -> Body {
        Body::new(Bounded { body, bound: self, known: 0, length: 0, rest: 0 })
    }
}

/// A request's body with what is known of the message that comes.
#[derive(Debug)]
struct Bounded {
    body: Body,
    bound: Bound,
    /// Bytes of its prefix that have come.
    known: usize,
    /// What they say; the flag has been pushed out by the end.
    length: u32,
    /// Bytes of a message that are still to come.
    rest: usize,
}

impl Bounded {
    fn judge(&mut self, mut data: &[u8]) -> Result<(), Refusal> {
        loop {
            let passed = self.rest.min(data.len());
            self.rest -= passed;
            let Some((byte, after)) = data[passed..].split_first() else { return Ok(()) };
            data = after;
            self.length = (self.length << 8) | u32::from(*byte);
            self.known += 1;
            if self.known == PREFIX_BYTES {
                self.known = 0;
                self.rest = usize::try_from(self.length).unwrap_or(usize::MAX);
                if self.rest > self.bound.bytes {
                    let (part, max) = self.bound.told;
                    return Err(Refusal::RequestTooLarge { bytes: self.length, part, max });
                }
            }
        }
    }
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref())
            && let Err(refusal) = self.judge(data)
        {
            return Poll::Ready(Some(Err(refusal.into())));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(bound: usize, pieces: &[&[u8]]) -> Result<(), Refusal> {
        let bound = Bound { bytes: bound, told: ("it", bound) };
        let mut bounded = Bounded { body: Body::empty(), bound, known: 0, length: 0, rest: 0 };
        pieces.iter().try_for_each(|piece| bounded.judge(piece))
    }

    #[test]
    fn each_message_of_a_stream_is_judged_wherever_it_is_cut() {
        // An empty one, three bytes, the bound, and one more than it.
        let stream = b"\0\0\0\0\0\x01\0\0\0\x03abc\0\0\0\0\x05ABCDE\0\0\0\0\x06";
        for at in 0..stream.len() {
            let (one, two) = stream.split_at(at);
            assert!(judged(6, &[one, two]).is_ok(), "cut at {at}");
            let refusal = judged(5, &[one, two]);
            assert!(matches!(refusal, Err(Refusal::RequestTooLarge { bytes: 6, max: 5, .. })), "cut at {at}: {refusal:?}");
            assert!(judged(5, &[one, &two[..two.len() - 1]]).is_ok(), "cut at {at}: the length is not known yet");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert!(judged(6, &bytes).is_ok() && judged(5, &bytes).is_err());
    }

    #[test]
    fn a_flag_is_no_part_of_the_length() {
        assert!(judged(1, &[b"\xff\0\0\0\x01x\xff\0\0\0\x01"]).is_ok());
        let most = judged(1, &[b"\0\xff\xff\xff\xff"]);
        assert!(matches!(most, Err(Refusal::RequestTooLarge { bytes: u32::MAX, .. })), "{most:?}");
    }
}
