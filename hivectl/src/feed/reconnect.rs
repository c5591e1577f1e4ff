//! What a watch does when the broker goes away: it waits until the broker is back, and watches on.
//!
//! Invariant: a refusal is final; only a broker that is not there, or not ready, is waited for.

use std::path::Path;
use std::time::Duration;

use crate::connect::{Broker, transport_was_lost};
use crate::error::Failure;
use crate::output::note;

const RECONNECT_FIRST: Duration = Duration::from_millis(100);
const RECONNECT_LONGEST: Duration = Duration::from_secs(5);

/// A time without a broker.
#[derive(Debug)]
pub(crate) struct Absence {
    pause: Duration,
}

impl Absence {
    /// It begins, and a person is told.
    pub(crate) fn begin() -> Self {
        note("the broker is gone; waiting for it to come back");
        Self { pause: RECONNECT_FIRST }
    }

    /// Waits for a broker that answers, longer each time.
    pub(crate) async fn broker(&mut self, socket: &Path, timeout: Duration) -> Broker {
        loop {
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).min(RECONNECT_LONGEST);
            if let Ok(broker) = Broker::connect(socket, timeout).await {
                return broker;
            }
        }
    }

    /// What came of watching again: `None` where the absence lasts.
    pub(crate) fn ends<T>(&self, watched: Result<T, Failure>) -> Option<Result<T, Failure>> {
        match watched {
            Ok(watch) => {
                note("the broker is back");
                Some(Ok(watch))
            }
            Err(Failure::Refused(status)) if is_weather(&status) => None,
            Err(Failure::TimedOut { .. } | Failure::Connect(_)) => None,
            Err(failure) => Some(Err(failure)),
        }
    }
}

/// Whether the broker went away, rather than refused.
pub(crate) fn is_weather(status: &tonic::Status) -> bool {
    transport_was_lost(status) || hive_proto::status::is_transient(status)
}
