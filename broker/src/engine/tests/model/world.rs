//! The world: the broker and the model side by side, and what is compared.

use crate::engine::error::MailError;
use std::collections::HashSet;
use std::time::Duration;

use hive_core::agent::{HarnessState, Policy};
use hive_core::delivery::{Lane, State};
use hive_core::id::MessageId;
use hive_core::message::SystemKind;
use hive_core::name::Label;
use hive_core::reason::Reason;
use hive_core::settlement::Action;
use hive_core::turn::{Ended, Kind, Outcome};

use super::super::super::Refusal;
use super::super::audit::Auditor;
use super::super::hive::{Harness, Hive, Run, actor, caller, ended, stop};
use super::plain::{At, Holder, Model};
use super::{READER, Step, WORKER};
use crate::engine::mail::notice::{self, Notice};
use crate::engine::mail::receive::Leased;
use crate::engine::mail::wake::Wake;

/// The names of the model's agents.
const NAMES: [&str; 2] = ["worker", "reader"];
/// The body of each message.
const BODY: &str = "0123456789";

/// The broker, the model, and the people of the story.
pub(super) struct World {
    hive: Hive,
    model: Model,
    audit: Auditor,
    harness: Option<Harness>,
    run: Option<Run>,
    /// The turn that ended last, with what was said of it, while its session lives.
    last: Option<(Run, Ended)>,
    zombies: Vec<Run>,
    consumers: Vec<(usize, Leased)>,
    tool_uses: u32,
}

fn lease_lost<T>(answer: Result<T, Refusal>) -> bool {
    answer.is_err_and(|refusal| refusal.reason() == Reason::LeaseLost)
}

/// Returns whether a harness was refused because its session, or its turn, is over.
fn is_over<T>(answer: Result<T, Refusal>) -> bool {
    let over = [Reason::SessionLost, Reason::LeaseLost];
    answer.is_err_and(|refusal| over.contains(&refusal.reason()))
}

impl World {
    pub(super) async fn new() -> Self {
        let hive = Hive::new(&["boss", "alice", "reader"]).await;
        hive.create("worker", Some("boss"), Policy::default()).await;
        let audit = Auditor::new(&hive.path());
        Self {
            hive,
            model: Model::default(),
            audit,
            harness: None,
            run: None,
            last: None,
            zombies: Vec::new(),
            consumers: Vec::new(),
            tool_uses: 0,
        }
    }

    fn at(&self) -> At {
        let now = self.hive.now();
        At { wall: now.wall.0, boot: now.boot.0 }
    }

    /// Does a step with both and compares them.
    pub(super) async fn take(&mut self, step: Step) {
        self.act(step).await;
        self.compare().await;
    }

    async fn act(&mut self, step: Step) {
        let at = self.at();
        match step {
            Step::Send { by_agent, to } => {
                let id = self
                    .hive
                    .send(if by_agent { "alice" } else { "operator" }, NAMES[to], BODY)
                    .await;
                self.model.agents[to].accept(id.get(), Lane::Normal, None);
            }
            Step::Notice { to } => self.notice(to).await,
            Step::Wake { key } => self.wake(key).await,
            Step::Begin => self.begin(at).await,
            Step::Recv { max } => self.recv(max, at).await,
            Step::End { outcome, returned } => self.end(outcome, returned, at).await,
            Step::EndAgain => {
                if let Some((run, ended)) = &self.last
                    && self.model.agents[WORKER].session.is_some()
                {
                    self.hive
                        .try_end(run, ended.clone())
                        .await
                        .expect("answered as the first time");
                    self.model.agents[WORKER].session.as_mut().expect("a session").contact =
                        at.boot;
                }
            }
            Step::ZombieEnds => {
                for zombie in &self.zombies {
                    let end = self.hive.try_end(zombie, ended(Outcome::Ok)).await;
                    assert!(is_over(end), "a zombie settles nothing");
                    let sent = self.hive.send_in(zombie, "alice", BODY).await;
                    assert!(
                        sent.is_err_and(|refusal| refusal.reason() == Reason::TurnEnded),
                        "a zombie sends nothing"
                    );
                }
            }
            Step::Attach { take_over } => self.attach(take_over, at).await,
            Step::Resume => self.resume(at).await,
            Step::Vanish => {
                if let Some(harness) = &mut self.harness {
                    harness.vanish();
                    self.model.agents[WORKER].vanish();
                }
            }
            Step::Open { kind } => self.open(kind, at).await,
            Step::AskForNext => self.ask_for_next().await,
            Step::Login { is_there } => self.login(is_there, at).await,
            Step::Receive { who, max } => self.receive(who, max, at).await,
            Step::Ack { which } => {
                if let Some((who, leased)) = self.consumer(which) {
                    let accepted = self.model.agents[who]
                        .ack(leased.delivery.message.id.get(), token(&leased));
                    let answer = self.hive.ack(NAMES[who], &leased).await;
                    assert_eq!(answer.is_ok(), accepted, "{answer:?}");
                    assert!(accepted || lease_lost(answer));
                }
            }
            Step::Nack { which, permanent } => {
                if let Some((who, leased)) = self.consumer(which) {
                    let state = self.model.agents[who].nack(
                        leased.delivery.message.id.get(),
                        token(&leased),
                        permanent,
                        at,
                    );
                    let answer = self.hive.nack(NAMES[who], &leased, permanent).await;
                    assert_eq!(answer.as_ref().ok(), state.as_ref(), "{answer:?}");
                    assert!(state.is_some() || lease_lost(answer));
                }
            }
            Step::Extend { which } => {
                if let Some((who, leased)) = self.consumer(which) {
                    let accepted = self.model.agents[who].extend(
                        leased.delivery.message.id.get(),
                        token(&leased),
                        at,
                    );
                    let minute = Duration::from_secs(60);
                    let answer =
                        self.hive.settle(NAMES[who], token(&leased), Action::Extend(minute)).await;
                    assert_eq!(answer.is_ok(), accepted, "{answer:?}");
                }
            }
            Step::Decide { who, which, decision } => {
                let items = &self.model.agents[who].items;
                if let Some(message) =
                    items.get(which % items.len().max(1)).map(|item| item.message)
                {
                    let works = self.model.agents[who].decide(message, decision);
                    let answer = self
                        .hive
                        .decide(NAMES[who], super::super::hive::message(message), decision)
                        .await;
                    assert_eq!(answer.is_ok(), works, "{answer:?}");
                    assert!(
                        works || matches!(answer, Err(Refusal::Mail(MailError::WrongState { .. })))
                    );
                }
            }
            Step::Pass { seconds } => {
                self.hive.pass(seconds);
                self.sweep().await;
            }
            Step::Restart => {
                self.hive.restart().await;
                self.restarted(false).await;
            }
            Step::Crash => {
                self.hive.crash().await;
                self.restarted(false).await;
            }
            Step::Reboot => {
                self.hive.reboot().await;
                self.restarted(true).await;
            }
        }
    }

    async fn notice(&mut self, to: usize) {
        let (key, limits) = (self.hive.row(NAMES[to]).await.key, self.hive.limits.clone());
        let told = self.hive.engine().store().write(move |tx| {
            let kind = SystemKind::Restarted;
            notice::send(tx, &limits, Notice::about("x", key, kind, BODY))
        });
        let id = told.await.map_err(|refusal: Refusal| refusal.to_string()).expect("told");
        self.model.agents[to].accept(id.get(), Lane::System, None);
    }

    async fn wake(&mut self, key: Option<u8>) {
        let label = Label::parse("timer").expect("a label");
        let coalescing_key = key.map(|key| key.to_string());
        let wake = Wake { label, body: BODY.to_owned(), coalescing_key, session_token: None };
        let woken = self
            .hive
            .engine()
            .wake(actor("worker"), self.hive.request("Wake"), wake)
            .await
            .expect("accepted");
        let superseded = self.model.agents[WORKER].accept(woken.message.get(), Lane::Normal, key);
        assert_eq!(woken.superseded.map(MessageId::get), superseded);
    }

    async fn begin(&mut self, at: At) {
        let worker = &mut self.model.agents[WORKER];
        let Some(harness) = &self.harness else { return };
        if worker.session.is_none() {
            assert!(is_over(self.hive.try_begin(harness).await), "its session is over");
            return;
        }
        if self.run.is_some() {
            let second = self.hive.try_begin(harness).await;
            assert!(second.is_err_and(|refusal| refusal.reason() == Reason::TurnOpen));
            worker.session.as_mut().expect("a session").contact = at.boot;
            return;
        }
        match worker.begin(at) {
            None => stop(self.hive.begin_waits(harness).await).await,
            Some(message) => {
                let run = self.hive.begin(harness).await;
                assert_eq!(run.message().get(), message, "both serve the same delivery");
                self.run = Some(run);
            }
        }
    }

    async fn open(&mut self, kind: Kind, at: At) {
        let worker = &mut self.model.agents[WORKER];
        let Some(harness) = &self.harness else { return };
        // The rest is as with a turn for mail.
        if worker.session.is_none() || self.run.is_some() {
            return;
        }
        let opens = worker.open(kind, at);
        match self.hive.open(harness, kind).await {
            Ok(run) => {
                assert!(opens, "{kind:?}");
                self.run = Some(run);
            }
            Err(refusal) => {
                assert!(!opens && refusal.reason() == Reason::AgentParked, "{kind:?}: {refusal:?}");
            }
        }
    }

    async fn login(&mut self, is_there: bool, at: At) {
        let Some(harness) = &self.harness else { return };
        let worker = &mut self.model.agents[WORKER];
        if worker.session.is_none() {
            return;
        }
        let state = if is_there { HarnessState::Idle } else { HarnessState::NeedsLogin };
        let report =
            self.hive.engine().report_harness(caller("worker"), harness.token.clone(), state);
        report.await.expect("noted");
        if is_there {
            worker.login(at);
        } else {
            worker.logout(at);
        }
    }

    async fn recv(&mut self, max: u32, at: At) {
        let Some(run) = &self.run else { return };
        self.tool_uses += 1;
        let tool_use = format!("tool-{}", self.tool_uses);
        let received = self.hive.recv(run, &tool_use, max).await;
        let expected = self.model.agents[WORKER].recv(max, &tool_use, at);
        assert_eq!(received.alone, expected.is_none());
        let taken: Vec<u64> =
            received.deliveries.iter().map(|leased| leased.delivery.message.id.get()).collect();
        assert_eq!(taken, expected.unwrap_or_default());
    }

    async fn end(&mut self, outcome: Outcome, returned: bool, at: At) {
        let Some(run) = self.run.take() else { return };
        let last_tool_use: HashSet<String> =
            returned.then(|| format!("tool-{}", self.tool_uses)).into_iter().collect();
        let limit_ends = (outcome == Outcome::RateLimited && returned).then_some(at.wall + 100_000);
        let ended = Ended {
            returned_tool_uses: last_tool_use.clone(),
            retry_time: limit_ends.map(hive_core::time::WallTime),
            compacted: returned,
            ..ended(outcome)
        };
        let answer = self.hive.try_end(&run, ended.clone()).await.expect("it ends");
        self.model.agents[WORKER].end(outcome, &last_tool_use, returned, limit_ends, at);
        assert_eq!(answer.park.is_some(), self.model.agents[WORKER].is_parked(at));
        self.last = Some((run, ended));
    }

    async fn attach(&mut self, take_over: bool, at: At) {
        let accepted = self.model.agents[WORKER].attach(take_over, at);
        match self.hive.try_attach("worker", "", take_over).await {
            Ok(harness) => {
                assert!(accepted && !harness.resumed && harness.open_turn.is_none());
                self.harness = Some(harness);
                self.bury();
                self.kick().await;
            }
            Err(refusal) => {
                assert!(!accepted && refusal.reason() == Reason::AlreadyAttached, "{refusal:?}");
            }
        }
    }

    /// Adds the notice of the new session to the model, if the model expects one.
    async fn kick(&mut self) {
        let worker = &mut self.model.agents[WORKER];
        if worker.is_kicked() {
            let inbox = self.hive.inbox("worker").await;
            let message = &inbox.last().expect("it is told").message;
            assert_eq!(message.system_kind, Some(SystemKind::Restarted));
            worker.accept(message.id.get(), Lane::System, None);
            worker.items.last_mut().expect("accepted").is_kick = true;
        }
    }

    async fn ask_for_next(&mut self) {
        let Some(run) = &self.run else { return };
        self.hive.engine().request_next_turn(run.actor()).await.expect("its turn is open");
        self.model.agents[WORKER].asked_for_next = true;
    }

    async fn resume(&mut self, at: At) {
        let Some(harness) = &self.harness else { return };
        if self.model.agents[WORKER].session.is_none() {
            return;
        }
        let back =
            self.hive.try_attach("worker", &harness.token, false).await.expect("it comes back");
        self.model.agents[WORKER].resume(at);
        assert!(back.resumed);
        assert_eq!(
            back.open_turn.as_ref().map(|turn| turn.id),
            self.run.as_ref().map(|run| run.id)
        );
        self.harness = Some(back);
    }

    async fn receive(&mut self, who: usize, max: u32, at: At) {
        let answer = self.hive.try_receive(NAMES[who], super::super::hive::up_to(max)).await;
        if self.model.agents[who].session.is_some() {
            assert!(answer.is_err_and(|refusal| refusal.reason() == Reason::HarnessAttached));
            return;
        }
        let received = answer.expect("taken").deliveries;
        let expected = self.model.agents[who].receive(max, at);
        let taken: Vec<u64> =
            received.iter().map(|leased| leased.delivery.message.id.get()).collect();
        assert_eq!(taken, expected);
        for leased in received {
            let message = leased.delivery.message.id.get();
            let item = self.model.agents[who]
                .items
                .iter_mut()
                .find(|item| item.message == message)
                .expect("it is there");
            item.token = Some(token(&leased).to_owned());
            self.consumers.push((who, leased));
        }
    }

    fn consumer(&self, which: usize) -> Option<(usize, Leased)> {
        self.consumers.get(which % self.consumers.len().max(1)).cloned()
    }

    async fn sweep(&mut self) {
        let at = self.at();
        self.hive.sweep().await;
        self.model.agents.iter_mut().for_each(|agent| agent.sweep(at));
        if self.model.agents[WORKER].session.is_none() {
            self.bury();
        }
    }

    async fn restarted(&mut self, rebooted: bool) {
        let at = self.at();
        self.audit = Auditor::new(&self.hive.path());
        for agent in &mut self.model.agents {
            if rebooted {
                agent.reboot(at);
            } else {
                agent.restart(at);
            }
        }
        if rebooted {
            self.bury();
            self.sweep().await;
        }
    }

    /// The turn is over without its harness.
    fn bury(&mut self) {
        self.zombies.extend(self.run.take());
        self.last = None;
    }

    async fn compare(&self) {
        self.audit.check();
        for (name, agent) in NAMES.iter().zip(&self.model.agents) {
            let is: Vec<(u64, State, u32)> = self
                .hive
                .inbox(name)
                .await
                .iter()
                .map(|delivery| (delivery.message.id.get(), delivery.state, delivery.attempt))
                .collect();
            let ought: Vec<(u64, State, u32)> =
                agent.items.iter().map(|item| (item.message, item.state, item.tried)).collect();
            assert_eq!(is, ought, "{name}");
            let open = agent.items.iter().filter(|item| !item.is_settled()).count();
            assert_eq!(self.hive.numbers(name).await.open_count as usize, open, "{name}");
            let leased = agent.items.iter().filter(|item| item.state == State::Leased);
            let mut in_turn =
                leased.filter(|item| matches!(item.holder, Some(Holder::Turn { .. })));
            assert!(self.run.is_some() || in_turn.next().is_none(), "{name}");
            assert_eq!(
                self.hive.row(name).await.session_token.is_some(),
                agent.session.is_some(),
                "{name}"
            );
        }
        let [worker, reader] = &self.model.agents;
        let to_boss = worker.to_parent + worker.states_told();
        assert_eq!(self.hive.numbers("boss").await.open_count, to_boss);
        assert_eq!(
            self.hive.numbers("operator").await.open_count,
            worker.to_operator + reader.to_parent + reader.to_operator
        );
        assert!(self.model.agents[READER].session.is_none());
    }
}

fn token(leased: &Leased) -> &str {
    leased.token.as_deref().expect("a consumer's lease")
}
