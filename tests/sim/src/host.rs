//! The host: the disk of the database, how it fails, and its content after a kill or a power cut.
//!
//! Invariant: a broker that opens the database after a kill finds exactly what was written until
//! the kill.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hive_broker::hints::Hints;
use hive_broker::store::Store;
use hive_broker::store::restore::restore;
use hive_broker::store::turn_events::TurnEvents;
use hive_core::time::WallTime;
use hive_disk::{Action, Disk, Error, Kind, Op, Verdict};
use tempfile::TempDir;

use crate::clock::Time;
use crate::dice::Dice;

/// The files of a new database: created once, copied for each run.
type Template = Vec<(&'static str, Vec<u8>)>;

/// Creates a directory in memory if possible.
pub fn directory() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    tempfile::Builder::new().prefix("hive-sim-").tempdir_in(memory).or_else(|_| tempfile::tempdir())
}

fn template() -> &'static Template {
    static TEMPLATE: OnceLock<Template> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let dir = directory().expect("a directory for the template");
        let clock = Arc::new(Time::of(0).boot("template".to_owned(), 0));
        let (store, hand) = Store::open_stepped(dir.path(), clock, Arc::new(Hints::default()))
            .expect("a new database");
        hand.close();
        drop(store);
        drop(TurnEvents::open(dir.path()).expect("a new file of turn lines"));
        let files = ["hive.db", "turn-events.db"];
        files
            .map(|name| (name, std::fs::read(dir.path().join(name)).expect("it was just made")))
            .to_vec()
    })
}

/// The point of the broker's death: its next sync or write of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doom {
    pub(crate) action: Action,
    pub(crate) kind: Kind,
    /// The number of such actions that succeed first.
    pub(crate) skip: u64,
    /// Whether it dies after the action, not before.
    pub(crate) after: bool,
}

/// A failure of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// One of this many actions of this kind fails with this error.
    Fails(Option<Action>, Error, u64),
    /// Syncs fail and lose their data.
    Loses(u64),
}

#[derive(Debug, Default)]
struct Weather {
    doom: Option<Doom>,
    /// Whether the broker died here: nothing reaches the disk any more.
    struck: bool,
    trouble: Option<Trouble>,
    met: u64,
}

impl Weather {
    fn judge(&mut self, op: &Op) -> Verdict {
        if self.struck {
            return Verdict::Fail(Error::Io);
        }
        if self.meets(op, false) {
            self.struck = true;
            return Verdict::Fail(Error::Io);
        }
        match self.trouble {
            Some(Trouble::Fails(action, error, every))
                if action.is_none_or(|action| action == op.action) =>
            {
                self.met += 1;
                if self.met.is_multiple_of(every) { Verdict::Fail(error) } else { Verdict::Proceed }
            }
            Some(Trouble::Loses(every)) if op.action == Action::Sync => {
                self.met += 1;
                if self.met.is_multiple_of(every) {
                    Verdict::LoseSome(self.met)
                } else {
                    Verdict::Proceed
                }
            }
            Some(_) | None => Verdict::Proceed,
        }
    }

    /// Returns whether the broker dies now.
    fn meets(&mut self, op: &Op, after: bool) -> bool {
        let Some(doom) = &mut self.doom else { return false };
        if doom.after != after || doom.action != op.action || doom.kind != op.kind {
            return false;
        }
        if doom.skip > 0 {
            doom.skip -= 1;
            return false;
        }
        self.doom = None;
        true
    }
}

/// The directory of the database, and the disk below it.
pub(crate) struct Host {
    root: TempDir,
    lives: Cell<u32>,
    dir: RefCell<PathBuf>,
    disk: RefCell<Disk>,
    weather: Arc<Mutex<Weather>>,
    full: Cell<bool>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "life {}", self.lives.get())
    }
}

fn lock(weather: &Mutex<Weather>) -> MutexGuard<'_, Weather> {
    weather.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    pub(crate) fn new() -> Self {
        let files = template();
        let root = directory().expect("a directory for the run");
        let dir = root.path().join("0");
        std::fs::create_dir(&dir).expect("a new directory");
        for (name, bytes) in files {
            std::fs::write(dir.join(name), bytes).expect("a copy of the template");
        }
        let disk = RefCell::new(Disk::over(&dir));
        let host = Self {
            dir: RefCell::new(dir),
            lives: Cell::new(0),
            root,
            disk,
            weather: Arc::default(),
            full: Cell::new(false),
        };
        host.rule();
        host
    }

    /// Applies the current faults to the present disk.
    fn rule(&self) {
        let disk = self.disk.borrow();
        let weather = Arc::clone(&self.weather);
        disk.on(move |op| lock(&weather).judge(op));
        let weather = Arc::clone(&self.weather);
        disk.watch(move |op, done| {
            let mut weather = lock(&weather);
            if done && weather.meets(op, true) {
                weather.struck = true;
            }
        });
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.borrow().clone()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.dir().join("hive.db")
    }

    /// Kills the process, or cuts the power with it: nothing that it still does counts from now on.
    /// The caller then calls [`Self::bury`].
    pub(crate) fn die(&self, power_cut: Option<&Dice>) -> PathBuf {
        let old = self.dir();
        self.lives.set(self.lives.get() + 1);
        let new = self.root.path().join(self.lives.get().to_string());
        std::fs::create_dir(&new).expect("a new directory");
        let disk = self.disk.borrow().clone();
        let left = match power_cut {
            Some(dice) => dice.with(|rng| disk.cut_power(rng, &new)),
            None => disk.kill(&new),
        };
        self.disk.replace(left.expect("memory takes the files of a dead broker"));
        self.dir.replace(new);
        {
            let mut weather = lock(&self.weather);
            (weather.doom, weather.struck) = (None, false);
        }
        self.rule();
        if self.full.get() {
            self.fill(true);
        }
        old
    }

    /// Removes the files of the dead process, which have no reader any more.
    pub(crate) fn bury(&self, old: &Path) {
        std::fs::remove_dir_all(old).expect("a directory that nobody uses");
    }

    /// Puts a backup in place of the database of a broker that is down, on a disk that has all of
    /// it. `gone`: of the old database nothing is left.
    pub(crate) fn restore(&self, copy: &[u8], wall: i64, gone: bool) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        let old = self.die(None);
        self.bury(&old);
        let dir = self.dir();
        let backup = self.root.path().join("backup.db");
        std::fs::write(&backup, copy).map_err(text)?;
        if gone {
            for file in ["hive.db", "hive.db-wal", "hive.db-shm"] {
                drop(std::fs::remove_file(dir.join(file)));
            }
        }
        restore(&dir, &backup, WallTime(wall)).map_err(|error| error.to_string())?;
        // The disk has not seen the renames, so its place is taken by one that begins with the
        // restored files.
        self.lives.set(self.lives.get() + 1);
        let new = self.root.path().join(self.lives.get().to_string());
        std::fs::create_dir(&new).map_err(text)?;
        for entry in std::fs::read_dir(&dir).map_err(text)? {
            let path = entry.map_err(text)?.path();
            let name = path.file_name().unwrap_or_default();
            std::fs::copy(&path, new.join(name)).map_err(text)?;
        }
        self.disk.replace(Disk::over(&new));
        self.dir.replace(new);
        self.rule();
        self.bury(&dir);
        Ok(())
    }

    /// Makes the broker die during a commit.
    pub(crate) fn doom(&self, doom: Doom) {
        lock(&self.weather).doom = Some(doom);
    }

    /// Returns whether it has just died.
    pub(crate) fn is_struck(&self) -> bool {
        lock(&self.weather).struck
    }

    pub(crate) fn trouble(&self, trouble: Option<Trouble>) {
        lock(&self.weather).trouble = trouble;
    }

    /// Fills the disk, or frees its room again.
    pub(crate) fn fill(&self, full: bool) {
        self.full.set(full);
        self.disk.borrow().set_room(full.then_some(0));
    }

    /// Returns whether the host has any fault.
    pub(crate) fn is_bad(&self) -> bool {
        let weather = lock(&self.weather);
        weather.trouble.is_some() || weather.struck || self.full.get()
    }

    /// Ends all faults of the host.
    pub(crate) fn heal(&self) {
        {
            let mut weather = lock(&self.weather);
            (weather.trouble, weather.doom) = (None, None);
        }
        self.fill(false);
    }
}
