//! The flooder: one agent that calls as fast as it gets answers, with many concurrent calls, on a
//! separate thread.
//!
//! In measurements of its neighbours the thread is nice: it uses only the processor time that the
//! broker and the neighbours leave. So the broker alone must resist the flood: the flooder's own
//! processor time does not count against it, and its work for the flooder counts in full.
//! Invariant: between `stop` and the next `go` no call of the flooder is under way.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use hive_core::limits::AGENT_CALLS_MAX;
use hive_core::reason::Reason;
use hive_proto::status;
use hive_tests::rig::soon;
use tokio::sync::watch;
use tonic::Status;
use tonic::transport::Channel;

use super::kinds::{self, Kind};

/// All concurrent calls that an agent may have, except for a few for the test's own checks.
pub(crate) const ALL_AT_ONCE: usize = AGENT_CALLS_MAX - 8;
/// The maximum nice value.
pub(crate) const NICE: i32 = 19;

/// The outcomes of the calls: the number served, and for each reason the number refused with one
/// example.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) served: u64,
    pub(crate) refused: BTreeMap<Reason, (u64, Option<Status>)>,
    /// Refusals without a reason of the contract.
    pub(crate) odd: Vec<Status>,
}

#[derive(Debug)]
pub(crate) struct Flood {
    wish: watch::Sender<Wish>,
    under_way: watch::Receiver<usize>,
    tally: Arc<Mutex<Tally>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Stop,
    /// As `Stop`, and calls under way are given up.
    Cut,
    Go,
    End,
}

impl Flood {
    /// Creates a flooder that makes these calls in turn on a socket, `at_once` at a time, on a
    /// thread with this nice value. It waits for `go`.
    pub(crate) fn new(socket: PathBuf, kinds: &[Kind], at_once: usize, nice: i32) -> Self {
        let (wish, wishes) = watch::channel(Wish::Stop);
        let (busy, under_way) = watch::channel(0);
        let tally = Arc::new(Mutex::new(Tally::default()));
        let (kinds, kept) = (kinds.to_vec(), Arc::clone(&tally));
        let thread = std::thread::spawn(move || {
            let own = rustix::thread::gettid();
            rustix::process::setpriority_process(Some(own), nice)
                .expect("every process may be nicer");
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let channel =
                    hive_proto::connect::connect(&socket).await.expect("a broker answers");
                let busy = Arc::new(busy);
                let mut callers = tokio::task::JoinSet::new();
                for place in 0..at_once {
                    callers.spawn(calls(
                        place,
                        kinds.clone(),
                        channel.clone(),
                        wishes.clone(),
                        Arc::clone(&busy),
                        Arc::clone(&kept),
                    ));
                }
                callers.join_all().await;
            });
        });
        Self { wish, under_way, tally, thread: Some(thread) }
    }

    /// Starts the flood.
    pub(crate) fn go(&self) {
        self.wish.send_replace(Wish::Go);
    }

    /// Pauses it, and waits until the last call is answered.
    pub(crate) async fn stop(&mut self) {
        self.wish.send_replace(Wish::Stop);
        soon("the flood stops", self.under_way.wait_for(|calls| *calls == 0))
            .await
            .expect("the flooder lives");
    }

    /// Pauses it, and gives up the calls under way. The broker may still work on those that have a
    /// permit.
    #[allow(dead_code, reason = "only one of the targets that include this file uses it")]
    pub(crate) async fn cut(&mut self) {
        self.wish.send_replace(Wish::Cut);
        soon("the flood stops", self.under_way.wait_for(|calls| *calls == 0))
            .await
            .expect("the flooder lives");
    }

    /// Returns the outcomes so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until this many further calls were answered.
    pub(crate) async fn answered(&self, calls: u64) {
        let answered = |tally: &Tally| {
            tally.served + tally.refused.values().map(|(count, _)| count).sum::<u64>()
        };
        let goal = answered(&self.tally()) + calls;
        self.came_to(&format!("{goal} answers"), |tally| answered(tally) >= goal).await;
    }

    /// Waits until a call was refused for each of these reasons.
    pub(crate) async fn refused(&self, reasons: &[Reason]) {
        self.came_to(&format!("{reasons:?}"), |tally| {
            reasons.iter().all(|reason| tally.refused.contains_key(reason))
        })
        .await;
    }

    async fn came_to(&self, what: &str, is_so: impl Fn(&Tally) -> bool) {
        let reached = async {
            while !is_so(&self.tally()) {
                tokio::task::yield_now().await;
            }
        };
        soon(&format!("the flood comes to {what}"), reached).await;
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.wish.send_replace(Wish::End);
        // A panic there has failed the test already, by a call without an answer.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

async fn calls(
    place: usize,
    kinds: Vec<Kind>,
    channel: Channel,
    mut wishes: watch::Receiver<Wish>,
    busy: Arc<watch::Sender<usize>>,
    tally: Arc<Mutex<Tally>>,
) {
    for kind in kinds.iter().cycle().skip(place) {
        // A call counts as under way before it reads the wish, so a `stop` that sees no call under
        // way is right.
        busy.send_modify(|calls| *calls += 1);
        if *wishes.borrow_and_update() != Wish::Go {
            busy.send_modify(|calls| *calls -= 1);
            let next = wishes.wait_for(|wish| matches!(wish, Wish::Go | Wish::End));
            match next.await.map(|wish| *wish) {
                Ok(Wish::Go) => continue,
                Ok(Wish::Stop | Wish::Cut | Wish::End) | Err(_) => return,
            }
        }
        let result = tokio::select! {
            result = kinds::call(*kind, &channel) => Some(result),
            _ = wishes.wait_for(|wish| matches!(wish, Wish::Cut | Wish::End)) => None,
        };
        if let Some(result) = result {
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            match result.map_err(|refusal| (status::reason(&refusal), refusal)) {
                Ok(()) => tally.served += 1,
                Err((Some(reason), refusal)) => {
                    let (count, first) = tally.refused.entry(reason).or_default();
                    *count += 1;
                    first.get_or_insert(refusal);
                }
                Err((None, refusal)) => tally.odd.push(refusal),
            }
        }
        busy.send_modify(|calls| *calls -= 1);
    }
}
