//! Harnesses: they attach, wait for turns, run a claude in each, report its outcome, and reconnect
//! after any failure.
//!
//! A life is one process. Its connection breaks and is opened again; its session lives as long as
//! the broker allows. Invariant: a life remembers all that a real harness would, and nothing more.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hive_core::command::Order;
use hive_core::id::CommandId;
use hive_core::reason::Reason;
use hive_core::turn::{Kind, Outcome};
use hive_history::{Mark, Reply};
use tokio::sync::Notify;

use super::claude::Turn;
use crate::call::{Call, Who};
use crate::net::Heard;
use crate::plan::Fault;
use crate::serve::Given;
use crate::world::{World, say};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Another process starts as its successor.
    Died,
    /// Another process already runs, or the agent is retired.
    Over,
}

/// The reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// Reconnect at once.
    Lost,
    /// Reconnect after this many ms.
    Cut(u64),
    /// The broker ended the session, or reports that it has ended.
    SessionOver,
    /// The process ends.
    Death,
}

pub(super) struct Life {
    pub(super) world: Rc<World>,
    pub(super) who: Who,
    pub(super) session: RefCell<String>,
    pub(super) turn: RefCell<Option<Turn>>,
    /// The unanswered request to begin a turn: its request id, and the secret of the next process.
    pub(super) wish: RefCell<Option<(String, String)>>,
    /// The unanswered end of a turn.
    pub(super) ending: RefCell<Option<(String, Call)>>,
    pub(super) needs_login: Cell<bool>,
    pub(super) frozen: Cell<bool>,
    pub(super) cancelled: Cell<u64>,
    /// Commands to acknowledge.
    pub(super) done: RefCell<Vec<u64>>,
    /// The restart order, and whether the restart was done.
    pub(super) restart: Cell<Option<(u64, bool)>>,
    pub(super) news: Notify,
}

impl World {
    /// Keeps an agent supplied with harnesses.
    pub(crate) async fn keep_harness(self: Rc<Self>, agent: String, mut take_over: bool) {
        loop {
            self.lives_of(&agent, 1);
            let fate = Life::new(&self, &agent).live(take_over).await;
            self.lives_of(&agent, -1);
            if fate == Fate::Over {
                return;
            }
            take_over = false;
            self.rest(self.dice.span(150_000)).await;
        }
    }

    fn lives_of(&self, agent: &str, change: i32) -> i32 {
        let mut lives = self.lives.borrow_mut();
        let count = lives.entry(agent.to_owned()).or_default();
        *count += change;
        *count
    }
}

impl Life {
    fn new(world: &Rc<World>, agent: &str) -> Rc<Self> {
        let who = Who::agent(agent.to_owned());
        Rc::new(Self {
            world: Rc::clone(world),
            who,
            session: RefCell::default(),
            turn: RefCell::default(),
            wish: RefCell::default(),
            ending: RefCell::default(),
            needs_login: Cell::new(false),
            frozen: Cell::new(false),
            cancelled: Cell::new(0),
            done: RefCell::default(),
            restart: Cell::new(None),
            news: Notify::new(),
        })
    }

    async fn live(self: &Rc<Self>, mut take_over: bool) -> Fate {
        let world = &self.world;
        let mut refused = 0;
        loop {
            let attach = Call::Attach { session: self.session.borrow().clone(), take_over };
            match world.call(&self.who, "", attach).await {
                Heard::Nothing => world.pause(3_000).await,
                Heard::Refused(Reason::AlreadyAttached) => {
                    refused += 1;
                    world.rest(1_000 + world.dice.span(40_000)).await;
                    take_over = refused > 5 || world.fails(Fault::TakeOver, 400);
                    if world.healing.get() && world.lives_of(&self.who.name, 0) > 1 {
                        return Fate::Over;
                    }
                }
                Heard::Refused(_) => {
                    if world.rest(60_000).await {
                        world.sleep(5_000).await;
                        if world.lives_of(&self.who.name, 0) > 1 {
                            return Fate::Over;
                        }
                    }
                }
                Heard::Done(given) => {
                    (refused, take_over) = (0, false);
                    match self.connected(given).await {
                        Break::Lost => world.pause(500).await,
                        Break::Cut(span) => {
                            world.rest(span).await;
                        }
                        Break::SessionOver => {
                            self.forget();
                            if world.lives_of(&self.who.name, 0) > 1 {
                                return Fate::Over;
                            }
                        }
                        Break::Death => {
                            self.forget();
                            return Fate::Died;
                        }
                    }
                }
            }
        }
    }

    /// Forgets the session and its turn.
    fn forget(&self) {
        let turn = self.turn.borrow().as_ref().map(|turn| turn.id);
        self.linger(self.session.take(), turn);
        self.wish.take();
        self.ending.take();
        if let Some(turn) = self.turn.take() {
            turn.stopped.set(true);
            self.world.haunt(&self.who.name, &turn);
        }
    }

    /// Keeps the old process running beside its successor, with its old session.
    fn linger(&self, session: String, turn: Option<u64>) {
        if session.is_empty() || !self.world.fails(Fault::Zombie, 400) {
            return;
        }
        let (world, who) = (Rc::clone(&self.world), self.who.clone());
        self.world.client(format!("ghost of {}", who.name), async move {
            world.pause(20_000).await;
            if let Some(turn) = turn {
                let (outcome, returned) = (Outcome::Ok, Vec::new());
                let end = Call::End {
                    session: session.clone(),
                    turn,
                    outcome,
                    returned,
                    retry_at: None,
                    compacted: false,
                };
                drop(world.insist(&who, end, 2).await);
            }
            world.pause(20_000).await;
            drop(
                world
                    .insist(
                        &who,
                        Call::Begin {
                            session,
                            process: "the process of a ghost".to_owned(),
                            kind: Kind::Mail,
                        },
                        2,
                    )
                    .await,
            );
        });
    }

    /// Runs one connection, from its attachment to its break.
    async fn connected(self: &Rc<Self>, given: Given) -> Break {
        let world = Rc::clone(&self.world);
        let Given { reply, attached: Some(attached), broker: Some(broker), .. } = given else {
            return Break::Lost;
        };
        let Reply::Attached { session, resumed, open_turn, .. } = reply else { return Break::Lost };
        if !resumed {
            self.forget();
        }
        self.session.replace(session);
        let unknown = self.turn.borrow().is_none()
            && self.wish.borrow().is_none()
            && self.ending.borrow().is_none();
        if resumed && open_turn > 0 && unknown {
            self.end(open_turn, Outcome::Drained, Vec::new(), false);
        }
        let Some(engine) = broker.engine() else { return Break::Lost };
        let key = attached.attachment.agent();
        let ended = attached.attachment.ended().clone();
        let stream = broker.open_stream(attached);
        let life = Rc::clone(self);
        let orders =
            world.exec.spawn(broker.group, format!("orders of {}", self.who.name), async move {
                life.watch_orders(engine, key).await;
            });
        let life = Rc::clone(self);
        let heart =
            world.client(format!("heart of {}", self.who.name), async move { life.beat().await });
        let mut boots = world.boots.subscribe();
        boots.mark_unchanged();
        let cut = world.dice.between(30_000, 900_000) * world.calm;
        let broken = tokio::select! {
            biased;
            () = broker.until_gone() => Break::Lost,
            _ = boots.changed() => Break::Death,
            () = ended.cancelled() => Break::SessionOver,
            broken = self.work() => broken,
            () = world.rest_if(Fault::Vanish, cut) => {
                if world.dice.chance(400) { Break::Death } else { Break::Cut(world.dice.weighted(&[(3, 2_000), (3, 40_000), (2, 59_000), (1, 61_000), (2, 200_000)])) }
            }
        };
        say!(world, "{}: connection broken: {broken:?}", self.who.name);
        if broken == Break::SessionOver && broker.attachments.is_wrongly_fenced(key) {
            world.wrong(format!(
                "Fenced: {} was fenced by an attach that is not on disk",
                self.who.name
            ));
        }
        world.exec.kill(heart);
        world.exec.kill(orders);
        world.mark(Mark::Detached { agent: self.who.name.clone() });
        broker.close_stream(stream);
        broken
    }

    async fn watch_orders(
        self: Rc<Self>,
        engine: std::sync::Arc<hive_broker::engine::Engine>,
        key: hive_broker::store::AgentKey,
    ) {
        let hints = engine.hints().agent(key);
        let mut after = 0;
        loop {
            let told = hints.changed.notified();
            for command in engine.open_commands(key, after).await.unwrap_or_default() {
                after = command.id.get();
                self.obey(command.id, &command.order);
            }
            told.await;
        }
    }

    fn obey(&self, id: CommandId, order: &Order) {
        say!(self.world, "{} is told: {id} {order:?}", self.who.name);
        match order {
            Order::CancelTurn(turn) => {
                self.cancelled.set(turn.get());
                self.done.borrow_mut().push(id.get());
            }
            Order::RestartHarness
                if self.restart.get().is_none_or(|(known, _)| known != id.get()) =>
            {
                self.restart.set(Some((id.get(), false)));
            }
            Order::RestartHarness
            | Order::StartNewSession
            | Order::SetModel(_)
            | Order::CompactSession => {}
        }
        self.news.notify_one();
    }

    /// Sends signs of life while a turn runs.
    async fn beat(self: Rc<Self>) {
        loop {
            self.world.sleep(15_000).await;
            if self.frozen.get() || self.turn.borrow().is_none() {
                continue;
            }
            let session = self.session.borrow().clone();
            drop(self.world.call(&self.who, "", Call::Heartbeat { session }).await);
        }
    }
}

impl World {
    /// Waits until a fault happens; for ever if it does not.
    async fn rest_if(&self, fault: Fault, ms: u64) {
        if !self.plan.has(fault) || self.healing.get() {
            return std::future::pending().await;
        }
        self.sleep(ms).await;
        if self.healing.get() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns whether an agent was retired.
    pub(crate) fn is_retired(&self, agent: &str) -> bool {
        self.retired.borrow().contains(agent)
    }
}
