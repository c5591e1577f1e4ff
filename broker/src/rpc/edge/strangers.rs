//! Strangers: peers that may not use a socket, and connections for which a socket has no place.
//!
//! Invariant: over all sockets, strangers have a few places, and are accepted at a limited rate.
//! However fast they connect, most of the broker's time is left to others. They delay only those
//! who connect to the same socket.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Connections of peers that may not use their sockets, over all sockets. Others are closed.
const PLACES: usize = 8;
/// Time for each connection of a stranger: while they connect without end, 10,000 in a second. One
/// that has a place costs as much as a peer's that may use its socket, even if it is gone already.
const PERIOD: Duration = Duration::from_micros(100);
/// Connections that cause no pause. More than come in a millisecond, the resolution of a timer.
const BURST: u32 = 64;

/// What all sockets have for strangers.
#[derive(Debug)]
pub(super) struct Strangers {
    places: Arc<Semaphore>,
    /// When all that were accepted so far have had their time.
    paid: Mutex<Instant>,
}

impl Strangers {
    pub(super) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(PLACES)), paid: Mutex::new(Instant::now()) }
    }

    /// Takes a place, in which the peer is answered why it may not use the socket.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Notes that a stranger's connection was accepted. Returns the pause after which its socket
    /// may accept the next one.
    pub(super) fn pause(&self) -> Duration {
        let now = Instant::now();
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        *paid = now.max(*paid) + PERIOD;
        paid.duration_since(now).saturating_sub(PERIOD * BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_a_burst_each_waits_for_its_time_whatever_socket_it_came_to() {
        let strangers = Strangers::new();
        for _ in 0..BURST {
            assert_eq!(strangers.pause(), Duration::ZERO);
        }
        assert_eq!(strangers.pause(), PERIOD);
        assert_eq!(strangers.pause(), PERIOD * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_time_allows_one_burst_and_no_more() {
        let strangers = Strangers::new();
        tokio::time::advance(Duration::from_secs(3600)).await;
        let at_once = (0..10 * BURST).filter(|_| strangers.pause().is_zero()).count();
        assert_eq!(at_once, BURST as usize);
    }
}
