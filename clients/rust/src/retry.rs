//! Repeating: the one place in which this crate makes a call again.
//!
//! Invariant: the identical bytes are repeated, only if their outcome is unknown or the broker asks
//! for it, and never beyond the time of the caller.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};

use crate::error::Error;

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause of a client's own.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long an answer is waited for: it can be lost without a broken connection.
const ATTEMPT_MAX: Duration = Duration::from_secs(10);

/// The pauses between repeats.
#[derive(Debug)]
pub(crate) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self { next: PAUSE_MIN }
    }

    /// Returns the pause after this error: what the broker asks for, or a longer one each time,
    /// with jitter so that clients do not come back together.
    pub(crate) fn after(&mut self, error: &Error) -> Duration {
        if let Some(delay) = error.retry_after() {
            return delay.mul_f64(1.0 + random() / 4.0);
        }
        let pause = self.next.mul_f64(0.5 + random() / 2.0);
        self.next = (self.next * 2).min(PAUSE_MAX);
        pause
    }
}

/// Returns a random number from 0 to 1.
fn random() -> f64 {
    // Without chance on this host all clients pause equally long, which only costs time.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

/// Makes attempts until one has an answer, or a refusal that repeating cannot repair, or the time
/// is over. Each may take ten seconds, and as much longer as its call waits for something.
///
/// At the end of the time the error is the last refusal with a reason, else DEADLINE_EXCEEDED.
pub(crate) async fn repeated<T, F>(
    socket: &Path,
    within: Duration,
    wait: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Status>>,
{
    let end = Instant::now() + within;
    let mut pauses = Pauses::new();
    let mut last = late(socket, within, None);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let error = match timeout(left.min(ATTEMPT_MAX + wait), attempt()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) => Error::from(status),
            Err(_) => late(socket, within, None),
        };
        if !error.is_transient() {
            return Err(error);
        }
        let pause = pauses.after(&error);
        if !error.reason().is_empty() {
            last = error;
        } else if last.reason().is_empty() && error.code() != Code::DeadlineExceeded {
            last = late(socket, within, Some(&error));
        }
        if Instant::now() + pause >= end {
            return Err(last);
        }
        sleep(pause).await;
    }
}

/// Returns the error of a call that got no answer in its time, with what the connection did.
fn late(socket: &Path, within: Duration, cause: Option<&Error>) -> Error {
    let cause = cause.map(|error| format!(" ({})", error.message())).unwrap_or_default();
    let message = format!(
        "no answer from the broker at {} within {within:?}{cause}: check that hived runs and that \
         this is its socket, or allow more time; the outcome is not known, so a repeat needs the \
         same request id",
        socket.display()
    );
    Error::local(Code::DeadlineExceeded, message)
}

#[cfg(test)]
mod tests {
    use tonic_types::{ErrorDetails, StatusExt as _};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn socket() -> &'static Path {
        Path::new("/run/hive.sock")
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_call_is_repeated_until_it_is_answered() {
        let mut attempts = 0;
        let answered = repeated(socket(), 10 * SECOND, Duration::ZERO, || {
            attempts += 1;
            let result = if attempts < 4 { Err(Status::unavailable("away")) } else { Ok(attempts) };
            std::future::ready(result)
        });
        assert_eq!(answered.await, Ok(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_ends_an_attempt_and_not_the_call() {
        let mut attempts = 0;
        let began = Instant::now();
        let answered = repeated(socket(), 60 * SECOND, 5 * SECOND, || {
            attempts += 1;
            let is_lost = attempts == 1;
            async move { if is_lost { std::future::pending().await } else { Ok(()) } }
        });
        assert_eq!(answered.await, Ok(()));
        assert!((15..16).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_answer_the_error_names_the_socket_and_the_cause() {
        let began = Instant::now();
        let failed = repeated::<(), _>(socket(), 2 * SECOND, Duration::ZERO, || {
            std::future::ready(Err(Status::unavailable("away")))
        });
        let error = failed.await.expect_err("never answered");
        assert_eq!(error.code(), Code::DeadlineExceeded);
        let begin = "no answer from the broker at /run/hive.sock within 2s (away): check";
        assert!(error.message().starts_with(begin), "{error}");
        assert!(began.elapsed() <= 2 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_refusal_is_the_error_when_the_time_is_over() {
        let mut attempts = 0;
        let failed = repeated::<(), _>(socket(), 2 * SECOND, Duration::ZERO, || {
            attempts += 1;
            let info = ErrorDetails::with_error_info("DRAINING", crate::ERROR_DOMAIN, []);
            let refused = Status::with_error_details(Code::Unavailable, "it stops", info);
            let away = Status::unavailable("away");
            std::future::ready(Err(if attempts == 1 { refused } else { away }))
        });
        let error = failed.await.expect_err("never answered");
        assert_eq!((error.code(), error.reason()), (Code::Unavailable, "DRAINING"));
        assert!(attempts > 2, "{attempts}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_repeat_repairs_is_not_repeated() {
        for status in [Status::unimplemented("no"), Status::invalid_argument("no")] {
            let mut attempts = 0;
            let failed = repeated::<(), _>(socket(), SECOND, Duration::ZERO, || {
                attempts += 1;
                std::future::ready(Err(status.clone()))
            });
            assert_eq!(failed.await.expect_err("refused").code(), status.code());
            assert_eq!(attempts, 1);
        }
    }

    #[test]
    fn a_delay_of_the_broker_comes_before_a_pause_of_our_own() {
        let mut pauses = Pauses::new();
        let mut details = ErrorDetails::new();
        details.set_retry_info(Some(20 * SECOND));
        let asks = Error::from(Status::with_error_details(Code::Unavailable, "later", details));
        for _ in 0..20 {
            let pause = pauses.after(&asks);
            assert!((20 * SECOND..=25 * SECOND).contains(&pause), "{pause:?}");
        }
        let own = Error::local(Code::Unavailable, "away");
        for _ in 0..20 {
            assert!(pauses.after(&own) <= PAUSE_MAX);
        }
        assert!(pauses.after(&own) >= PAUSE_MAX / 2);
    }
}
