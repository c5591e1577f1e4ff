//! Chaos: kills, power cuts, reboots, restarts, disk errors, and people that set the clock.

use std::rc::Rc;

use hive_core::delivery::State;
use hive_disk::{Action, Error, Kind};
use hive_history::Mark;

use crate::broker::End;
use crate::host::{Doom, Trouble};
use crate::plan::Fault;
use crate::world::{World, say};

impl World {
    /// Breaks the broker and its host until all is healed.
    pub(crate) async fn befall(self: Rc<Self>) {
        let calm = self.dice.weighted(&[(2, 120_000), (3, 600_000), (1, 2_400_000)]);
        while !self.rest(self.dice.between(calm / 10, calm) * self.calm).await {
            let what = self.dice.weighted(&[
                (4, Fault::Kill),
                (4, Fault::PowerCut),
                (2, Fault::Restart),
                (1, Fault::Reboot),
                (2, Fault::BadDisk),
                (1, Fault::FullDisk),
                (2, Fault::ClockSet),
                (3, Fault::Restore),
            ]);
            if self.plan.has(what) {
                self.befall_with(what).await;
            }
        }
    }

    async fn befall_with(self: &Rc<Self>, what: Fault) {
        match what {
            Fault::Kill | Fault::PowerCut => {
                if self.dice.chance(600) {
                    self.doom(what).await;
                } else {
                    self.down(end(what));
                    self.up_again().await;
                }
            }
            Fault::Reboot => self.reboot().await,
            Fault::Restart => self.restart().await,
            Fault::Restore => self.back_up_or_restore().await,
            Fault::BadDisk => {
                let every = self.dice.weighted(&[(1, 1), (1, 3), (2, 40)]);
                let trouble = match self.dice.below(5) {
                    0 => Trouble::Loses(every),
                    1 => Trouble::Fails(Some(Action::Sync), Error::Io, every),
                    2 => Trouble::Fails(Some(Action::Write), Error::Io, every),
                    3 => Trouble::Fails(Some(Action::Read), Error::Io, every),
                    _ => Trouble::Fails(None, Error::Io, every),
                };
                say!(self, "the disk is bad: {trouble:?}");
                self.host.trouble(Some(trouble));
                self.disk_bad.notify_waiters();
                self.rest(self.dice.span(60_000)).await;
                self.host.trouble(None);
                say!(self, "the disk is well");
            }
            Fault::FullDisk => {
                say!(self, "the disk is full");
                self.host.fill(true);
                self.disk_bad.notify_waiters();
                self.rest(self.dice.span(120_000)).await;
                self.host.fill(false);
                say!(self, "the disk has room");
            }
            Fault::ClockSet => {
                // This records the last wall time before the clock is set.
                self.mark(Mark::Note("the clock is about to be set".to_owned()));
                let by = i64::try_from(self.dice.span(3_600_000)).unwrap_or(0) + 1;
                self.time.jump(if self.dice.chance(500) { by } else { -by });
                self.mark(Mark::ClockSet);
                self.wall_set.notify_waiters();
            }
            Fault::LostRequest
            | Fault::LostReply
            | Fault::Repeat
            | Fault::Delay
            | Fault::GiveUp
            | Fault::Lag
            | Fault::Vanish
            | Fault::TakeOver
            | Fault::Zombie
            | Fault::Topology
            | Fault::Retention => {}
        }
    }

    /// Makes the broker die during its next writes; the main loop buries it.
    async fn doom(self: &Rc<Self>, what: Fault) {
        let doom = Doom {
            action: self.dice.weighted(&[(3, Action::Sync), (2, Action::Write)]),
            kind: self.dice.weighted(&[(9, Kind::Log), (1, Kind::Database)]),
            skip: self.dice.weighted(&[(3, 0), (2, 1), (1, 5)]),
            after: self.dice.chance(500),
        };
        say!(self, "doomed: {what:?} {doom:?}");
        self.struck_end.set(end(what));
        self.host.doom(doom);
        // Sometimes it dies again while it starts.
        if self.dice.chance(300) {
            self.rest(self.dice.span(8_000)).await;
            self.host.doom(Doom { skip: 0, ..doom });
        }
    }

    /// Starts the broker again after a death.
    pub(crate) async fn up_again(self: &Rc<Self>) {
        let long = 90_000 * self.calm;
        let pause =
            self.dice.weighted(&[(4, 100), (3, 2_000), (2, 30_000), (1, 90_000), (1, long)]);
        self.outage.set(pause.div_ceil(90_000));
        self.sleep(pause).await;
        self.outage.set(1);
        if self.broker.borrow().is_none() {
            self.start_broker();
        }
    }

    async fn restart(self: &Rc<Self>) {
        let Some((_, engine)) = self.serving() else { return };
        say!(self, "drain");
        self.mark(Mark::BrokerDown);
        engine.drain();
        drop(engine);
        self.sleep(self.dice.span(5_000)).await;
        self.down(End::GoodOrder);
        self.up_again().await;
    }

    async fn reboot(self: &Rc<Self>) {
        self.mark(Mark::Reboot);
        self.down(if self.plan.has(Fault::PowerCut) { End::PowerCut } else { End::Killed });
        let boot = *self.boots.borrow() + 1;
        self.boots.send_replace(boot);
        self.boot_start
            .set(self.time.elapsed() - i64::try_from(self.dice.between(500, 20_000)).unwrap_or(0));
        say!(self, "boot {boot}");
        self.up_again().await;
    }

    /// Starts second harnesses that take over: now and then, and sometimes when the disk goes bad,
    /// so that some attachments are in batches that fail.
    pub(crate) async fn usurp(self: Rc<Self>, agent: String) {
        while !self.healing.get() {
            let likely = tokio::select! {
                biased;
                () = self.disk_bad.notified() => self.dice.chance(300),
                _ = self.rest(self.dice.between(60_000, 1_500_000) * self.calm) => true,
            };
            if likely
                && !self.healing.get()
                && self.plan.has(Fault::TakeOver)
                && self.lives.borrow().get(&agent).is_some_and(|lives| *lives == 1)
            {
                say!(self, "a second harness of {agent}");
                self.client(
                    format!("second harness of {agent}"),
                    Rc::clone(&self).keep_harness(agent.clone(), true),
                );
            }
        }
    }

    /// Returns a sentence per delivery that is ready or leased in these agents' inboxes.
    pub(crate) async fn unread(&self, agents: &[String]) -> Option<Vec<String>> {
        let (_, engine) = self.serving()?;
        let mut unread = Vec::new();
        for agent in agents {
            let states = vec![State::Ready, State::Leased];
            let listed = engine
                .list_deliveries(crate::serve::caller("operator"), agent.clone(), states, None, 20)
                .await;
            for delivery in listed.ok()?.0 {
                unread.push(format!(
                    "{} in the inbox of {agent} is {}",
                    delivery.message.id, delivery.state
                ));
            }
        }
        Some(unread)
    }
}

fn end(fault: Fault) -> End {
    if fault == Fault::PowerCut { End::PowerCut } else { End::Killed }
}
