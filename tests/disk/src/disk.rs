//! A disk: the faults and the synced content of the databases below one directory.
//!
//! Invariant: the judge and the watcher are called without the disk's lock, so they may block, and
//! may cut the power.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rand::Rng;
use rusqlite::ffi;

use crate::fault::Fault;
use crate::files::{copy, is_stamped, stamp, write};
use crate::model::Model;
use crate::op::{Action, Error, Kind, Op, Verdict};
use crate::shim;

type Judge = Arc<dyn Fn(&Op) -> Verdict + Send + Sync>;
type Watcher = Arc<dyn Fn(&Op, bool) + Send + Sync>;

static DISKS: Mutex<Vec<(PathBuf, Weak<Inner>)>> = Mutex::new(Vec::new());

/// The controller of the databases below one directory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct Disk {
    inner: Arc<Inner>,
}

#[derive(Default)]
pub(crate) struct Inner {
    dir: PathBuf,
    asked: AtomicU64,
    judge: Mutex<Option<Judge>>,
    watcher: Mutex<Option<Watcher>>,
    state: Mutex<State>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("dir", &self.dir).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    off: bool,
    room: Option<u64>,
    files: BTreeMap<String, Model>,
    counts: BTreeMap<(Kind, Action), u64>,
}

impl State {
    /// Syncs a file's directory: the names in it are on disk, and removed names are gone.
    fn sync_names(&mut self, file: &str) {
        let dir = Path::new(file).parent();
        self.files
            .iter_mut()
            .filter(|(name, _)| Path::new(name).parent() == dir)
            .for_each(|(_, model)| model.named());
    }
}

impl Disk {
    /// Puts the databases below a directory under a new disk. The directory must exist, and the
    /// databases must not be open yet.
    pub fn over(dir: &Path) -> Self {
        Self::with(dir, BTreeMap::new())
    }

    fn with(dir: &Path, files: BTreeMap<String, Model>) -> Self {
        shim::register();
        let dir = fs::canonicalize(dir).expect("the directory is there");
        let state = Mutex::new(State { files, ..State::default() });
        let inner = Arc::new(Inner { dir: dir.clone(), state, ..Inner::default() });
        let mut disks = lock(&DISKS);
        disks.retain(|(_, disk)| disk.strong_count() > 0);
        assert!(
            disks.iter().all(|(other, _)| *other != dir),
            "a disk rules {} already",
            dir.display()
        );
        disks.push((dir, Arc::downgrade(&inner)));
        Self { inner }
    }

    /// Sets the judge of all further operations. It may block (a slow disk), and it may cut the
    /// power.
    pub fn on(&self, judge: impl Fn(&Op) -> Verdict + Send + Sync + 'static) {
        *lock(&self.inner.judge) = Some(Arc::new(judge));
    }

    /// Sets the faults of the disk; the first that applies decides.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        let faults: Vec<Fault> = faults.into_iter().collect();
        self.on(move |op| {
            faults
                .iter()
                .map(|fault| fault.judge(op))
                .find(|it| *it != Verdict::Proceed)
                .unwrap_or(Verdict::Proceed)
        });
    }

    /// Removes all faults and the limit of room. Lost data stays lost, and a disk that is off stays
    /// off.
    pub fn heal(&self) {
        *lock(&self.inner.judge) = None;
        lock(&self.inner.state).room = None;
    }

    /// Limits the further growth of all files, in bytes; truncation frees room again. `None`: no
    /// limit.
    pub fn set_room(&self, bytes: Option<u64>) {
        lock(&self.inner.state).room = bytes;
    }

    /// Sets the watcher, which is called after each operation, with `true` if it was done and
    /// `false` if refused. The judge is called before. The watcher may cut the power.
    pub fn watch(&self, watcher: impl Fn(&Op, bool) + Send + Sync + 'static) {
        *lock(&self.inner.watcher) = Some(Arc::new(watcher));
    }

    /// Returns the number of these operations on files of this kind.
    pub fn count(&self, kind: Kind, action: Action) -> u64 {
        lock(&self.inner.state).counts.get(&(kind, action)).copied().unwrap_or(0)
    }

    /// Returns the number of operations so far.
    pub fn asked(&self) -> u64 {
        self.inner.asked.load(Ordering::Relaxed)
    }

    /// Returns the number of changes that no sync has written or lost yet.
    pub fn unsynced(&self) -> usize {
        lock(&self.inner.state).files.values().map(|file| file.pending.len()).sum()
    }

    /// Returns whether the power was cut, or the processes were killed.
    pub fn is_off(&self) -> bool {
        lock(&self.inner.state).off
    }

    /// Cuts the power. From now on every operation on this disk fails. `into`, an empty directory,
    /// gets what the disk holds, and the returned disk controls it. Files that SQLite has not
    /// opened are copied as they are.
    pub fn cut_power(&self, rng: &mut dyn Rng, into: &Path) -> io::Result<Self> {
        let mut state = lock(&self.inner.state);
        state.off = true;
        copy(&self.inner.dir, &self.inner.dir, into, &state.files)?;
        let mut files = BTreeMap::new();
        for (name, model) in &state.files {
            let gone = model.there && !self.inner.dir.join(name).exists();
            if let Some(content) = model.survivor(rng).filter(|_| !gone) {
                write(&into.join(name), &content)?;
                files.insert(name.clone(), Model::found(content));
            }
        }
        drop(state);
        Ok(Self::with(into, files))
    }

    /// Kills the processes that use the disk, except this one. From now on every operation on this
    /// disk fails. `into`, an empty directory, gets everything that was written, and the returned
    /// disk controls it. Unsynced data is readable there and still unsynced.
    pub fn kill(&self, into: &Path) -> io::Result<Self> {
        let mut state = lock(&self.inner.state);
        state.off = true;
        copy(&self.inner.dir, &self.inner.dir, into, &BTreeMap::new())?;
        let files = state.files.clone();
        drop(state);
        files
            .iter()
            .filter(|(_, model)| model.there)
            .for_each(|(name, model)| stamp(into, name, model));
        Ok(Self::with(into, files))
    }
}

/// Returns the disk of a path, and the path below its directory.
pub(crate) fn find(path: &Path) -> Option<(Arc<Inner>, String)> {
    let disks = lock(&DISKS);
    let rules = |(dir, disk): &(PathBuf, Weak<Inner>)| {
        Some((disk.upgrade()?, path.strip_prefix(dir).ok()?.to_str()?.to_owned()))
    };
    disks.iter().find_map(rules)
}

/// A file that SQLite has open on a disk.
#[derive(Debug)]
pub(crate) struct Handle {
    disk: Arc<Inner>,
    file: String,
    kind: Kind,
    /// Whether its next sync syncs its directory too, as the host's VFS does once for each log and
    /// journal that it may create.
    with_names: AtomicBool,
}

impl Handle {
    fn run(
        &self,
        action: Action,
        offset: u64,
        len: usize,
        run: impl FnOnce(&mut Model, Step<'_>) -> i32,
    ) -> i32 {
        self.disk.run(&self.file, self.kind, action, offset, len, run)
    }

    pub(crate) fn read(&self, offset: u64, len: usize, real: impl FnOnce() -> i32) -> i32 {
        self.run(Action::Read, offset, len, |_, _| real())
    }

    pub(crate) fn write(&self, offset: u64, data: &[u8], real: impl FnOnce(&[u8]) -> i32) -> i32 {
        self.run(Action::Write, offset, data.len(), |model, step| {
            let (part, code) = match step.verdict {
                Verdict::Torn(bytes, error) => {
                    (&data[..bytes.min(data.len())], Some(error.code(Action::Write)))
                }
                Verdict::Proceed
                | Verdict::Fail(_)
                | Verdict::Lose
                | Verdict::LoseSome(_)
                | Verdict::Pretend => (data, None),
            };
            let growth = (offset + part.len() as u64).saturating_sub(model.len);
            match step.room {
                Some(room) if *room < growth => return ffi::SQLITE_FULL,
                Some(room) => *room -= growth,
                None => {}
            }
            let written = real(part);
            if written == ffi::SQLITE_OK {
                model.wrote(offset, part);
                stamp(&self.disk.dir, &self.file, model);
            }
            code.unwrap_or(written)
        })
    }

    pub(crate) fn truncate(&self, len: u64, real: impl FnOnce() -> i32) -> i32 {
        self.run(Action::Truncate, len, 0, |model, step| {
            let cut = real();
            if cut == ffi::SQLITE_OK {
                if let Some(room) = step.room {
                    *room += model.len.saturating_sub(len);
                }
                model.truncated(len);
            }
            cut
        })
    }

    pub(crate) fn sync(&self) -> i32 {
        let mut true_one = false;
        let code = self.run(Action::Sync, 0, 0, |model, step| {
            let lost = match step.verdict {
                Verdict::Lose => None,
                Verdict::LoseSome(seed) => Some(seed),
                Verdict::Pretend => return ffi::SQLITE_OK,
                Verdict::Proceed | Verdict::Fail(_) | Verdict::Torn(..) => {
                    model.synced();
                    true_one = true;
                    return ffi::SQLITE_OK;
                }
            };
            model.lost(lost);
            stamp(&self.disk.dir, &self.file, model);
            Error::Io.code(Action::Sync)
        });
        if true_one && self.with_names.swap(false, Ordering::Relaxed) {
            lock(&self.disk.state).sync_names(&self.file);
        }
        code
    }

    pub(crate) fn share(&self, real: impl FnOnce() -> i32) -> i32 {
        self.run(Action::Share, 0, 0, |_, _| real())
    }

    /// Returns whether every operation on the file fails.
    pub(crate) fn is_off(&self) -> bool {
        lock(&self.disk.state).off
    }
}

/// Opens a file on a disk: `real` opens the host's file.
pub(crate) fn open(
    disk: Arc<Inner>,
    file: String,
    flags: i32,
    real: impl FnOnce() -> i32,
) -> Result<Handle, i32> {
    let kind = Kind::of_flags(flags);
    let path = disk.dir.join(&file);
    let code = disk.run(&file, kind, Action::Open, 0, 0, |model, _| {
        let len = fs::metadata(&path).map(|data| data.len()).ok();
        if model.there && len.is_none() {
            // Deleted without SQLite.
            model.deleted();
        }
        if let Some(len) = len
            && (!model.there || model.len != len || (model.forgotten && !is_stamped(&path)))
            // Read before it is opened: closing a file ends the process's locks on it, and the
            // process has none on a file that is new here.
            && let Ok(content) = fs::read(&path)
        {
            *model = Model::found(content);
        }
        let opened = real();
        if opened == ffi::SQLITE_OK {
            model.opened();
        }
        opened
    });
    if code != ffi::SQLITE_OK {
        return Err(code);
    }
    let may_be_new =
        matches!(kind, Kind::Log | Kind::Journal) && flags & ffi::SQLITE_OPEN_CREATE != 0;
    Ok(Handle { disk, file, kind, with_names: AtomicBool::new(may_be_new) })
}

/// Deletes a file on a disk: `real` deletes the host's file.
pub(crate) fn delete(disk: &Inner, file: &str, synced: bool, real: impl FnOnce() -> i32) -> i32 {
    let deleted = disk.run(file, Kind::of_name(file), Action::Delete, 0, 0, |model, _| {
        let deleted = real();
        if deleted == ffi::SQLITE_OK {
            model.deleted();
        }
        deleted
    });
    if deleted == ffi::SQLITE_OK && synced {
        lock(&disk.state).sync_names(file);
    }
    deleted
}

/// The inputs of an operation besides the file.
struct Step<'a> {
    verdict: Verdict,
    room: Option<&'a mut u64>,
}

impl Inner {
    /// Asks the judge for a verdict, and does the operation unless it is refused.
    fn run(
        &self,
        file: &str,
        kind: Kind,
        action: Action,
        offset: u64,
        len: usize,
        run: impl FnOnce(&mut Model, Step<'_>) -> i32,
    ) -> i32 {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let op = Op { number, file: file.to_owned(), kind, action, offset, len };
        let judge = lock(&self.judge).clone();
        // A panic must not unwind through SQLite; a test whose judge panics sees a failing disk.
        let verdict = judge.map_or(Verdict::Proceed, |judge| {
            catch_unwind(AssertUnwindSafe(|| judge(&op))).unwrap_or(Verdict::Fail(Error::Io))
        });
        let code = {
            let mut state = lock(&self.state);
            let State { off, room, files, counts } = &mut *state;
            *counts.entry((kind, action)).or_default() += 1;
            match refusal(action, verdict) {
                _ if *off => Error::Io.code(action),
                Some(code) => code,
                None => run(
                    files.entry(file.to_owned()).or_default(),
                    Step { verdict, room: room.as_mut() },
                ),
            }
        };
        let watcher = lock(&self.watcher).clone();
        if let Some(watcher) = watcher {
            // As above; the operation stays done.
            drop(catch_unwind(AssertUnwindSafe(|| {
                watcher(&op, matches!(code, ffi::SQLITE_OK | ffi::SQLITE_IOERR_SHORT_READ));
            })));
            if lock(&self.state).off {
                // The power was cut before any caller got the answer.
                return Error::Io.code(action);
            }
        }
        code
    }
}

/// Returns the error code of a verdict that forbids the whole operation.
fn refusal(action: Action, verdict: Verdict) -> Option<i32> {
    match (verdict, action) {
        (Verdict::Proceed | Verdict::Pretend, _)
        | (Verdict::Torn(..), Action::Write)
        | (Verdict::Lose | Verdict::LoseSome(_), Action::Sync) => None,
        (Verdict::Fail(error) | Verdict::Torn(_, error), _) => Some(error.code(action)),
        (Verdict::Lose | Verdict::LoseSome(_), _) => Some(Error::Io.code(action)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
