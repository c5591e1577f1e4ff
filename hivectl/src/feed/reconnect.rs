//! Reconnecting a watch after an outage of the broker.
//!
//! Invariant: a refusal is final; only a broker that is not there, or not ready, is waited for.

use std::path::Path;
use std::time::Duration;

use crate::connect::Broker;
use crate::error::Failure;
use crate::output::note;

/// The first and the longest pause between two tries.
pub(crate) const RECONNECT_FIRST: Duration = Duration::from_millis(100);
pub(crate) const RECONNECT_LONGEST: Duration = Duration::from_secs(5);

/// Waits until the broker is back and a watch has begun again, with a longer pause each time.
pub(crate) async fn reconnect<T, F: Future<Output = Result<T, Failure>>>(
    socket: &Path,
    timeout: Duration,
    watch: impl Fn(Broker) -> F,
) -> Result<T, Failure> {
    note("the broker is gone; waiting for it to come back");
    let mut pause = RECONNECT_FIRST;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RECONNECT_LONGEST);
        let Ok(broker) = Broker::connect(socket, timeout).await else { continue };
        match watch(broker).await {
            Ok(watched) => {
                note("the broker is back");
                return Ok(watched);
            }
            Err(Failure::Refused(status)) if hive_proto::status::is_transient(&status) => {}
            Err(Failure::TimedOut { .. } | Failure::Connect(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
}
