//! Ends of sockets and of their connections: at once, or after some last words.
//!
//! Invariant: no connection of an agent that was retired or purged reads anything more, and none is
//! left once a later agent has its name.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hive_core::name::AgentName;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How long a connection still writes after it has stopped reading.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// The end of a socket and of its connections.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    now: CancellationToken,
    soon: CancellationToken,
}

impl Closing {
    /// Returns the end of a socket, which is closed at the latest when `parent` is cancelled.
    #[must_use]
    pub(super) fn of(parent: &CancellationToken) -> Self {
        let now = parent.child_token();
        Self { soon: now.child_token(), now }
    }

    /// Closes at once: nothing is read or written any more.
    pub(super) fn now(&self) {
        self.now.cancel();
    }

    /// Reads nothing more, but writes for a second, so that streams end with their reason.
    pub(super) fn soon(&self) {
        self.soon.cancel();
    }

    /// Waits until it closes, at once or soon.
    pub(super) async fn begun(&self) {
        self.soon.cancelled().await;
    }

    /// Is ready when it closes at once.
    pub(super) fn until_now(&self) -> WaitForCancellationFutureOwned {
        self.now.clone().cancelled_owned()
    }

    /// Is ready when it closes, at once or soon.
    pub(super) fn until_soon(&self) -> WaitForCancellationFutureOwned {
        self.soon.clone().cancelled_owned()
    }
}

/// The sockets whose connections are in their last second.
#[derive(Debug, Default)]
pub(super) struct Leaving(Mutex<Vec<(Instant, AgentName, Closing)>>);

impl Leaving {
    /// Closes a socket soon.
    pub(super) fn add(&self, name: &AgentName, closing: &Closing) {
        closing.soon();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(since, ..)| since.elapsed() <= LAST_WORDS);
        all.push((Instant::now(), name.clone(), closing.clone()));
    }

    /// Closes those of this name at once.
    pub(super) fn cut(&self, name: &AgentName) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(_, who, _)| who == name).for_each(|(.., closing)| closing.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_purge_or_a_later_agent_of_the_name_cuts_what_is_leaving() {
        let [bob, eve] = ["bob", "eve"].map(|name| AgentName::parse(name).expect("a name"));
        let leaving = Leaving::default();
        let closings = [&bob, &bob, &eve].map(|name| {
            let closing = Closing::of(&CancellationToken::new());
            leaving.add(name, &closing);
            closing
        });
        leaving.cut(&bob);
        assert_eq!(closings.clone().map(|closing| closing.now.is_cancelled()), [true, true, false]);
        assert!(closings.iter().all(|closing| closing.soon.is_cancelled()));
    }
}
