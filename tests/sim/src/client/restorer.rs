//! Backups and restores: the operator makes a backup, and later puts it in place of the database.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::rc::Rc;

use hive_history::Mark;
use tokio_util::sync::CancellationToken;

use crate::broker::End;
use crate::call::{Call, Who};
use crate::world::{Seat, World, say};

/// A backup, and what the people of the simulation knew when it was made.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Its number in the history.
    number: u64,
    copy: Vec<u8>,
    retired: BTreeSet<String>,
    seats: Vec<Seat>,
}

impl World {
    /// Makes a backup, or restores the last one.
    pub(crate) async fn back_up_or_restore(self: &Rc<Self>) {
        let kept = self.backup.borrow().clone();
        match kept {
            Some(kept) if self.dice.chance(600) => self.restore(kept).await,
            Some(_) | None => self.back_up().await,
        }
    }

    async fn back_up(self: &Rc<Self>) {
        let Some((broker, engine)) = self.serving() else { return };
        if broker.is_faulted() || self.host.is_bad() {
            return;
        }
        let number = self.backups.get() + 1;
        self.backups.set(number);
        self.mark(Mark::BackupBegun { backup: number });
        let Ok(mut copied) = engine.store().copy(CancellationToken::new()).await else { return };
        let mut copy = Vec::new();
        if let Err(error) = copied.file.read_to_end(&mut copy) {
            self.wrong(format!("a backup cannot be read: {error}"));
            return;
        }
        self.mark(Mark::BackedUp { backup: number });
        let (retired, seats) = (self.retired.borrow().clone(), self.seats.borrow().clone());
        self.backup.replace(Some(Kept { number, copy, retired, seats }));
    }

    async fn restore(self: &Rc<Self>, kept: Kept) {
        if self.host.is_bad() || self.broker.borrow().is_none() {
            return;
        }
        // After a restore without the replaced database, no database knows the numbers that were
        // used in between, so this backup is not restored again.
        let gone = self.dice.chance(250);
        if gone {
            self.backup.replace(None);
        }
        let Kept { number, copy, retired, seats } = kept;
        self.down(if self.dice.chance(500) { End::GoodOrder } else { End::Killed });
        if let Err(error) = self.host.restore(&copy, self.time.wall(), gone) {
            self.wrong(format!("a backup cannot be restored: {error}"));
            return;
        }
        self.mark(Mark::Restored { backup: number });
        say!(self, "restored {number}, database gone: {gone}");
        for agent in retired.symmetric_difference(&self.retired.borrow()) {
            self.mark(Mark::Retiring { agent: agent.clone() });
        }
        self.retired.replace(retired);
        self.seats.replace(seats);
        self.up_again().await;
        // An agent that was stopped when the backup was made is stopped again.
        let agents: Vec<String> =
            self.seats.borrow().iter().map(|seat| seat.name.clone()).collect();
        for agent in agents.into_iter().filter(|agent| !self.is_retired(agent)) {
            self.mark(Mark::Starting { agent: agent.clone() });
            drop(self.insist(&Who::operator(), Call::Start { agent }, 200).await);
        }
    }
}
