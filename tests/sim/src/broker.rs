//! The broker of the simulation: one life of it, from opening the database to a clean shutdown or a
//! kill.
//!
//! Invariant: at its end its tasks, its memory and the pending answers of its connections are gone.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hive_broker::clock::Clock;
use hive_broker::engine::directories::Directories;
use hive_broker::engine::memory::Memory;
use hive_broker::engine::turn::attach::Attached;
use hive_broker::engine::{Engine, Identity, Parts};
use hive_broker::store::turn_events::TurnEvents;
use hive_broker::store::{OpenError, Step, SteppedStore, Store};
use hive_core::limits::Limits;
use hive_core::time::WallTime;
use hive_history::Mark;
use tokio::sync::watch;

use crate::attached::Attachments;
use crate::exec::Group;
use crate::plan::Fault;
use crate::world::{World, say};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    GoodOrder,
    Killed,
    PowerCut,
}

pub(crate) struct Broker {
    pub(crate) group: Group,
    hand: RefCell<Option<SteppedStore>>,
    engine: RefCell<Option<Arc<Engine>>>,
    ready: Cell<bool>,
    /// Whether a recovery left work to finish.
    left_over: Cell<bool>,
    pub(crate) attachments: Arc<Attachments>,
    streams: RefCell<BTreeMap<u64, Attached>>,
    last_stream: Cell<u64>,
    gone: watch::Sender<bool>,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "broker {}", self.group)
    }
}

impl Broker {
    /// Returns the engine while it serves.
    pub(crate) fn engine(&self) -> Option<Arc<Engine>> {
        if self.ready.get() { self.engine.borrow().clone() } else { None }
    }

    /// Keeps a harness attached for as long as its stream is open.
    pub(crate) fn open_stream(&self, attached: Attached) -> u64 {
        self.last_stream.set(self.last_stream.get() + 1);
        self.streams.borrow_mut().insert(self.last_stream.get(), attached);
        self.last_stream.get()
    }

    pub(crate) fn close_stream(&self, stream: u64) {
        let attached = self.streams.borrow_mut().remove(&stream);
        drop(attached);
    }

    /// Waits until the broker is gone.
    pub(crate) async fn until_gone(&self) {
        let mut gone = self.gone.subscribe();
        // An error means that it is gone as well.
        drop(gone.wait_for(|gone| *gone).await);
    }

    /// Returns whether the writer has something to do.
    pub(crate) fn has_work(&self, may_recover: bool) -> bool {
        let hand = self.hand.borrow();
        let Some(hand) = hand.as_ref() else { return false };
        if hand.is_open() { hand.queued() > 0 || self.left_over.get() } else { may_recover }
    }

    pub(crate) fn is_faulted(&self) -> bool {
        self.hand.borrow().as_ref().is_some_and(|hand| !hand.is_open())
    }

    /// Runs one step of the writer.
    pub(crate) fn step(&self, most: usize) -> Step {
        let stepped = self.hand.borrow_mut().as_mut().map_or(Step::Idle, |hand| hand.step(most));
        match stepped {
            Step::Recovery { recovered: true } => self.left_over.set(true),
            Step::Idle => self.left_over.set(false),
            Step::Batch { .. } | Step::Recovery { recovered: false } => {}
        }
        stepped
    }

    /// Ends everything of this broker.
    fn end(&self, in_good_order: bool) {
        self.ready.set(false);
        let streams = std::mem::take(&mut *self.streams.borrow_mut());
        drop(streams);
        let hand = self.hand.borrow_mut().take();
        match hand {
            Some(hand) if in_good_order => hand.close(),
            Some(_) | None => {}
        }
        let engine = self.engine.borrow_mut().take();
        drop(engine);
        self.gone.send_replace(true);
    }
}

/// Returns why the database cannot be opened, without the path.
fn hint(error: &OpenError) -> String {
    match error {
        OpenError::Sqlite { hint, source, .. } => format!("{hint} ({source:?})"),
        OpenError::Migration { hint, source, .. } => format!("{hint} ({source:?})"),
        OpenError::Directory { source, .. }
        | OpenError::NoWrites { source, .. }
        | OpenError::NoCopy { source, .. } => source.to_string(),
        OpenError::InUse { .. } => "in use".to_owned(),
        OpenError::Migrate(error) => error.to_string(),
        OpenError::Thread(error) => error.to_string(),
    }
}

impl World {
    /// Returns the broker that serves now.
    pub(crate) fn serving(&self) -> Option<(Rc<Broker>, Arc<Engine>)> {
        let broker = self.broker.borrow().clone()?;
        let engine = broker.engine()?;
        Some((broker, engine))
    }

    /// Starts a broker. If it cannot open its database, it is started again later, as a service
    /// manager would.
    pub(crate) fn start_broker(self: &Rc<Self>) {
        self.group.set(self.group.get() + 1);
        let group = self.group.get();
        say!(self, "start {group}");
        let memory = Arc::new(Memory::default());
        let boot_id = format!("boot-{}", *self.boots.borrow());
        let clock: Arc<dyn Clock> = Arc::new(self.time.boot(boot_id, self.boot_start.get()));
        let attachments = Arc::new(Attachments::new(Arc::clone(&memory)));
        let opened = Store::open_stepped(
            &self.host.dir(),
            Arc::clone(&clock),
            Arc::clone(&attachments) as _,
        )
        .and_then(|(store, hand)| Ok((store, hand, TurnEvents::open(&self.host.dir())?)));
        let (store, hand, turn_events) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // The main loop buries a broker that died while it opened.
                if !self.host.is_struck() {
                    self.cannot_start(&hint(&error));
                }
                return;
            }
        };
        let broker = Rc::new(Broker {
            group,
            hand: RefCell::new(Some(hand)),
            engine: RefCell::default(),
            ready: Cell::new(false),
            left_over: Cell::new(false),
            attachments,
            streams: RefCell::default(),
            last_stream: Cell::new(0),
            gone: watch::Sender::new(false),
        });
        self.broker.replace(Some(Rc::clone(&broker)));
        let parts = Parts {
            store,
            turn_events: Arc::new(turn_events),
            memory,
            clock,
            limits: Limits::default(),
            actions: Default::default(),
            identity: Identity::default(),
            directories: Directories::default(),
            sandboxes: Arc::default(),
        };
        let world = Rc::clone(self);
        self.exec.spawn(group, format!("start {group}"), async move {
            world.come_up(broker, parts).await;
        });
    }

    async fn come_up(self: Rc<Self>, broker: Rc<Broker>, parts: Parts) {
        let started = match Engine::start(parts).await {
            Ok(engine) => {
                let declared = self.declared.borrow().clone();
                let prepared = async {
                    engine.declare(declared).await?;
                    engine.ready().await
                };
                prepared.await.map(|()| engine)
            }
            Err(refusal) => Err(refusal),
        };
        let engine = match started {
            Ok(engine) => Arc::new(engine),
            Err(refusal) => {
                let world = Rc::clone(&self);
                let why = refusal.to_string();
                // A separate task, because the broker's own tasks end with it.
                self.client("give up a start".to_owned(), async move {
                    world.down(End::Killed);
                    world.cannot_start(&why);
                });
                return;
            }
        };
        broker.engine.replace(Some(Arc::clone(&engine)));
        broker.ready.set(true);
        self.mark(Mark::BrokerReady);
        say!(self, "ready {}", broker.group);
        let stop = engine.draining().clone();
        self.exec.spawn(
            broker.group,
            "due".to_owned(),
            hive_broker::task::due(Arc::clone(&engine), stop),
        );
        self.exec.spawn(
            broker.group,
            "wall".to_owned(),
            Rc::clone(&self).wall_due(Arc::clone(&engine)),
        );
        if self.plan.has(Fault::Retention) {
            self.exec.spawn(
                broker.group,
                "retention".to_owned(),
                Rc::clone(&self).retention(engine),
            );
        }
    }

    fn cannot_start(self: &Rc<Self>, why: &str) {
        say!(self, "cannot start: {why}");
        let world = Rc::clone(self);
        self.client("service manager".to_owned(), async move {
            world.sleep(1_000).await;
            world.start_broker();
        });
    }

    /// Runs the wall clock task: as `task::wall`, with the simulated clock instead of the kernel's
    /// timer.
    async fn wall_due(self: Rc<Self>, engine: Arc<Engine>) {
        loop {
            let (signal, set) = (engine.hints().wall_due.notified(), self.wall_set.notified());
            let swept = async {
                let (questions, reminders) =
                    (engine.sweep_questions().await?, engine.sweep_reminders().await?);
                let schedules = engine.sweep_schedules().await?;
                let all = questions.into_iter().chain(reminders).chain(schedules);
                Ok::<_, hive_broker::engine::Refusal>(all.min())
            };
            let next = match swept.await {
                Ok(next) => next,
                Err(_) => Some(engine.clock().now().wall.after(Duration::from_secs(1))),
            };
            let timer = async {
                match next {
                    Some(WallTime(due)) => {
                        self.sleep(u64::try_from(due - self.time.wall()).unwrap_or(0)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = signal => {}
                () = set => {}
                () = timer => {}
                () = engine.draining().cancelled() => return,
            }
        }
    }

    async fn retention(self: Rc<Self>, engine: Arc<Engine>) {
        loop {
            self.sleep(600_000 + self.dice.below(600_000)).await;
            if engine.draining().is_cancelled() {
                return;
            }
            // Longer than a run: only rows that must not exist any more are pruned.
            drop(engine.sweep_retention(Duration::from_secs(90 * 24 * 3600)).await);
        }
    }

    /// Ends the broker at this step; does not start it again.
    pub(crate) fn down(&self, end: End) {
        self.count(|figures| figures.deaths += 1);
        // A broker that was not ready counts too: its work while it started belongs to a life.
        self.mark(Mark::BrokerDown);
        let broker = self.broker.take();
        let old = match end {
            End::GoodOrder => None,
            End::Killed => Some(self.host.die(None)),
            End::PowerCut => Some(self.host.die(Some(&self.dice))),
        };
        if let Some(broker) = broker {
            self.exec.kill_group(broker.group);
            broker.end(end == End::GoodOrder);
        }
        if let Some(old) = old {
            self.host.bury(&old);
        }
        say!(self, "down {}: {end:?}", self.group.get());
    }

    /// Drops everything left when the run is over.
    pub(crate) fn abandon(&self) {
        self.exec.clear();
        if let Some(broker) = self.broker.take() {
            broker.end(false);
        }
        self.exec.clear();
    }
}
