//! A voice: somebody on a socket who asks for things until they know what came of it.
//!
//! Invariant: one request keeps its request id through all repetitions, and every try is on the
//! tape.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hive_history::{Answer, Mark, Op};
use hive_proto::v1;
use tokio::sync::watch;
use tonic::transport::Channel;

use super::perform::{self, Carried};
use super::seen;
use super::tape::Tape;

/// No call may take longer; then nobody knows what came of it.
const CALL_MAX: Duration = Duration::from_secs(20);
/// So long one waits for a broker before trying all the same.
const BROKER_WAIT: Duration = Duration::from_millis(100);
/// After so many tries without an answer the hive does not work any more.
const TRIES_MAX: usize = 3_000;

/// Which broker is up: its number, 0 for none.
pub(crate) type Up = watch::Receiver<u64>;

/// Somebody on a socket.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    pub(crate) name: String,
    channel: Channel,
    tape: Arc<Tape>,
    up: Up,
}

impl Voice {
    pub(crate) fn new(name: &str, socket: &Path, tape: &Arc<Tape>, up: &Up) -> Self {
        let channel =
            hive_proto::connect::connect_lazy(socket).expect("the path of a socket is short");
        let (tape, up) = (Arc::clone(tape), up.clone());
        Self { name: name.to_owned(), channel, tape, up }
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// A question was seen.
    pub(crate) fn saw(&self, question: &v1::Question) {
        self.tape.saw(seen::question(question));
    }

    /// Something is about to befall the hive.
    pub(crate) fn mark(&self, mark: Mark) {
        self.tape.mark(mark);
    }

    /// A request id that nothing else has.
    pub(crate) fn request_id(&self) -> String {
        format!("{}-{}", self.name, self.tape.number())
    }

    /// Which broker is up.
    pub(crate) fn seen(&self) -> u64 {
        *self.up.borrow()
    }

    /// One try.
    pub(crate) async fn once(&self, request_id: &str, op: &Op, carried: &Carried) -> Answer {
        let call = self.tape.invoke(&self.name, request_id, op);
        let performed = tokio::time::timeout(
            CALL_MAX,
            perform::perform(&self.channel, request_id, op, carried),
        );
        let answer =
            performed.await.unwrap_or_else(|_| Answer::Unknown("no answer in time".to_owned()));
        self.tape.answer(call, answer.clone());
        answer
    }

    /// The same request until there is a definite answer.
    ///
    /// # Panics
    ///
    /// If there never is one.
    pub(crate) async fn insist(&self, op: &Op, carried: &Carried) -> Answer {
        let request_id = self.request_id();
        self.insist_as(&request_id, op, carried).await
    }

    pub(crate) async fn insist_as(&self, request_id: &str, op: &Op, carried: &Carried) -> Answer {
        let mut last = Answer::Unknown(String::new());
        for _ in 0..TRIES_MAX {
            let seen = self.seen();
            last = self.once(request_id, op, carried).await;
            if !matches!(last, Answer::Unknown(_)) {
                return last;
            }
            self.another_broker(seen).await;
        }
        panic!("{} got no answer to {op:?} in {TRIES_MAX} tries: {last:?}", self.name);
    }

    /// Waits for a broker that is not the one that was up then, or for a while.
    pub(crate) async fn another_broker(&self, seen: u64) {
        let mut up = self.up.clone();
        // The end of the wait is no error: it may be the same broker that answered so.
        drop(tokio::time::timeout(BROKER_WAIT, up.wait_for(|now| *now != 0 && *now != seen)).await);
    }
}
