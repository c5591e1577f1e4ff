//! The directory of the backups that the broker makes by itself: named by their time, the newest
//! ones kept.
//!
//! Invariant: a file with such a name is a whole backup that was checked and is on disk. An older
//! one is removed only after a newer one has its name, so the last good one stays.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use hive_core::time::WallTime;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::store::file::backup::{CopyError, copy_to, long_reader};
use crate::store::file::{check, mark, private};

/// The name of a backup, by its time in UTC. It is also what a name is parsed by.
const NAME: &str = "hive-%Y%m%dT%H%M%SZ.db";
/// The name of a backup until it is checked.
const UNFINISHED: &str = "unfinished.tmp";

/// Why no backup was made. Earlier ones are as they were.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The directory is not usable.
    #[error("the directory of backups {} cannot be used ({source}); the user of hived must be able to write there", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the host.
        source: io::Error,
    },
    /// Backups are made, and pile up.
    #[error("the old backup {} cannot be removed ({source}); the new ones are made, and need more and more room", .path.display())]
    Old {
        /// The backup.
        path: PathBuf,
        /// The error of the host.
        source: io::Error,
    },
    /// The copy was not made.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The copy is not right, and was removed.
    #[error(
        "the copy was made and is not right: {problem}; `hivectl doctor --deep` tells whether the database is"
    )]
    NotRight {
        /// The first problem.
        problem: String,
    },
}

/// Returns the backups of a directory with their times, oldest first. A missing directory has none.
pub fn list(dir: &Path) -> Result<Vec<(WallTime, PathBuf)>, ArchiveError> {
    let failed = |source| ArchiveError::Directory { path: dir.to_path_buf(), source };
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if let Some(time) = entry.file_name().to_str().and_then(time) {
            found.push((time, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the time of a backup by its name.
fn time(name: &str) -> Option<WallTime> {
    let time = DateTime::strptime(NAME, name).ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(WallTime(time.timestamp().as_millisecond()))
}

fn name(time: WallTime) -> String {
    let time = Timestamp::from_millisecond(time.0).unwrap_or(Timestamp::MAX);
    time.strftime(NAME).to_string()
}

/// Copies a database into the directory, checks the copy, gives it the name of `now`, and then
/// removes all but the newest `keep`. Returns its path. It keeps `slot`, because copies are made
/// one at a time.
pub(in crate::store) fn add(
    database: &Path,
    dir: &Path,
    keep: u32,
    now: WallTime,
    stop: CancellationToken,
    slot: OwnedMutexGuard<()>,
) -> Result<PathBuf, ArchiveError> {
    let _slot = slot;
    let failed = |source| ArchiveError::Directory { path: dir.to_path_buf(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let conn = long_reader(database, stop.clone()).map_err(CopyError::from)?;
    let copy = copy_to(&conn, dir.join(UNFINISHED), |copy| mark::set(copy, now))?;
    hive_fault::point("broker.archive.copied");
    let checked = check::check(&copy.0, stop.clone());
    if stop.is_cancelled() {
        return Err(CopyError::Stopped.into());
    }
    if let Some(problem) = checked.problems.into_iter().next() {
        return Err(ArchiveError::NotRight { problem });
    }
    File::open(&copy.0).and_then(|file| file.sync_all()).map_err(failed)?;
    let path = dir.join(name(now));
    std::fs::rename(&copy.0, &path).map_err(failed)?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    hive_fault::point("broker.archive.named");
    prune(dir, keep, Some(&path))?;
    Ok(path)
}

/// Removes all backups but the newest `keep` and the `newest`, if it is named: another may have a
/// later time, of a clock that was set back since. Those that can be removed are, whatever happens
/// to the others.
pub fn prune(dir: &Path, keep: u32, newest: Option<&Path>) -> Result<(), ArchiveError> {
    let mut all = list(dir)?;
    let old = all.len().saturating_sub(keep as usize);
    let old = all.drain(..old).filter(|(_, old)| Some(old.as_path()) != newest);
    let mut failed = Ok(());
    for (_, path) in old {
        if let Err(source) = std::fs::remove_file(&path) {
            failed = failed.and(Err(ArchiveError::Old { path, source }));
        }
    }
    failed
}

/// Removes what a killed broker left.
pub fn remove_leftovers(dir: &Path) {
    private::remove(&dir.join(UNFINISHED));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_times_and_other_names_are_not_backups() {
        let noon = WallTime(1_795_780_800_000);
        assert_eq!(name(noon), "hive-20261127T120000Z.db");
        assert_eq!(time(&name(noon)), Some(noon));
        for other in ["hive.db", "hive-20261127T120000Z.db.gz", "hive-2026.db", UNFINISHED] {
            assert_eq!(time(other), None, "{other}");
        }
    }
}
