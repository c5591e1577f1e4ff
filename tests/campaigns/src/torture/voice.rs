//! A voice: a client on a socket that repeats each request until its outcome is known.
//!
//! Invariant: one request keeps its request id through all repetitions, and every try is on the
//! tape.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hive_history::{Answer, Mark, Op};
use hive_proto::v1;
use hive_tests::rig::Line;
use tokio::sync::watch;
use tonic::transport::Channel;

use super::perform::{self, Carried};
use super::seen;
use super::tape::Tape;

/// Maximum duration of a call; after it the outcome is unknown.
const CALL_MAX: Duration = Duration::from_secs(20);
/// Maximum wait for a broker before the next try.
const BROKER_WAIT: Duration = Duration::from_millis(100);
/// Maximum number of tries without an answer; after that the hive counts as broken.
const TRIES_MAX: usize = 3_000;

/// The number of the broker that is up, 0 for none.
pub(crate) type Up = watch::Receiver<u64>;

#[derive(Clone, Debug)]
pub(crate) struct Voice {
    pub(crate) name: String,
    channel: Channel,
    socket: PathBuf,
    tape: Arc<Tape>,
    up: Up,
}

impl Voice {
    pub(crate) fn new(name: &str, socket: &Path, tape: &Arc<Tape>, up: &Up) -> Self {
        let channel =
            hive_proto::connect::connect_lazy(socket).expect("the path of a socket is short");
        let (tape, up) = (Arc::clone(tape), up.clone());
        Self { name: name.to_owned(), channel, socket: socket.to_path_buf(), tape, up }
    }

    /// Makes a connection of its own.
    pub(crate) async fn connect(&self) -> io::Result<Line> {
        Line::connect(&self.socket).await
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Records a question that was seen.
    pub(crate) fn saw(&self, question: &v1::Question) {
        self.tape.saw(seen::question(question));
    }

    /// Records an event that is about to happen to the hive.
    pub(crate) fn mark(&self, mark: Mark) {
        self.tape.mark(mark);
    }

    /// Returns a unique request id.
    pub(crate) fn request_id(&self) -> String {
        format!("{}-{}", self.name, self.tape.number())
    }

    /// Returns the number of the broker that is up.
    pub(crate) fn seen(&self) -> u64 {
        *self.up.borrow()
    }

    /// Records a call that is about to leave; returns its number.
    pub(crate) fn note(&self, request_id: &str, op: &Op) -> u64 {
        self.tape.invoke(&self.name, request_id, op)
    }

    /// Records the end of a call.
    pub(crate) fn answered(&self, call: u64, answer: Answer) {
        self.tape.answer(call, answer);
    }

    /// Makes one try. Settlements that ride on it stand however it ends, so without a result of
    /// their own their end is unknown.
    pub(crate) async fn once(&self, request_id: &str, op: &Op, carried: &Carried) -> Answer {
        let riding: Vec<u64> = carried.settlements.iter().map(|op| self.note("", op)).collect();
        let call = self.note(request_id, op);
        let performed = tokio::time::timeout(
            CALL_MAX,
            perform::perform(&self.channel, request_id, op, carried),
        );
        let answer =
            performed.await.unwrap_or_else(|_| Answer::Unknown("no answer in time".to_owned()));
        let results = std::mem::take(&mut *carried.results.lock().expect("nobody panics with it"));
        let unknown = std::iter::repeat(Answer::Unknown(String::new()));
        for (riding, answer) in riding.into_iter().zip(results.into_iter().chain(unknown)) {
            self.answered(riding, answer);
        }
        self.answered(call, answer.clone());
        answer
    }

    /// Repeats a request until there is a definite answer.
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

    /// Waits for a broker other than `seen`, or for a while.
    pub(crate) async fn another_broker(&self, seen: u64) {
        let mut up = self.up.clone();
        // A timeout is not an error: the same broker may have answered so.
        drop(tokio::time::timeout(BROKER_WAIT, up.wait_for(|now| *now != 0 && *now != seen)).await);
    }
}
