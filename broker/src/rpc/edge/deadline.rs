//! Deadlines: a call whose deadline passes before its answer begins ends with DEADLINE_EXCEEDED.
//!
//! The deadline is the client's, in the header `grpc-timeout`. A client has a timer of its own, and
//! when that one fires it sees no answer. Invariant: the deadline here is a little earlier and is
//! compared with the clock at each poll, so a call ends by it and its client sees why.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderMap;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;
use tonic::body::Body;

const HEADER: &str = "grpc-timeout";
/// By how much a call ends before its deadline; at most a quarter of it.
const EARLIER: Duration = Duration::from_millis(1);
/// Most digits of a deadline, by the specification of gRPC.
const DIGITS_MAX: usize = 8;

/// The time that an answer with leases has for its way to the client, before the deadline; at most
/// half of the deadline.
const WAY: Duration = Duration::from_millis(5);

/// The moments of a call with a deadline, in the extensions of its request.
#[derive(Clone, Copy, Debug)]
pub(in crate::rpc) struct Moments {
    /// Its deadline passes.
    pub(in crate::rpc) passes: Instant,
    /// From this moment on it leases nothing, because the answer would come too late.
    pub(in crate::rpc) leases_until: Instant,
}

/// The deadline of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::rpc) struct Deadline {
    /// The header, as the client wrote it.
    text: String,
    span: Duration,
}

impl Deadline {
    /// Returns the deadline in these headers. One that cannot be read is none.
    pub(in crate::rpc) fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(HEADER)?.to_str().ok()?;
        let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        if digits.len() > DIGITS_MAX || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number: u64 = digits.parse().ok()?;
        let span = match unit {
            "H" => Duration::from_secs(number * 3600),
            "M" => Duration::from_secs(number * 60),
            "S" => Duration::from_secs(number),
            "m" => Duration::from_millis(number),
            "u" => Duration::from_micros(number),
            "n" => Duration::from_nanos(number),
            _ => return None,
        };
        Some(Self { text: text.to_owned(), span })
    }

    /// Returns the call, which ends at this deadline; the time begins now.
    pub(in crate::rpc) fn on<C>(self, call: C) -> Timed<C> {
        let at = Instant::now() + self.span.saturating_sub(EARLIER.min(self.span / 4));
        Timed { call, at, timer: Box::pin(sleep_until(at)), deadline: self }
    }

    /// Returns the moments of the call, if it begins now.
    pub(in crate::rpc) fn moments(&self) -> Moments {
        let passes = Instant::now() + self.span;
        Moments { passes, leases_until: passes - WAY.min(self.span / 2) }
    }

    fn exceeded(&self) -> Status {
        Status::deadline_exceeded(format!(
            "the deadline of the call, `{}`, passed before it was answered; repeat the identical request with a longer one",
            self.text
        ))
    }
}

/// A call with its deadline.
#[derive(Debug)]
pub(in crate::rpc) struct Timed<C> {
    call: C,
    at: Instant,
    timer: Pin<Box<Sleep>>,
    deadline: Deadline,
}

impl<C, E> Future for Timed<C>
where
    C: Future<Output = Result<http::Response<Body>, E>> + Unpin,
{
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(answer) = Pin::new(&mut self.call).poll(cx) {
            return Poll::Ready(answer);
        }
        // The clock decides: after a stall the timer may not have fired yet.
        if self.timer.as_mut().poll(cx).is_ready() || Instant::now() >= self.at {
            return Poll::Ready(Ok(self.deadline.exceeded().into_http()));
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, pending, ready};

    use super::*;

    type Answered = Result<http::Response<Body>, Infallible>;

    fn of(text: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, text.parse().expect("a value"));
        Deadline::of(&headers).map(|deadline| deadline.span)
    }

    #[test]
    fn the_header_is_read_as_the_specification_of_grpc_says() {
        for (text, span) in [
            ("2H", Duration::from_secs(7200)),
            ("3M", Duration::from_secs(180)),
            ("42S", Duration::from_secs(42)),
            ("50m", Duration::from_millis(50)),
            ("7u", Duration::from_micros(7)),
            ("99999999n", Duration::from_nanos(99_999_999)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(of(text), Some(span), "{text}");
        }
        for text in ["", "S", "5", "5s", "-5S", "+5S", "123456789S", "5 S", "1.5S", "5\u{b5}"] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(Deadline::of(&HeaderMap::new()), None);
    }

    fn deadline(span: Duration) -> Deadline {
        Deadline { text: "a span".to_owned(), span }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_before_its_deadline_even_if_it_is_short() {
        for span in [Duration::from_secs(5), Duration::from_millis(2), Duration::from_micros(40)] {
            let start = Instant::now();
            let call: std::future::Pending<Answered> = pending();
            let answer = deadline(span).on(call).await.expect("an answer");
            assert_eq!(answer.headers()[Status::GRPC_STATUS], "4");
            // The timers of the runtime have the granularity of a millisecond.
            assert!(start.elapsed() <= span.max(EARLIER), "{span:?}: {:?}", start.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_with_leases_has_time_for_its_way() {
        for (span, way) in [(5_000, 5), (20, 5), (10, 5), (4, 2), (0, 0)] {
            let Moments { passes, leases_until } = deadline(Duration::from_millis(span)).moments();
            assert_eq!(passes - Instant::now(), Duration::from_millis(span));
            assert_eq!(passes - leases_until, Duration::from_millis(way), "{span} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_there_is_given() {
        let call: Ready<Answered> = ready(Ok(http::Response::new(Body::empty())));
        let answer = deadline(Duration::ZERO).on(call).await.expect("an answer");
        assert!(!answer.headers().contains_key(Status::GRPC_STATUS));
    }
}
