//! The network between clients and the broker: it delays, loses, repeats and reorders, and a call
//! outlives neither of its ends.
//!
//! Invariant: each request, first or repeated, is a call in the history before it leaves its
//! client.

use std::rc::Rc;

use hive_broker::engine::Refusal;
use hive_broker::engine::mail::handover::Handover;
use hive_core::reason::Reason;
use hive_history::{Answer, CallNo, Mark, Reply};
use tokio::sync::oneshot;

use crate::call::{Call, Who};
use crate::plan::Fault;
use crate::serve::{Given, serve};
use crate::world::{World, say};

/// Longest pause before a call is repeated, in ms; longer in a calm hive.
const PAUSE_MAX: u64 = 5_000;

/// The end of a call for its client.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives at a time, on its way from a call to its caller"
)]
pub(crate) enum Heard {
    /// The call was done.
    Done(Given),
    /// A definite refusal.
    Refused(Reason),
    /// No report of whether it was done.
    Nothing,
}

impl Heard {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    pub(crate) fn reply(self) -> Option<Reply> {
        match self {
            Self::Done(given) => Some(given.reply),
            Self::Refused(_) | Self::Nothing => None,
        }
    }
}

/// The numbers of an observed call.
#[derive(Debug)]
pub(crate) struct Observed {
    /// Of its settlements.
    settled: Vec<CallNo>,
    /// Its own; `None` if no rule uses it.
    pub(crate) own: Option<CallNo>,
}

impl World {
    /// Records that a call leaves; returns the numbers of its settlements and its own.
    pub(crate) fn invoke(&self, who: &Who, request_id: &str, call: &Call) -> Observed {
        let settled = call.entries().iter().filter_map(|entry| self.invoke(who, "", entry).own);
        let settled = settled.collect();
        let own = call.observed(who, &self.parent_of(&who.name)).map(|op| {
            let id = if call.is_repeatable() { request_id } else { "" };
            self.history.borrow_mut().invoke(self.at(), self.time.wall(), &who.name, id, op)
        });
        Observed { settled, own }
    }

    /// Records the end of a call.
    pub(crate) fn answered(&self, call: CallNo, answer: Answer) {
        self.history.borrow_mut().answer(self.at(), self.time.wall(), call, answer);
    }

    /// Records the end of a call and of its settlements; those without an answer of their own have
    /// an unknown end, because they stand however the call ends.
    fn all_answered(&self, observed: Observed, settled: Vec<Answer>, answer: Answer) {
        let unknown = std::iter::repeat(Answer::Unknown(String::new()));
        for (call, answer) in observed.settled.into_iter().zip(settled.into_iter().chain(unknown)) {
            self.answered(call, answer);
        }
        if let Some(call) = observed.own {
            self.answered(call, answer);
        }
    }

    /// Makes one attempt at a call.
    pub(crate) async fn call(self: &Rc<Self>, who: &Who, request_id: &str, call: Call) -> Heard {
        let number = self.next_call();
        say!(self, "call {number} {} {request_id} {call:?}", who.name);
        self.count(|figures| figures.calls += 1);
        let observed = self.invoke(who, request_id, &call);
        let heard = self.attempt(number, who, request_id, call).await;
        match &heard {
            Heard::Done(given) => {
                say!(self, "call {number} -> {:?}", given.reply);
                self.count(|figures| figures.done += 1);
                let settled = given.settled.clone();
                self.all_answered(observed, settled, Answer::Ok(given.reply.clone()));
            }
            Heard::Refused(reason) => {
                say!(self, "call {number} -> {reason}");
                self.all_answered(observed, Vec::new(), Answer::Refused(reason.to_string()));
            }
            Heard::Nothing => {
                say!(self, "call {number} -> nothing");
                self.all_answered(observed, Vec::new(), Answer::Unknown(String::new()));
            }
        }
        heard
    }

    fn next_call(&self) -> u64 {
        let mut known = self.known.borrow_mut();
        known.calls += 1;
        known.calls
    }

    async fn attempt(
        self: &Rc<Self>,
        number: u64,
        who: &Who,
        request_id: &str,
        call: Call,
    ) -> Heard {
        if self.fails(Fault::Delay, 100) {
            self.sleep(self.dice.span(3_000)).await;
        }
        if self.fails(Fault::LostRequest, 15) {
            self.sleep(self.dice.span(2_000)).await;
            return Heard::Nothing;
        }
        let Some((broker, engine)) = self.serving() else {
            self.wait_to_retry(self.dice.between(50, 1_000) * self.outage.get()).await;
            return Heard::Nothing;
        };
        let waits = call.waits();
        if call.is_repeatable() && self.fails(Fault::Repeat, 10) {
            self.repeat(who, request_id, &call);
        }
        let (answer, answered) = oneshot::channel();
        let world = Rc::clone(self);
        let (caller, request) = (who.clone(), request_id.to_owned());
        let waits_here = waits.then(|| self.waits(number, &who.name));
        let server = self.exec.spawn(broker.group, format!("serve {number}"), async move {
            let waits = waits_here;
            let given = serve(&engine, &caller, &request, call).await;
            drop((engine, waits));
            if world.fails(Fault::LostReply, 15) {
                if let Ok(Given { attached: Some(_), .. }) = &given {
                    world.mark(Mark::Detached { agent: caller.name.clone() });
                }
                say!(world, "the answer to {number} is lost");
                // The transport may have taken it before.
                if let Ok(Given { handover: Some(handover), .. }) = given
                    && world.dice.chance(300)
                {
                    handover.taken();
                }
                return;
            }
            if world.fails(Fault::Delay, 60) {
                world.sleep(world.dice.span(3_000)).await;
            }
            // A client that has gone away does not get the answer; an attachment without a client
            // ends.
            drop(answer.send(given));
        });
        let patience = self.fails(Fault::GiveUp, if waits { 150 } else { 10 });
        let heard = if patience {
            let span = self.dice.span(if waits { 300_000 } else { 3_000 });
            tokio::select! {
                biased;
                heard = answered => heard.ok(),
                () = self.sleep(span) => {
                    say!(self, "call {number} is given up");
                    if self.dice.chance(700) {
                        self.exec.kill(server);
                    }
                    None
                }
            }
        } else {
            answered.await.ok()
        };
        match heard {
            Some(Ok(mut given)) => {
                given.handover.take().into_iter().for_each(Handover::taken);
                Heard::Done(Given { broker: Some(broker), ..given })
            }
            Some(Err(refusal)) => self.refused(number, &refusal),
            None => {
                self.sleep(self.dice.span(500)).await;
                Heard::Nothing
            }
        }
    }

    fn refused(&self, number: u64, refusal: &Refusal) -> Heard {
        let reason = refusal.reason();
        if reason == Reason::Internal && !self.host.is_bad() {
            self.wrong(format!("call {number} was answered INTERNAL: {refusal:?}"));
        }
        if matches!(reason, Reason::Draining | Reason::StorageUnavailable | Reason::Internal) {
            return Heard::Nothing;
        }
        Heard::Refused(reason)
    }

    /// Waits before a call is repeated, for long only until all is healed.
    async fn wait_to_retry(&self, ms: u64) {
        if self.healing.get() {
            self.sleep(ms.min(2 * PAUSE_MAX)).await;
        } else {
            self.rest(ms).await;
        }
    }

    /// Delivers the same request again, at another time.
    fn repeat(self: &Rc<Self>, who: &Who, request_id: &str, call: &Call) {
        let (world, who, request_id, call) =
            (Rc::clone(self), who.clone(), request_id.to_owned(), call.clone());
        self.client(format!("repeat {request_id}"), async move {
            world.sleep(world.dice.span(60_000)).await;
            let Some((broker, engine)) = world.serving() else { return };
            say!(world, "again {request_id} {call:?}");
            // No client gets its answer.
            drop(world.invoke(&who, &request_id, &call));
            world.exec.spawn(broker.group, format!("repeated {request_id}"), async move {
                drop(serve(&engine, &who, &request_id, call).await);
            });
        });
    }

    /// Calls until there is an answer, at most `tries` times.
    pub(crate) async fn insist(self: &Rc<Self>, who: &Who, call: Call, tries: u32) -> Heard {
        self.insist_as(&self.request(), who, call, tries).await
    }

    /// Does the same under a request id.
    pub(crate) async fn insist_as(
        self: &Rc<Self>,
        request_id: &str,
        who: &Who,
        call: Call,
        tries: u32,
    ) -> Heard {
        let mut pause = 100;
        for _ in 1..tries {
            match self.call(who, request_id, call.clone()).await {
                Heard::Nothing => {}
                heard @ (Heard::Done(_) | Heard::Refused(_)) => return heard,
            }
            self.wait_to_retry(pause + self.dice.below(pause)).await;
            // In a calm hive the broker may be down for long.
            pause = (pause * 2).min(PAUSE_MAX * self.calm);
        }
        self.call(who, request_id, call).await
    }
}
