//! What the launcher keeps of each agent on disk: a small file, written before an order is given.
//!
//! ```text
//!   record ──► start ──► the unit is up: the invocation is recorded
//!   record of the end ──► stop ──► the unit is inactive ──► record ──► start
//! ```
//!
//! Invariant: a process runs for at least the count of its record. The count is written while the
//! unit is inactive, right before the start, so a launcher that is killed in between starts the
//! unit for the count that is wanted then, and one that is killed afterwards finds the count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hive_core::name::AgentName;
use serde::{Deserialize, Serialize};

use crate::output::note;
use crate::supervise::files::dir_lock::DirLock;
use crate::supervise::files::ignore_absent;
use crate::supervise::units::error::UnitsError;

/// The end of the names of records.
const SUFFIX: &str = ".json";

/// What is kept of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The restarts that were requested when its unit was started.
    pub(crate) restart_count: u64,
    /// The start of the unit that was seen last; `None` after an order to start it.
    pub(crate) invocation: Option<String>,
    /// Whether the end of that start was reported, or ordered.
    pub(crate) has_ended: bool,
}

/// The records of all agents.
#[derive(Debug)]
pub(crate) struct Records {
    dir: PathBuf,
    /// No other launcher changes them.
    _lock: DirLock,
    all: BTreeMap<AgentName, Record>,
    /// Those that are not on disk as they are in memory.
    unwritten: BTreeSet<AgentName>,
}

impl Records {
    /// Reads the records of an earlier launcher. Fails while one runs: what it would write from now
    /// on would not be known here.
    pub(crate) fn open(dir: &Path) -> Result<Self, UnitsError> {
        let unusable = |source| UnitsError::Records { path: dir.to_path_buf(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unusable)?;
        let lock = DirLock::take(dir).map_err(unusable)?;
        let lock = lock.ok_or_else(|| UnitsError::Running(dir.to_path_buf()))?;
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(dir).map_err(unusable)? {
            let path = entry.map_err(unusable)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let Some(name) = name.strip_suffix(SUFFIX) else { continue };
            let Ok(name) = AgentName::parse(name) else { continue };
            match read(&path) {
                Ok(record) => drop(all.insert(name, record)),
                // Its unit counts as one that was started by hand.
                Err(error) => {
                    note(&format!("{} is ignored: {error}", path.display()));
                }
            }
        }
        Ok(Self { dir: dir.to_path_buf(), _lock: lock, all, unwritten: BTreeSet::new() })
    }

    pub(crate) fn get(&self, name: &AgentName) -> Option<&Record> {
        self.all.get(name)
    }

    /// Returns the agents that have a record.
    pub(crate) fn names(&self) -> impl Iterator<Item = &AgentName> {
        self.all.keys()
    }

    /// Puts a record on disk. If that fails, it is known anyway, so that no news comes twice.
    pub(crate) fn put(&mut self, name: &AgentName, record: Record) -> io::Result<()> {
        if self.all.get(name) == Some(&record) && !self.unwritten.contains(name) {
            return Ok(());
        }
        let text = serde_json::to_vec(&record)?;
        self.all.insert(name.clone(), record);
        self.unwritten.insert(name.clone());
        self.write(name, &text)?;
        self.unwritten.remove(name);
        Ok(())
    }

    fn write(&self, name: &AgentName, text: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        let unfinished = path.with_extension("new");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        fs::File::open(&self.dir)?.sync_all()
    }

    /// Removes the record of an agent that is gone.
    pub(crate) fn remove(&mut self, name: &AgentName) -> io::Result<()> {
        ignore_absent(fs::remove_file(self.path(name)))?;
        self.all.remove(name);
        self.unwritten.remove(name);
        Ok(())
    }

    fn path(&self, name: &AgentName) -> PathBuf {
        self.dir.join(format!("{name}{SUFFIX}"))
    }
}

fn read(path: &Path) -> io::Result<Record> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_outlives_the_launcher() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path().join("records");
        let ada = AgentName::parse("ada").expect("a name");
        let record =
            Record { restart_count: 3, invocation: Some("b8de".to_owned()), has_ended: true };
        let mut records = Records::open(&dir).expect("a directory");
        records.put(&ada, Record::default()).expect("written");
        records.put(&ada, record.clone()).expect("written");
        fs::write(dir.join("bob.json"), "{\"restart_count\":").expect("a file");
        fs::write(dir.join("No Name.json"), "{}").expect("a file");
        fs::write(dir.join("cy.new"), "{}").expect("a file");
        let refused = Records::open(&dir).expect_err("the first one runs");
        assert!(matches!(refused, UnitsError::Running(_)), "{refused}");
        drop(records);
        let mut again = Records::open(&dir).expect("the same directory");
        assert_eq!(again.names().collect::<Vec<_>>(), [&ada]);
        assert_eq!(again.get(&ada), Some(&record));
        again.remove(&ada).expect("removed");
        again.remove(&ada).expect("it is not there");
        drop(again);
        assert_eq!(Records::open(&dir).expect("the same directory").names().count(), 0);
    }

    #[test]
    fn a_record_that_could_not_be_written_is_written_later() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path().join("records");
        let ada = AgentName::parse("ada").expect("a name");
        let record = Record { restart_count: 3, ..Record::default() };
        let mut records = Records::open(&dir).expect("a directory");
        fs::remove_dir(&dir).expect("it is empty");
        records.put(&ada, record.clone()).expect_err("there is no directory");
        assert_eq!(records.get(&ada), Some(&record));
        fs::create_dir(&dir).expect("a directory");
        records.put(&ada, record.clone()).expect("written");
        let again = Records::open(&dir).expect("the same directory");
        assert_eq!(again.get(&ada), Some(&record));
    }
}
