//! Checks of the hive's files: who may read and change them, and whose they are.
//!
//! Invariant: only files are judged whose names a program of Hive chose; a link is not judged, and
//! its target neither.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::list::List;
use super::places::Places;
use super::repair::Repair;
use crate::view::check::State;

const NAME: &str = "files";
/// The files that a broker keeps in its state directory, without those that SQLite keeps beside
/// them and those that have a number.
const STATE_FILES: [&str; 4] = ["hive.db", "hived.lock", "search.sqlite3", "turn-events.db"];

/// The mode that a file should have.
#[derive(Clone, Copy)]
struct Rule {
    forbidden: u32,
    required: u32,
}

/// For one user alone.
const PRIVATE: Rule = Rule { forbidden: 0o077, required: 0 };
/// Others may pass through: agents find their reminders below it.
const PASSABLE: Rule = Rule { forbidden: 0o066, required: 0 };
/// Others must not replace what is in it.
const SHOWN: Rule = Rule { forbidden: 0o022, required: 0 };
/// The agent, another user, has to read it.
const READ_BY_AGENT: Rule = Rule { forbidden: 0o022, required: 0o055 };

/// Returns whether a name in the state directory is that of a file of the broker: a database, an
/// earlier one, a file beside one, or the lock.
pub(crate) fn is_of_state(name: &str) -> bool {
    let suffix = ["-journal", "-shm", "-wal"].into_iter().find(|suffix| name.ends_with(suffix));
    let name = suffix.and_then(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    STATE_FILES.contains(&name)
        || numbered(name, "hive.replaced-")
        || numbered(name, "hive.version-")
}

fn numbered(name: &str, before: &str) -> bool {
    let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(".db"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns whether a name is that of a backup that the broker made by its schedule.
pub(crate) fn is_backup(name: &str) -> bool {
    let time = name.strip_prefix("hive-").and_then(|rest| rest.strip_suffix("Z.db"));
    time.is_some_and(|time| {
        time.len() == 15 && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'T')
    })
}

/// Checks the modes and the owners.
pub(super) fn all(places: &Places, list: &mut List) {
    let before = list.checks.len();
    let Places { state_dir, runtime_dir, backup_dir, base } = places;
    let of_state = match state_dir.symlink_metadata() {
        Ok(found) => found,
        Err(error) => {
            return list.not_checked(
                NAME,
                format!("the directory {} cannot be seen from here: {error}", state_dir.display()),
            );
        }
    };
    judge(state_dir, &of_state, PASSABLE, "the database is in it", list);
    for path in named(state_dir, is_of_state, &STATE_FILES) {
        each(&path, PRIVATE, "all mail is in it", list);
        check_owner(&path, &of_state, list);
    }
    for path in named(backup_dir, is_backup, &[]) {
        each(&path, PRIVATE, "all mail is in it", list);
    }
    if let Some(base) = base {
        for dir in ["agents", "log"].map(|name| base.join(name)) {
            each(&dir, PRIVATE, "it is for the hive alone", list);
        }
    }
    for agent in named(&state_dir.join("reminders"), |_| true, &[]) {
        each(&agent.join("reminders"), READ_BY_AGENT, "long reminders are in it", list);
    }
    if let Some(runtime_dir) = runtime_dir {
        let agents = runtime_dir.join("agents");
        for dir in
            [runtime_dir.clone(), agents.clone()].into_iter().chain(named(&agents, |_| true, &[]))
        {
            each(&dir, SHOWN, "sockets are in it", list);
        }
    }
    if list.checks.len() == before {
        list.ok(NAME, "files and directories have the modes and owners of a hive");
    }
}

/// Returns the files of a directory with such names, in the order of the names. In one that cannot
/// be listed these are tried.
fn named(dir: &Path, is_named: impl Fn(&str) -> bool, tried: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return tried.iter().map(|name| dir.join(name)).collect();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(&is_named))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

fn each(path: &Path, rule: Rule, content: &str, list: &mut List) {
    // Otherwise it is not there, or this user cannot see it.
    if let Ok(found) = path.symlink_metadata() {
        judge(path, &found, rule, content, list);
    }
}

fn judge(path: &Path, found: &Metadata, rule: Rule, content: &str, list: &mut List) {
    let mode = found.mode() & 0o7777;
    // In a directory with this bit others cannot replace files.
    let is_sticky = found.is_dir() && mode & 0o1000 != 0 && rule.forbidden == SHOWN.forbidden;
    if found.is_symlink() || is_sticky {
        return;
    }
    let (Rule { forbidden, required }, shown) = (rule, path.display());
    let (state, problem) = match (mode & forbidden, required & !mode) {
        (0, 0) => return,
        (0, _) => (State::Warning, "its agent cannot read it"),
        (open, _) if open & 0o022 != 0 => (State::Problem, "other users can change it"),
        (open, _) if open & 0o044 != 0 => (State::Problem, "other users can read it"),
        (_, _) => (State::Problem, "other users can enter it"),
    };
    let repair = Repair::SetMode { path: path.to_path_buf(), forbidden, required };
    let wanted = (mode & !forbidden) | required;
    list.repairable(
        NAME,
        state,
        format!("{shown} has mode {mode:04o}: {problem}, and {content}"),
        format!("`chmod {wanted:04o} {shown}` as its owner, or `hivectl doctor --fix`"),
        repair,
        mode,
    );
}

/// A copy that root made by hand belongs to root, and a broker that is another user cannot open it.
fn check_owner(path: &Path, of_state: &Metadata, list: &mut List) {
    let Ok(found) = path.symlink_metadata() else { return };
    if found.uid() == of_state.uid() || found.is_symlink() {
        return;
    }
    let (shown, owner) = (path.display(), of_state.uid());
    let group = of_state.gid();
    list.problem(
        NAME,
        format!(
            "{shown} belongs to uid {}, and its directory to uid {owner}: hived cannot use it",
            found.uid()
        ),
        format!("as root: `chown {owner}:{group} {shown}`"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_a_hive_are_judged() {
        for name in ["hive.db", "hive.db-wal", "hive.replaced-12.db-wal", "hive.version-7.db"] {
            assert!(is_of_state(name), "{name}");
        }
        for name in ["notes.txt", "hive.replaced-.db", "hive.replaced-x.db", "hive.db.gz", "-wal"] {
            assert!(!is_of_state(name), "{name}");
        }
        assert!(is_backup("hive-20261127T120000Z.db"));
        for name in ["hive-2026.db", "hive-20261127T120000Z.db.gz", "hive-2026112712000xxZ.db"] {
            assert!(!is_backup(name), "{name}");
        }
    }
}
