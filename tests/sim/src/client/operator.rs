//! The operator: writes, asks, answers, decides about deliveries, cancels turns, and moves agents.

use std::rc::Rc;

use hive_core::delivery::Decision;
use hive_core::delivery::State;
use hive_history::{Mark, Reply};

use super::script;
use crate::call::{Call, Rights, To, Who};
use crate::plan::Fault;
use crate::serve::caller;
use crate::world::{Reader, World};

impl World {
    /// Runs the operator until all is healed.
    pub(crate) async fn operate(self: Rc<Self>) {
        while !self.rest(self.dice.span(900_000 * self.calm / self.haste)).await {
            self.operate_once().await;
        }
    }

    async fn operate_once(self: &Rc<Self>) {
        let who = Who::operator();
        let Some(seat) = ({ self.dice.pick(&self.seats.borrow()).cloned() }) else { return };
        match self.dice.weighted(&[
            (10, 0),
            (4, 1),
            (4, 2),
            (2, 3),
            (6, 4),
            (5, 5),
            (2, 6),
            (1, 7),
            (2, 8),
            (2, 9),
            (1, 10),
            (2, 11),
            (1, 12),
            (3, 13),
        ]) {
            0 => {
                let to =
                    if self.dice.chance(100) { To::Everyone } else { To::Name(seat.name.clone()) };
                if let Some(Reply::Sent { message, .. }) = self
                    .insist(&who, Call::Send { to, body: self.fresh("order"), reply_to: 0 }, 5)
                    .await
                    .reply()
                {
                    self.learn_delivery(&seat.name, message);
                }
            }
            1 => {
                let ttl_ms = self.dice.weighted(&[(1, 0), (2, 20_000), (2, 300_000)]);
                let ask = Call::Ask {
                    to: To::Name(seat.name.clone()),
                    text: self.fresh("question"),
                    options: Vec::new(),
                    effect: None,
                    ttl_ms,
                };
                if let Some(Reply::Asked { question, .. }) = self.insist(&who, ask, 5).await.reply()
                {
                    self.learn_question(question, "operator", &seat.name);
                }
            }
            2 => {
                let questions = self.known.borrow().questions.clone();
                let Some((question, ..)) = self.dice.pick(&questions).cloned() else { return };
                let answer = script::answer(self, false);
                drop(self.insist(&who, script::given(question, answer), 5).await);
            }
            3 => {
                let questions = self.known.borrow().questions.clone();
                let Some((question, ..)) = self.dice.pick(&questions).cloned() else { return };
                let call = if self.dice.chance(500) {
                    Call::CancelQuestion { question }
                } else {
                    Call::ReadQuestion { question }
                };
                drop(self.insist(&who, call, 5).await);
            }
            4 => {
                let deliveries = self.known.borrow().deliveries.clone();
                let Some((agent, message)) = self.dice.pick(&deliveries).cloned() else { return };
                let decision = self.dice.weighted(&[
                    (1, Decision::Ack),
                    (1, Decision::Drop),
                    (4, Decision::Release),
                    (4, Decision::Redrive),
                ]);
                self.decided.borrow_mut().insert(message);
                drop(self.insist(&who, Call::Decide { agent, message, decision }, 4).await);
            }
            5 => self.work_off_apart(&who).await,
            6 => drop(self.insist(&who, Call::CancelTurn { agent: seat.name }, 3).await),
            7 => {
                if seat.reader == Reader::Harness {
                    drop(self.insist(&who, Call::RestartHarness { agent: seat.name }, 3).await);
                }
            }
            10 => {
                // Another client with the same way of making request ids.
                let request = self.request();
                for _ in 0..2 {
                    let send = Call::Send {
                        to: To::Name(seat.name.clone()),
                        body: self.fresh("mistaken"),
                        reply_to: 0,
                    };
                    if !self.call(&who, &request, send).await.is_done() {
                        break;
                    }
                }
            }
            8 => self.move_agent(&who, &seat.name).await,
            11 => self.pause_agent(&who, &seat.name).await,
            12 => self.purge_ghost(&who).await,
            13 => self.oversee(&who).await,
            _ => {
                let reminders = self.known.borrow().reminders.clone();
                let Some((reminder, _)) = self.dice.pick(&reminders).cloned() else { return };
                drop(self.insist(&who, Call::CancelReminder { reminder }, 3).await);
            }
        }
    }

    /// Lists held and dead deliveries, and decides about some.
    async fn work_off_apart(self: &Rc<Self>, who: &Who) {
        let Some((_, engine)) = self.serving() else { return };
        let operator = caller("operator");
        let mut apart = engine
            .list_dead_letters(String::new(), None, 20)
            .await
            .map(|(found, _)| found)
            .unwrap_or_default();
        let Some(seat) = ({ self.dice.pick(&self.seats.borrow()).cloned() }) else { return };
        let held =
            engine.list_deliveries(operator.clone(), seat.name, vec![State::Held], None, 20).await;
        apart.extend(held.map(|(found, _)| found).unwrap_or_default());
        let mail = engine
            .list_deliveries(operator, "operator".to_owned(), vec![State::Ready], None, 5)
            .await;
        let mail = mail.map(|(found, _)| found).unwrap_or_default();
        drop(engine);
        for delivery in apart.into_iter().chain(mail) {
            let decision = match (delivery.state, self.dice.below(6)) {
                (_, 0 | 1) => continue,
                (State::Dead, 2..=4) => Decision::Redrive,
                (State::Held, 2..=4) => Decision::Release,
                (_, 5) => Decision::Drop,
                _ => Decision::Ack,
            };
            let call = Call::Decide {
                agent: delivery.agent,
                message: delivery.message.id.get(),
                decision,
            };
            drop(self.insist(who, call, 4).await);
        }
    }

    /// Stops an agent for a while; its mail waits until it is started.
    async fn pause_agent(self: &Rc<Self>, who: &Who, agent: &str) {
        if self.healing.get() || self.is_retired(agent) {
            return;
        }
        if self.insist(who, Call::Stop { agent: agent.to_owned() }, 20).await.is_done() {
            self.mark(Mark::Stopped { agent: agent.to_owned() });
            self.rest(self.dice.span(120_000)).await;
        }
        // Even without an answer, the stop may have been done.
        self.mark(Mark::Starting { agent: agent.to_owned() });
        drop(self.insist(who, Call::Start { agent: agent.to_owned() }, 200).await);
    }

    /// Creates an agent, writes to it, purges it, and creates another one with its name, which must
    /// not get that mail.
    async fn purge_ghost(self: &Rc<Self>, who: &Who) {
        const GHOST: &str = "ghost";
        if self.healing.get() {
            return;
        }
        let ghost = Who::agent(GHOST.to_owned());
        for round in 0..2 {
            let agent = GHOST.to_owned();
            let rights = Rights::default();
            let create = Call::Create { agent, parent: None, adopt: true, rights };
            drop(self.insist(who, create, 20).await);
            if round == 1 {
                let receive = Call::Receive {
                    max: 4,
                    wait_ms: 0,
                    lease_ms: 1_000,
                    tool_use: String::new(),
                    settle: Vec::new(),
                };
                drop(self.insist(&ghost, receive, 5).await);
            } else {
                for _ in 0..1 + self.dice.below(3) {
                    let send = Call::Send {
                        to: To::Name(GHOST.to_owned()),
                        body: self.fresh("order"),
                        reply_to: 0,
                    };
                    drop(self.insist(who, send, 5).await);
                }
            }
            self.mark(Mark::Purging { agent: GHOST.to_owned() });
            if self.insist(who, Call::Purge { agent: GHOST.to_owned() }, 200).await.is_done() {
                self.mark(Mark::Purged { agent: GHOST.to_owned() });
            }
        }
    }

    /// Retires an agent, creates it again, or gives it another parent.
    pub(crate) async fn move_agent(self: &Rc<Self>, who: &Who, agent: &str) {
        if !self.plan.has(Fault::Topology) || self.healing.get() {
            return;
        }
        let (of_file, rights) =
            self.seat(agent).map_or_else(Default::default, |seat| (seat.of_file, seat.rights));
        if self.is_retired(agent) {
            let name = agent.to_owned();
            let create = Call::Create { agent: name, parent: None, adopt: true, rights };
            if self.insist(who, create, 20).await.is_done() {
                self.retired.borrow_mut().remove(agent);
                self.seats
                    .borrow_mut()
                    .iter_mut()
                    .filter(|seat| seat.name == agent)
                    .for_each(|seat| "operator".clone_into(&mut seat.parent));
            }
        } else if !of_file && self.dice.chance(250) && self.retired.borrow().len() < 2 {
            self.mark(Mark::Retiring { agent: agent.to_owned() });
            self.retired.borrow_mut().insert(agent.to_owned());
            let seat = self.seat(agent);
            drop(self.insist(who, Call::Retire { agent: agent.to_owned() }, 40).await);
            // Its children move up.
            let parent = seat.map_or_else(|| "operator".to_owned(), |seat| seat.parent);
            let mut seats = self.seats.borrow_mut();
            seats
                .iter_mut()
                .filter(|seat| seat.parent == agent)
                .for_each(|seat| parent.clone_into(&mut seat.parent));
        }
    }
}
