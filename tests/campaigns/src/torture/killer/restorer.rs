//! Backups and restores: the operator makes a backup during the work, and later puts it in place of
//! the database, by the real programs; some restores are killed and begun again.
//!
//! Invariant: a backup has all that was known before it began, and no player works during a
//! restore.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use hive_history::Mark;

use super::Killer;
use crate::torture::facts::{Facts, Known};
use crate::torture::sound;

/// Maximum number of restores that are killed before one that is not.
const KILLED_MAX: u64 = 3;
/// The life of a restore that is killed, in ms, at most.
const LIFE_MAX: u64 = 60;
/// What a backup says that another one keeps from being made.
const OTHER_BACKUP: &str = "another backup is under way";
/// Maximum time for which a backup waits for its turn. Another one is read within a second.
const OTHER_WAIT: Duration = Duration::from_secs(10);
/// The points at which the first broker on a backup may die.
const FIRST_POINTS: [&str; 2] = ["broker.commit.before", "broker.commit.after"];

/// A backup.
#[derive(Debug)]
pub(crate) struct Backup {
    /// Its number in the history.
    number: u64,
    path: PathBuf,
    /// What was known before it began.
    known: Known,
}

impl Killer {
    /// Makes a backup of the running hive.
    pub(crate) async fn back_up(&mut self, facts: &Facts) -> anyhow::Result<Backup> {
        self.figures.count("backups");
        let number = self.figures.get("backups");
        let (known, path) = (facts.known(), self.rig.path(format!("backup-{number}.db")));
        self.tape.mark(Mark::BackupBegun { backup: number });
        let name = path.to_str().context("the path of a backup is text")?;
        let turn = Instant::now();
        loop {
            let said = self.rig.hivectl(&["backup", name]).await;
            if said.code == 0 {
                break;
            }
            // The operator's client makes backups too, and there is one at a time.
            if !said.stderr.contains(OTHER_BACKUP) || turn.elapsed() > OTHER_WAIT {
                bail!("hivectl backup ended with {}: {}", said.code, said.stderr);
            }
            self.figures.count("backups that waited for their turn");
        }
        self.tape.mark(Mark::BackedUp { backup: number });
        Ok(Backup { number, path, known })
    }

    /// Puts a backup in place of the database, which may be missing, and starts a broker on it.
    pub(crate) async fn restore(&mut self, backup: &Backup, facts: &Facts) -> anyhow::Result<()> {
        self.down();
        self.rig.kill_broker().await;
        self.figures.count("kill broker at random");
        if self.dice.chance(25) {
            let database = sound::database(&self.rig.path("state"))?;
            std::fs::remove_file(&database)?;
            self.figures.count("databases gone");
        }
        for _ in 0..self.dice.below(KILLED_MAX + 1) {
            let life = Duration::from_millis(self.dice.below(LIFE_MAX));
            self.restore_once(backup, Some(life)).await?;
        }
        self.restore_once(backup, None).await?;
        self.tape.mark(Mark::Restored { backup: backup.number });
        facts.take_back(&backup.known);
        self.figures.count("restores");
        if self.faults && self.dice.chance(60) {
            let (point, visit) = (*self.dice.pick(&FIRST_POINTS), 1 + self.dice.below(3));
            self.at_point(point, visit).await?;
        }
        self.start().await
    }

    /// Runs the program once; one that lives longer than this is killed.
    async fn restore_once(
        &mut self,
        backup: &Backup,
        life: Option<Duration>,
    ) -> anyhow::Result<()> {
        let log = self.rig.path("restore.log");
        let said = File::options().create(true).append(true).open(&log)?;
        let mut command = self.rig.broker_command();
        command.arg("restore").arg(&backup.path).stdout(said.try_clone()?).stderr(said);
        let mut restore = command.kill_on_drop(true).spawn().context("hived restore starts")?;
        let ended = match life {
            Some(life) => tokio::time::timeout(life, restore.wait()).await.ok(),
            None => Some(restore.wait().await),
        };
        match ended {
            Some(status) if status.as_ref().is_ok_and(std::process::ExitStatus::success) => {}
            Some(status) => {
                let said = std::fs::read_to_string(&log)?;
                bail!("hived restore ended with {status:?}: {said}");
            }
            None => {
                restore.kill().await.context("it can be killed")?;
                self.figures.count("kill restore at random");
            }
        }
        Ok(())
    }
}
