//! Requests for logs, from agents to the launcher.
//!
//! They exist in memory only, because each has a caller that waits. Invariants: a request whose
//! caller has gone, or whose launcher has ended, is gone; no agent takes the places of all others.

use std::sync::Arc;

use hive_core::name::AgentName;
use hive_core::time::WallTime;

use super::{Launcher, Launches};
use crate::store::AgentKey;
use crate::sync::oneshot;

/// Maximum requests that wait for the launcher.
const ASKED_MAX: usize = 16;
/// Maximum requests of one agent that wait for the launcher.
const ASKED_BY_ONE_MAX: usize = 2;

/// What is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The output of the harness of an agent.
    Harness(AgentName),
    /// The journal of the host about a unit.
    Journal {
        /// The full name of the unit.
        unit: String,
        /// Only lines since then.
        since: Option<WallTime>,
    },
}

/// The answer of a launcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The lines.
    pub text: String,
    /// Whether lines are left out because of the limit of bytes.
    pub truncated: bool,
    /// Why they cannot be read; empty if they were.
    pub problem: String,
}

/// A request for logs.
#[derive(Debug)]
pub(super) struct Request {
    by: AgentKey,
    answer: oneshot::Sender<Answer>,
    /// What to send to the launcher, unless it was sent.
    unsent: Option<(Source, u32)>,
}

/// Why nothing can be asked of the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// There is none.
    Offline,
    /// Too many requests wait.
    Busy,
}

/// A request that waits. Without it there is no request.
#[derive(Debug)]
pub(crate) struct Asked {
    id: u64,
    answer: oneshot::Receiver<Answer>,
    launches: Arc<Launches>,
}

impl Asked {
    /// Waits for the answer; `None` if the launcher has ended.
    pub(crate) async fn answer(mut self) -> Option<Answer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.launches.lock().asked.remove(&self.id);
    }
}

impl Launches {
    /// Asks the launcher for logs.
    pub(crate) fn ask(
        self: &Arc<Self>,
        by: AgentKey,
        source: Source,
        lines: u32,
    ) -> Result<Asked, NoPlace> {
        let mut inner = self.lock();
        if !self.is_attached() {
            return Err(NoPlace::Offline);
        }
        let of_one = inner.asked.values().filter(|request| request.by == by).count();
        if inner.asked.len() >= ASKED_MAX || of_one >= ASKED_BY_ONE_MAX {
            return Err(NoPlace::Busy);
        }
        inner.last_asked += 1;
        let id = inner.last_asked;
        let (sender, answer) = oneshot::channel();
        let unsent = Some((source, lines));
        inner.asked.insert(id, Request { by, answer: sender, unsent });
        drop(inner);
        self.news.notify_one();
        Ok(Asked { id, answer, launches: Arc::clone(self) })
    }

    /// Passes on an answer, unless it is not awaited any more.
    pub(crate) fn answer(&self, id: u64, answer: Answer) {
        let request = self.lock().asked.remove(&id);
        if let Some(request) = request {
            // The caller may have gone at this moment.
            drop(request.answer.send(answer));
        }
    }
}

impl Launcher {
    /// Takes the requests for logs that were not sent yet, with their numbers.
    pub(crate) fn take_asked(&self) -> Vec<(u64, Source, u32)> {
        let mut inner = self.0.lock();
        let requests = inner.asked.iter_mut();
        requests
            .filter_map(|(id, request)| {
                request.unsent.take().map(|(source, lines)| (*id, source, lines))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source::Harness(AgentName::parse("kim").expect("a name"))
    }

    #[tokio::test]
    async fn a_request_is_sent_once_and_answered_once() {
        let launches = Arc::new(Launches::default());
        let ask = |by| launches.ask(AgentKey(by), source(), 9);
        assert!(matches!(ask(1), Err(NoPlace::Offline)));
        let launcher = launches.attach().expect("there is none");
        let first = ask(1).expect("a place");
        launcher.changed().await;
        assert_eq!(launcher.take_asked(), [(1, source(), 9)]);
        assert_eq!(launcher.take_asked(), []);
        let text = |text: &str| Answer { text: text.to_owned(), ..Answer::default() };
        launches.answer(7, text("of no request"));
        launches.answer(1, text("the first"));
        launches.answer(1, text("the second"));
        assert_eq!(first.answer().await, Some(text("the first")));
        let second = ask(1).expect("a place");
        drop(launcher);
        assert_eq!(second.answer().await, None, "the launcher has ended");
        let launcher = launches.attach().expect("the place is free");
        let _third = ask(1).expect("a place");
        assert_eq!(launcher.take_asked(), [(3, source(), 9)], "no number is used twice");
    }

    #[test]
    fn one_agent_takes_two_places_and_who_goes_gives_them_back() {
        let launches = Arc::new(Launches::default());
        let launcher = launches.attach().expect("there is none");
        let ask = |by| launches.ask(AgentKey(by), source(), 9);
        let of_one: Vec<Asked> =
            [ask(1), ask(1)].into_iter().map(|one| one.expect("room")).collect();
        assert!(matches!(ask(1), Err(NoPlace::Busy)));
        let others: Vec<Asked> = (2..16).map(|by| ask(by).expect("a place")).collect();
        assert!(matches!(ask(16), Err(NoPlace::Busy)));
        drop(of_one);
        assert_eq!(launcher.take_asked().len(), others.len(), "the others");
        ask(1).expect("a place");
    }
}
