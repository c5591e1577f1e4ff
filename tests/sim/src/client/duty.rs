//! The work of a connected harness: it reports, waits for turns, watches the claude of each, and
//! reports the outcome.
//!
//! Invariant: an unanswered begin or end is repeated with the same request id, over the connection
//! that is open then.

use std::rc::Rc;

use hive_core::reason::Reason;
use hive_core::turn::{Kind, Outcome};
use hive_history::{Mark, Reply};

use super::claude::Turn;
use super::harness::{Break, Life};
use crate::call::Call;
use crate::net::Heard;
use crate::plan::Fault;

impl Life {
    /// Does the work of a connected harness until its connection must end.
    pub(super) async fn work(self: &Rc<Self>) -> Break {
        let world = &self.world;
        let logged_in = !world.fails(Fault::Vanish, 30);
        if !self.report(logged_in).await {
            return Break::Lost;
        }
        self.needs_login.set(!logged_in);
        loop {
            if let Some(over) = self.acknowledge().await {
                return over;
            }
            let ending = self.ending.borrow().clone();
            let running = self.turn.borrow().clone();
            let step = match (ending, running) {
                (Some((request, call)), _) => self.settle(&request, call).await,
                (None, Some(turn)) => self.watch(&turn).await,
                (None, None) => self.begin().await,
            };
            if let Some(broken) = step {
                return broken;
            }
        }
    }

    async fn report(&self, idle: bool) -> bool {
        let session = self.session.borrow().clone();
        self.world.insist(&self.who, Call::Report { session, idle }, 3).await.is_done()
    }

    /// Acknowledges completed commands.
    async fn acknowledge(&self) -> Option<Break> {
        let world = &self.world;
        if self.turn.borrow().is_none() && self.ending.borrow().is_none() {
            if let Some((id, false)) = self.restart.get() {
                // The harness restarts with a new session; it remembers the commands it got.
                self.restart.set(Some((id, true)));
                return Some(Break::SessionOver);
            }
            if let Some((id, true)) = self.restart.take() {
                self.done.borrow_mut().push(id);
            }
        }
        let done = std::mem::take(&mut *self.done.borrow_mut());
        for command in done {
            let session = self.session.borrow().clone();
            if matches!(
                world.insist(&self.who, Call::AckCommand { session, command }, 3).await,
                Heard::Nothing
            ) {
                self.done.borrow_mut().push(command);
                return Some(Break::Lost);
            }
        }
        None
    }

    /// Waits for a turn and starts it.
    async fn begin(self: &Rc<Self>) -> Option<Break> {
        let world = &self.world;
        if self.needs_login.get() {
            world.rest(world.dice.span(400_000)).await;
            if !self.report(true).await {
                return Some(Break::Lost);
            }
            self.needs_login.set(false);
        }
        let (request, process) = self
            .wish
            .borrow_mut()
            .get_or_insert_with(|| {
                (world.request(), format!("process {:016}", world.dice.number()))
            })
            .clone();
        let session = self.session.borrow().clone();
        let begin =
            Call::Begin { session: session.clone(), process: process.clone(), kind: Kind::Mail };
        let heard = tokio::select! {
            biased;
            heard = world.call(&self.who, &request, begin) => heard,
            () = self.news.notified() => return None,
        };
        match heard {
            Heard::Done(given) => {
                self.wish.take();
                if let Reply::Turn { turn, delivery, .. } = given.reply {
                    self.start(Turn::new(turn, process, delivery));
                }
                None
            }
            Heard::Refused(Reason::SessionLost | Reason::LeaseLost) => Some(Break::SessionOver),
            Heard::Refused(_) => {
                // A turn is open, but the answer was lost; the next attachment names it.
                self.wish.take();
                world.sleep(1_000).await;
                Some(Break::Lost)
            }
            Heard::Nothing => {
                world.pause(2_000).await;
                world.dice.chance(500).then_some(Break::Lost)
            }
        }
    }

    fn start(&self, turn: Turn) {
        if let Some(handed) = &turn.delivery {
            self.world.learn_delivery(&self.who.name, handed.message);
        }
        self.cancelled.set(0);
        self.world.start_claude(&self.who.name, &turn);
        self.turn.replace(Some(turn));
    }

    /// Waits for the end of a claude, and decides the outcome.
    async fn watch(&self, turn: &Turn) -> Option<Break> {
        let world = &self.world;
        while !turn.over.get()
            && self.cancelled.get() != turn.id
            && self.restart.get().is_none_or(|(_, done)| done)
        {
            tokio::select! {
                biased;
                () = turn.ended.notified() => {}
                () = self.news.notified() => {}
            }
        }
        if world.fails(Fault::Vanish, 25) {
            // The harness hangs: it sends nothing, though its connection is open.
            self.frozen.set(true);
            world.mark(Mark::Detached { agent: self.who.name.clone() });
            world.rest(world.dice.span(150_000)).await;
            self.frozen.set(false);
        }
        let outcome = if self.cancelled.get() == turn.id {
            Outcome::Cancelled
        } else if self.restart.get().is_some_and(|(_, done)| !done) {
            Outcome::Drained
        } else {
            self.outcome(turn)
        };
        turn.stopped.set(true);
        let returned = turn.returned.borrow().iter().cloned().collect();
        world.haunt(&self.who.name, turn);
        self.end(turn.id, outcome, returned, world.dice.chance(300));
        self.turn.take();
        None
    }

    fn outcome(&self, turn: &Turn) -> Outcome {
        let world = &self.world;
        if world.healing.get() {
            return Outcome::Ok;
        }
        // Some messages break every turn.
        if turn
            .delivery
            .as_ref()
            .is_some_and(|handed| (handed.message ^ world.plan.seed).is_multiple_of(11))
        {
            return Outcome::Failed;
        }
        let outcomes = [
            (60, Outcome::Ok),
            (9, Outcome::Failed),
            (4, Outcome::RateLimited),
            (2, Outcome::AuthFailed),
            (4, Outcome::Unavailable),
            (3, Outcome::Drained),
        ];
        world.dice.weighted(&outcomes)
    }

    pub(super) fn end(&self, turn: u64, outcome: Outcome, returned: Vec<String>, with_time: bool) {
        let world = &self.world;
        let session = self.session.borrow().clone();
        let limited = outcome == Outcome::RateLimited && with_time;
        let retry_at = limited
            .then(|| world.time.wall() + i64::try_from(world.dice.span(600_000)).unwrap_or(0));
        let call = Call::End { session, turn, outcome, returned, retry_at, compacted: with_time };
        self.ending.replace(Some((world.request(), call)));
    }

    /// Reports how a turn ended, until the broker has answered.
    async fn settle(&self, request: &str, call: Call) -> Option<Break> {
        let world = &self.world;
        let logged_out = matches!(call, Call::End { outcome: Outcome::AuthFailed, .. });
        match world.call(&self.who, request, call).await {
            Heard::Nothing => {
                world.pause(2_000).await;
                world.dice.chance(400).then_some(Break::Lost)
            }
            Heard::Refused(Reason::SessionLost | Reason::LeaseLost) => {
                self.ending.take();
                Some(Break::SessionOver)
            }
            Heard::Refused(_) => {
                self.ending.take();
                None
            }
            Heard::Done(_) => {
                self.ending.take();
                // The park begins with this answer: login reports before it do not count.
                if logged_out {
                    self.needs_login.set(true);
                }
                if world.fails(Fault::Vanish, 30) {
                    let session = self.session.borrow().clone();
                    let problem = Call::Problem {
                        session,
                        subject: "plugins".to_owned(),
                        text: world.fresh("trouble"),
                    };
                    drop(world.insist(&self.who, problem, 3).await);
                }
                if !world.healing.get() && world.dice.chance(80) { self.open().await } else { None }
            }
        }
    }

    /// Opens a turn without mail.
    async fn open(&self) -> Option<Break> {
        let world = &self.world;
        let kind =
            world.dice.weighted(&[(3, Kind::Continue), (1, Kind::Checkpoint), (1, Kind::Compact)]);
        let (session, process) =
            (self.session.borrow().clone(), format!("process {:016}", world.dice.number()));
        let open = Call::Begin { session, process: process.clone(), kind };
        match world.insist(&self.who, open, 3).await {
            Heard::Done(given) => {
                if let Reply::Turn { turn, .. } = given.reply {
                    self.start(Turn::new(turn, process, None));
                }
                None
            }
            Heard::Refused(Reason::SessionLost | Reason::LeaseLost) => Some(Break::SessionOver),
            Heard::Refused(_) => None,
            // The next attachment says whether a turn is open.
            Heard::Nothing => Some(Break::Lost),
        }
    }
}
