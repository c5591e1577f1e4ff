//! A run inside this process: an engine on a failing disk, stepped by hand; two agents that write
//! to each other and settle their mail.
//!
//! Faults come at random while calls go on, kills and power cuts at a random operation of the disk.
//! After each of those the engine starts again on what is left. Invariant: the run depends on its
//! seed alone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_broker::clock::ManualClock;
use hive_broker::engine::directories::Directories;
use hive_broker::engine::mail::receive::Receive;
use hive_broker::engine::mail::send::Send;
use hive_broker::engine::memory::Memory;
use hive_broker::engine::operator::agents::Create;
use hive_broker::engine::{Engine, Identity, Parts};
use hive_broker::store::turn_events::TurnEvents;
use hive_broker::store::{SteppedStore, Store};
use hive_core::agent::Policy;
use hive_core::limits::Limits;
use hive_core::message::Recipient;
use hive_core::reason::Reason;
use hive_core::settlement::{Action, Entry};
use hive_disk::{Disk, Op, Verdict};
use rand::{RngExt as _, SeedableRng as _};
use rand_xorshift::XorShiftRng;

use super::Outcome;
use super::books::{Books, Said};
use super::means::{STEPS_MAX, actor, any, caller, directory, drive, is_unavailable, key, name};

const AGENTS: [&str; 2] = ["ada", "bob"];

struct Broker {
    engine: Engine,
    hand: SteppedStore,
}

/// The directory and disk that remain after a power cut or a kill.
type Left = Arc<Mutex<Option<(tempfile::TempDir, Disk)>>>;

struct Run {
    rng: XorShiftRng,
    disk: Disk,
    dir: tempfile::TempDir,
    broker: Option<Broker>,
    left: Left,
    boots: u32,
    clock: Arc<ManualClock>,
    books: Books,
    last: u64,
    outcome: Outcome,
}

pub(super) fn run(seed: u64) -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    let mut run = Run::new(seed);
    let ended = run.all();
    run.outcome.count("runs inside", 1);
    run.outcome.count("receipts", run.books.told.len() as u64);
    run.outcome.found.extend(ended.err());
    for found in &mut run.outcome.found {
        *found = format!("seed {seed}: {found}");
    }
    run.outcome
}

impl Run {
    fn new(seed: u64) -> Self {
        let dir = directory();
        Self {
            rng: XorShiftRng::seed_from_u64(seed),
            disk: Disk::over(dir.path()),
            dir,
            broker: None,
            left: Left::default(),
            boots: 0,
            clock: Arc::new(ManualClock::new("boot-0")),
            books: Books::default(),
            last: 0,
            outcome: Outcome::default(),
        }
    }

    fn all(&mut self) -> Result<(), String> {
        self.start()?;
        self.create()?;
        for _ in 0..self.rng.random_range(2..6) {
            self.plan();
            for _ in 0..self.rng.random_range(5..30) {
                self.act()?;
                if self.was_cut() {
                    break;
                }
            }
            self.end_of_round()?;
        }
        self.audit()
    }

    fn create(&mut self) -> Result<(), String> {
        for agent in AGENTS {
            self.last += 1;
            let (role, model, policy) = (String::new(), String::new(), Policy::default());
            let create =
                Create { name: name(agent), parent: None, role, model, policy, adopt: false };
            let key = key("CreateAgent", self.last);
            let created = self.drive(|engine| async move {
                engine.create_agent(caller("operator"), key, create).await
            })?;
            created.map_err(|refusal| format!("an agent is not created: {refusal}"))?;
        }
        Ok(())
    }

    /// Chooses the faults of this round.
    fn plan(&mut self) {
        let (seed, share) =
            (self.rng.random_range(0..u64::MAX), [0, 0, 3, 20, 200][self.rng.random_range(0..5)]);
        let until = self.disk.asked() + self.rng.random_range(1..600);
        let ends_at = (self.rng.random_range(0..2) == 0)
            .then(|| self.disk.asked() + self.rng.random_range(1..400));
        let kill = self.rng.random_range(0..3) == 0;
        if self.rng.random_range(0..6) == 0 {
            self.disk.set_room(Some(self.rng.random_range(0..300_000)));
            self.outcome.count("small disks", 1);
        }
        let (disk, left) = (self.disk.clone(), Arc::clone(&self.left));
        self.disk.on(move |op: &Op| {
            let mut dice =
                XorShiftRng::seed_from_u64(seed ^ op.number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            if ends_at == Some(op.number) {
                let into = directory();
                let ended = if kill {
                    disk.kill(into.path())
                } else {
                    disk.cut_power(&mut dice, into.path())
                };
                *left.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some((into, ended.expect("an image")));
            }
            if op.number < until && dice.random_range(0..1000) < share {
                any(&mut dice)
            } else {
                Verdict::Proceed
            }
        });
    }

    /// Returns whether the power was cut or the broker killed; it then starts again on what is
    /// left.
    fn was_cut(&self) -> bool {
        self.disk.is_off()
    }

    fn end_of_round(&mut self) -> Result<(), String> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((dir, disk)) = left {
            self.broker = None;
            (self.dir, self.disk) = (dir, disk);
            self.boots += 1;
            self.clock = Arc::new(ManualClock::new(&format!("boot-{}", self.boots)));
            self.outcome.count("kills and power cuts", 1);
        }
        self.disk.heal();
        match self.rng.random_range(0..3) {
            // A clean shutdown.
            0 => {
                if let Some(Broker { engine, hand }) = self.broker.take() {
                    hand.close();
                    drop(engine);
                }
            }
            1 => self.broker = None,
            _ => {}
        }
        self.start()?;
        self.recover()
    }

    fn start(&mut self) -> Result<(), String> {
        if self.broker.is_some() {
            return Ok(());
        }
        let memory = Arc::new(Memory::default());
        let clock = Arc::clone(&self.clock);
        let opened = Store::open_stepped(
            self.dir.path(),
            Arc::<ManualClock>::clone(&clock),
            Arc::<Memory>::clone(&memory),
        );
        let (store, mut hand) = opened.map_err(|error| {
            format!("it does not open: {error}: {:?}", std::error::Error::source(&error))
        })?;
        let turn_events = TurnEvents::open(self.dir.path())
            .map_err(|error| format!("the turn lines do not open: {error}"))?;
        let directories = Directories::default();
        let parts = Parts {
            store,
            turn_events: Arc::new(turn_events),
            memory,
            clock,
            limits: Limits::default(),
            actions: Default::default(),
            identity: Identity::default(),
            directories,
            sandboxes: Arc::default(),
        };
        let serving = async {
            let engine = Engine::start(parts).await?;
            engine.ready().await.map(|()| engine)
        };
        let started =
            drive(&mut hand, &mut self.rng, serving).ok_or("the engine does not start")?;
        let engine = started.map_err(|refusal| format!("the engine does not start: {refusal}"))?;
        self.broker = Some(Broker { engine, hand });
        Ok(())
    }

    /// Checks that it recovers by itself on a working disk.
    fn recover(&mut self) -> Result<(), String> {
        let hand = &mut self.broker.as_mut().expect("it was started").hand;
        for _ in 0..STEPS_MAX {
            if hand.is_open() {
                return Ok(());
            }
            hand.step(1);
        }
        Err("it does not recover on a disk that works".to_owned())
    }

    /// Makes one agent act.
    fn act(&mut self) -> Result<(), String> {
        self.clock.advance(Duration::from_millis(self.rng.random_range(0..3000)));
        match self.rng.random_range(0..10) {
            0..5 => {
                self.last += 1;
                let from = self.rng.random_range(0..2);
                let len = [10, 100, 5000, 30_000][self.rng.random_range(0..4)];
                let body = format!("message {} {}", self.last, "x".repeat(len));
                self.say(Said { number: self.last, from: AGENTS[from], to: AGENTS[1 - from], body })
            }
            5 | 6 => self.again(),
            7 | 8 => self.settle(),
            _ => self.look(),
        }
    }

    fn again(&mut self) -> Result<(), String> {
        for said in std::mem::take(&mut self.books.unknown) {
            self.say(said)?;
        }
        Ok(())
    }

    fn say(&mut self, said: Said) -> Result<(), String> {
        let send = Send::new(Recipient::Agent(name(said.to)), said.body.as_str());
        let (from, key) = (actor(said.from), key("SendMessage", said.number));
        match self.drive(|engine| async move { engine.send(from, key, send).await })? {
            Ok(receipt) if self.disk.is_off() => drop(receipt),
            Ok(receipt) => self.books.tell(receipt.message.get(), &said.body)?,
            Err(refusal) if is_unavailable(&refusal)? => {
                self.outcome.count("sends answered unknown", 1);
                self.books.unknown.push(said);
            }
            // To be retried later.
            Err(refusal)
                if matches!(
                    refusal.reason(),
                    Reason::RateLimited | Reason::InboxFull | Reason::StorageFull
                ) =>
            {
                self.books.unknown.push(said);
            }
            Err(refusal) => return Err(format!("a send was refused: {refusal}: {refusal:?}")),
        }
        Ok(())
    }

    /// Makes an agent lease its mail and ack some of it.
    fn settle(&mut self) -> Result<(), String> {
        let agent = AGENTS[self.rng.random_range(0..2)];
        self.last += 1;
        let take = Receive {
            max_deliveries: 3,
            max_bytes: None,
            wait: Duration::ZERO,
            lease: Duration::from_secs(60),
            tool_use: None,
            leases_until: None,
        };
        let number = key("ReceiveMessages", self.last);
        let taken = match self
            .drive(|engine| async move { engine.receive(actor(agent), number, take).await })?
        {
            Ok((taken, handover)) if !self.disk.is_off() => {
                handover.taken();
                taken.deliveries
            }
            Ok(_) => return Ok(()),
            Err(refusal) => return is_unavailable(&refusal).map(drop),
        };
        for leased in taken {
            let id = leased.delivery.message.id.get();
            self.books.tell(id, &leased.delivery.message.body)?;
            if self.books.acked.contains(&id) {
                return Err(format!("message {id} was settled, and it is served again"));
            }
            let Some(token) = leased.token.filter(|_| self.rng.random_range(0..4) > 0) else {
                continue;
            };
            let ack = Entry::of_lease(token, Action::Ack);
            match self.drive(|engine| async move { engine.settle_one(actor(agent), ack).await })? {
                Ok(_) if !self.disk.is_off() => drop(self.books.acked.insert(id)),
                Ok(_) => {}
                Err(refusal) if refusal.reason() == Reason::LeaseLost => {}
                Err(refusal) => drop(is_unavailable(&refusal)?),
            }
        }
        Ok(())
    }

    /// Reads the operator's list; what it shows must stay.
    fn look(&mut self) -> Result<(), String> {
        match self.drive(|engine| async move {
            engine.list_messages(caller("operator"), String::new(), None, None, 500).await
        })? {
            Ok((messages, _)) if !self.disk.is_off() => {
                for message in messages {
                    self.books.tell(message.id.get(), &message.body)?;
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(refusal) => is_unavailable(&refusal).map(drop),
        }
    }

    /// Ends the run and checks the books.
    fn audit(&mut self) -> Result<(), String> {
        self.disk.heal();
        self.broker = None;
        self.start()?;
        self.recover()?;
        for _ in 0..STEPS_MAX {
            self.again()?;
            if self.books.unknown.is_empty() {
                break;
            }
            // Sends refused by the rate limit.
            self.clock.advance(Duration::from_secs(60));
        }
        if !self.books.unknown.is_empty() {
            return Err(format!(
                "{} sends are not accepted on a disk that works",
                self.books.unknown.len()
            ));
        }
        if let Some(Broker { engine, hand }) = self.broker.take() {
            hand.close();
            drop(engine);
        }
        let found = self.books.audit(&self.dir.path().join("hive.db"))?;
        self.outcome.found.extend(found);
        Ok(())
    }

    /// Drives a call of the engine to its answer, and steps its store in the meantime.
    fn drive<'r, T, F>(&'r mut self, call: impl FnOnce(&'r Engine) -> F) -> Result<T, String>
    where
        F: Future<Output = T>,
    {
        let Broker { engine, hand } = self.broker.as_mut().expect("it was started");
        drive(hand, &mut self.rng, call(engine)).ok_or_else(|| "a call gets no answer".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_lies_is_found_out() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let _entered = runtime.enter();
        let found = (0..40).any(|seed| {
            let into = directory();
            let mut run = Run::new(seed);
            run.start().expect("it starts");
            run.create().expect("they are created");
            let disk = run.disk.clone();
            disk.on(|_| Verdict::Pretend);
            for _ in 0..10 {
                run.last += 1;
                let body = format!("message {}", run.last);
                run.say(Said { number: run.last, from: "ada", to: "bob", body })
                    .expect("no violation yet");
            }
            run.disk = disk.cut_power(&mut run.rng, into.path()).expect("an image");
            (run.broker, run.dir) = (None, into);
            run.audit().is_err() || !run.outcome.found.is_empty()
        });
        assert!(found);
    }
}
