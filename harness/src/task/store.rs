//! The directory with the records and the output of tasks.
//!
//! Invariants: one harness uses it at a time; an id is never reused.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use crate::boot::file;
use crate::process::lock::{open_dir, try_lock};
use crate::task::record::Record;

const ROUND: Duration = Duration::from_millis(20);

/// The directory.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    /// The lock, held while the store is used.
    _lock: OwnedFd,
}

/// The content of the directory.
#[derive(Debug, Default)]
pub struct Records {
    /// The records by their ids.
    pub by_id: BTreeMap<u64, Record>,
    /// The last id that was assigned.
    pub last_id: u64,
}

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot use {}: {source}; check HIVE_RUN_DIR and the room on its disk", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("another harness runs shell tasks in {}; give each agent a run directory of its own", .0.display())]
    InUse(PathBuf),
}

impl Store {
    /// Takes the directory, and reads its records. Waits for another harness that uses it, because
    /// that one may be about to end.
    pub async fn open(dir: PathBuf, patience: Duration) -> Result<(Self, Records), OpenError> {
        let failed = |source: io::Error| OpenError::Io { path: dir.clone(), source };
        file::private_dir(&dir).map_err(failed)?;
        let lock = open_dir(&dir).map_err(failed)?;
        let begun = Instant::now();
        while !try_lock(&lock).map_err(failed)? {
            if begun.elapsed() >= patience {
                return Err(OpenError::InUse(dir));
            }
            tokio::time::sleep(ROUND).await;
        }
        let records = read_all(&dir).map_err(failed)?;
        Ok((Self { dir, _lock: lock }, records))
    }

    /// Writes a record atomically.
    pub fn write(&self, record: &Record) -> io::Result<()> {
        file::write(&record_path(&self.dir, record.id), &record.text())
    }

    /// Creates the file for a task's output.
    pub fn create_output(&self, id: u64) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.output_path(id))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of a task's output.
    pub fn output_path(&self, id: u64) -> PathBuf {
        output_path(&self.dir, id)
    }

    /// Returns the size of a task's output on disk, in bytes.
    pub fn output_bytes(&self, id: u64) -> u64 {
        fs::metadata(self.output_path(id)).map_or(0, |metadata| metadata.len())
    }

    /// Removes a task's files.
    pub fn remove(&self, id: u64) {
        remove(&self.dir, id);
    }
}

fn record_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id}.json"))
}

fn output_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id}.out"))
}

/// Removes the output first: an output without a record would never be found.
fn remove(dir: &Path, id: u64) {
    for path in [output_path(dir, id), record_path(dir, id)] {
        if let Err(error) = file::remove(&path) {
            tracing::warn!(path = %path.display(), %error, "a file of an old task cannot be removed");
        }
    }
}

fn read_all(dir: &Path) -> io::Result<Records> {
    let mut records = Records::default();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let is_record = path.extension().is_some_and(|extension| extension == "json");
        let Some(id) = path
            .file_stem()
            .filter(|_| is_record)
            .and_then(|stem| stem.to_str()?.parse::<u64>().ok())
        else {
            continue;
        };
        records.last_id = records.last_id.max(id);
        let record = fs::read_to_string(&path).ok().and_then(|text| Record::parse(&text));
        if let Some(record) = record.filter(|record| record.id == id) {
            records.by_id.insert(id, record);
        } else {
            tracing::warn!(path = %path.display(), "this is no record of a task; it is ignored");
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::record::How;
    use crate::task::record::tests::{ended, running};

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn written_records_are_read_and_other_files_are_ignored() {
        let dir = tempfile::tempdir().expect("a directory");
        let tasks = dir.path().join("tasks");
        let (store, none) = Store::open(tasks.clone(), Duration::ZERO).await.expect("opened");
        assert!(none.by_id.is_empty() && none.last_id == 0);
        let records = [ended(1, How::Exited(0), "x"), running(12)];
        for record in &records {
            store.write(record).expect("written");
        }
        drop(store.create_output(12).expect("made"));
        fs::write(tasks.join("17.json"), "{").expect("written");
        drop(store);
        // A process that another test forks holds the lock until its `exec`.
        let (store, read) = Store::open(tasks, PATIENCE).await.expect("opened again");
        assert_eq!(read.by_id.into_values().collect::<Vec<_>>(), records);
        assert_eq!(read.last_id, 17);
        store.remove(12);
        assert!(!store.output_path(12).exists());
    }

    #[tokio::test]
    async fn two_harnesses_do_not_use_one_directory_at_the_same_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = Store::open(dir.path().to_owned(), Duration::ZERO).await.expect("opened");
        let refused =
            Store::open(dir.path().to_owned(), Duration::ZERO).await.expect_err("refused");
        assert!(matches!(refused, OpenError::InUse(_)), "{refused}");
        let waiting = tokio::spawn(Store::open(dir.path().to_owned(), PATIENCE));
        drop(first);
        waiting.await.expect("no panic").expect("opened");
    }
}
