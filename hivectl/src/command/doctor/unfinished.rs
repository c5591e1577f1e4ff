//! Checks for copies of the database that a killed program did not finish.
//!
//! Invariant: a file is judged by a name that a program of Hive gives to unfinished copies alone;
//! one that a running program may write is no finding.

use std::path::{Path, PathBuf};

use super::list::List;
use super::places::Places;
use super::repair::{Repair, UNCHANGED_MIN};
use crate::new_file::is_unfinished;
use crate::view::check::State;

const NAME: &str = "unfinished";
/// Of the broker, a migration or a restore, in the state directory. Each has its files of SQLite.
const OF_STATE: [&str; 3] = ["backup.tmp", "migration.tmp", "restore.tmp"];
/// Of the broker, in the directory of its backups.
const OF_BACKUPS: &str = "unfinished.tmp";

/// Looks for unfinished copies. While a broker answers, those of the broker are in use.
pub(super) fn all(places: &Places, is_reached: bool, list: &mut List) {
    let Places { state_dir, backup_dir, .. } = places;
    if state_dir.read_dir().is_err() {
        return list.not_checked(
            NAME,
            format!("the directory {} cannot be listed from here", state_dir.display()),
        );
    }
    let before = list.checks.len();
    let broker = OF_STATE.map(|name| state_dir.join(name));
    let broker = broker.into_iter().chain([backup_dir.join(OF_BACKUPS)]);
    let broker = broker.filter(|_| !is_reached).flat_map(with_beside);
    let found = broker.filter(|path| is_file(path)).map(|path| (path, true));
    let hivectls = [state_dir, backup_dir].into_iter().flat_map(|dir| hivectls(dir));
    for (path, is_locked) in found.chain(hivectls.map(|path| (path, false))) {
        let shown = path.display();
        let bytes = path.symlink_metadata().map_or(0, |found| found.len());
        list.repairable(
            NAME,
            State::Warning,
            format!(
                "{shown} is a copy that a killed program did not finish, of {} MiB",
                bytes >> 20
            ),
            "`hivectl doctor --fix` removes it while no other program uses the state directory",
            Repair::RemoveUnfinished {
                path: path.clone(),
                state_dir: state_dir.clone(),
                is_locked,
            },
            0,
        );
    }
    if list.checks.len() == before {
        list.ok(NAME, "no copy of the database is unfinished");
    }
}

/// Returns a database and the files that SQLite keeps beside it.
fn with_beside(database: PathBuf) -> impl Iterator<Item = PathBuf> {
    ["", "-journal", "-shm", "-wal"].into_iter().map(move |suffix| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

/// Returns the unfinished backups of `hivectl` in a directory that no program has changed lately.
fn hivectls(dir: &Path) -> Vec<PathBuf> {
    let entries = dir.read_dir().into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_unfinished))
        .map(|entry| entry.path())
        .filter(|path| is_file(path) && is_unchanged(path))
        .collect();
    found.sort();
    found
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

fn is_unchanged(path: &Path) -> bool {
    let changed = path.symlink_metadata().and_then(|found| found.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|since| since >= UNCHANGED_MIN))
}
