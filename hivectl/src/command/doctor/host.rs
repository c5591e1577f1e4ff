//! Checks without a broker: the database file and its disk, the configuration, claude, bubblewrap.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hive_core::config::Config;
use hive_core::isolation::Level;
use hive_proto::v1::GetBrokerStatusResponse;
use tokio::process::Command;

use super::list::List;
use crate::connect::HOST_SOCKET;
use crate::supervise::{resolve, sandboxes};
use crate::view::counted;

/// Least free space of a disk, in bytes.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Least free share of a disk, in percent.
const FREE_PERCENT_MIN: u64 = 5;
const CLAUDE_MAX: Duration = Duration::from_secs(30);
/// The first bytes of an SQLite file, and the offset of its user version.
pub(super) const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
const VERSION_AT: usize = 60;

/// The state directory of the services of a host.
const HOST_STATE_DIR: &str = "/var/lib/hive";

/// Returns where a hive of this socket or configuration has its database.
pub(super) fn guessed_database(socket: &Path, config: Option<&Config>) -> PathBuf {
    let state_dir = config.and_then(|config| config.broker.state_dir.clone());
    let is_hosts = socket == Path::new(HOST_SOCKET);
    let default = if is_hosts { HOST_STATE_DIR } else { ".hive/state" };
    state_dir.unwrap_or_else(|| default.into()).join("hive.db")
}

/// The database as a file, and the room on its disk.
pub(super) fn database(path: &Path, list: &mut List) {
    let dir = path.parent().unwrap_or(Path::new("."));
    if let Err(error) = dir.metadata() {
        let sentence = format!("the directory {} cannot be seen from here: {error}", dir.display());
        list.not_checked("schema", &*sentence);
        return list.not_checked("disk", sentence);
    }
    schema(path, list);
    match rustix::fs::statvfs(dir) {
        Ok(disk) => {
            let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
            room(dir, bytes(disk.f_bavail), bytes(disk.f_blocks), list);
        }
        Err(errno) => list.not_checked(
            "disk",
            format!("the disk of {} does not report its free space: {errno}", dir.display()),
        ),
    }
}

fn schema(path: &Path, list: &mut List) {
    const NAME: &str = "schema";
    let mut header = Vec::new();
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut header));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return list.not_checked(NAME, format!("there is no database {} yet", path.display()));
        }
        Err(error) => {
            return list
                .not_checked(NAME, format!("the database cannot be read from here: {error}"));
        }
        Ok(_) => {}
    }
    let version = header
        .get(VERSION_AT..VERSION_AT + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u32::from_be_bytes);
    match version.filter(|_| header.starts_with(SQLITE_MAGIC)) {
        Some(version) => {
            list.ok(NAME, format!("the database {} has schema version {version}", path.display()));
        }
        None if header.is_empty() => {
            list.not_checked(NAME, format!("the database {} is empty", path.display()));
        }
        None => {
            let sentence = format!("{} is no database", path.display());
            list.problem(
                NAME,
                sentence,
                "move it away, and put a backup there as hive.db; hived makes a new one where there is none",
            );
        }
    }
}

fn room(dir: &Path, free: u64, total: u64, list: &mut List) {
    const NAME: &str = "disk";
    let percent = if total == 0 {
        100
    } else {
        u64::try_from(u128::from(free) * 100 / u128::from(total)).unwrap_or(100)
    };
    let sentence =
        format!("{} MiB are free on the disk of {}, {percent} % of it", free >> 20, dir.display());
    if free < FREE_BYTES_MIN || percent < FREE_PERCENT_MIN {
        list.warning(
            NAME,
            sentence,
            "make room there: a broker with a full disk accepts nothing, and a backup needs room for a copy",
        );
    } else {
        list.ok(NAME, sentence);
    }
}

/// Reads the configuration, with paths as the broker resolves them; `None` if it is not valid.
pub(super) fn config(file: &Path, list: &mut List) -> Option<Config> {
    const NAME: &str = "config";
    let shown = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            list.problem(
                NAME,
                format!("{shown} cannot be read: {error}"),
                "name the configuration with --config FILE",
            );
            return None;
        }
    };
    match hive_core::config::parse(&text) {
        Ok(mut config) => {
            let agents = counted(config.agents.len(), "agent", "agents");
            list.ok(NAME, format!("{shown} is valid, with {agents}"));
            let dir =
                file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            config.resolve_paths(dir);
            Some(config)
        }
        Err(error) => {
            for finding in &error.findings {
                list.problem(
                    NAME,
                    format!("{shown}: {finding}"),
                    format!("correct it; `hivectl config check {shown}` checks it again"),
                );
            }
            None
        }
    }
}

pub(super) async fn claude(command: &str, list: &mut List) {
    const NAME: &str = "claude";
    let Some(program) = resolve(command) else {
        let next = "install Claude Code, or name it in hive.toml: `command` in [claude]";
        return list.problem(NAME, format!("claude is not there: `{command}` was not found"), next);
    };
    let shown = program.display();
    let asked =
        Command::new(&program).arg("--version").stdin(Stdio::null()).kill_on_drop(true).output();
    let next = "run it by hand; where it is broken, install Claude Code again";
    match tokio::time::timeout(CLAUDE_MAX, asked).await {
        Err(_) => list.problem(
            NAME,
            format!("`{shown} --version` did not end within {} s", CLAUDE_MAX.as_secs()),
            next,
        ),
        Ok(Err(error)) => list.problem(NAME, format!("{shown} cannot be started: {error}"), next),
        Ok(Ok(output)) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout);
            list.ok(NAME, format!("{shown}, version {}", version.trim()));
        }
        Ok(Ok(output)) => {
            let words = String::from_utf8_lossy(&output.stderr);
            list.problem(
                NAME,
                format!("`{shown} --version` failed ({}): {}", output.status, words.trim()),
                next,
            );
        }
    }
}

/// Whether agents can be kept apart by `hivectl up`.
pub(super) fn bubblewrap(
    status: Option<&GetBrokerStatusResponse>,
    config: Option<&Config>,
    list: &mut List,
) {
    const NAME: &str = "bubblewrap";
    if config.is_some_and(accepts_none) || status.is_some_and(is_accepted) {
        return list
            .ok(NAME, "not needed: the configuration accepts agents that are not kept apart");
    }
    match sandboxes() {
        Ok(bwrap) => list.ok(NAME, format!("{} makes sandboxes", bwrap.display())),
        Err(_) if status.is_some_and(is_apart) => {
            list.ok(NAME, "not needed: the agents are kept apart without it");
        }
        Err(why) => {
            let sentence = format!("`hivectl up` makes no sandbox: {why}");
            list.warning(NAME, sentence, "docs/isolation.md has a remedy for each cause");
        }
    }
}

/// Returns whether a configuration states for each agent that it is not kept apart.
fn accepts_none(config: &Config) -> bool {
    let accepts = |agent| config.isolation_of(agent) == Some(Level::None);
    accepts(None) && config.agents.values().all(|agent| accepts(Some(agent)))
}

/// Returns whether each agent that is not kept apart is so by its configuration.
fn is_accepted(status: &GetBrokerStatusResponse) -> bool {
    let GetBrokerStatusResponse { not_isolated_agents, isolation_accepted_agents, .. } = status;
    !not_isolated_agents.is_empty()
        && not_isolated_agents.iter().all(|agent| isolation_accepted_agents.contains(agent))
}

/// Returns whether agents are there and each is kept apart.
fn is_apart(status: &GetBrokerStatusResponse) -> bool {
    status.attached_count > 0 && status.not_isolated_agents.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::check::State;

    fn judged(check: impl FnOnce(&mut List)) -> (State, String) {
        let mut list = List::default();
        check(&mut list);
        let check = list.checks.pop().expect("a check");
        (check.state, check.sentence)
    }

    #[test]
    fn room_is_short_under_a_gibibyte_or_a_twentieth() {
        let gib = 1_u64 << 30;
        let state = |free, total| judged(|list| room(Path::new("/d"), free, total, list)).0;
        assert_eq!(state(gib, 20 * gib), State::Ok);
        assert_eq!(state(gib - 1, 2 * gib), State::Warning);
        assert_eq!(state(2 * gib, 41 * gib), State::Warning);
        assert_eq!(
            judged(|list| room(Path::new("/d"), gib, 4 * gib, list)).1,
            "1024 MiB are free on the disk of /d, 25 % of it"
        );
    }

    #[test]
    fn a_database_is_looked_for_where_the_socket_or_the_configuration_says() {
        let guessed = |socket: &str, config| guessed_database(Path::new(socket), config);
        assert_eq!(guessed("h/run/hived.sock", None), Path::new(".hive/state/hive.db"));
        assert_eq!(guessed("/run/hive/hived.sock", None), Path::new("/var/lib/hive/hive.db"));
        let mut config = Config::default();
        config.broker.state_dir = Some("/s".into());
        assert_eq!(guessed("/run/hive/hived.sock", Some(&config)), Path::new("/s/hive.db"));
    }

    #[test]
    fn a_database_is_known_by_its_header() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("hive.db");
        let state = || judged(|list| schema(&path, list)).0;
        assert_eq!(state(), State::NotChecked);
        std::fs::write(&path, "").expect("a file");
        assert_eq!(state(), State::NotChecked);
        std::fs::write(&path, "notes".repeat(100)).expect("a file");
        assert_eq!(state(), State::Problem);
        let mut header = [SQLITE_MAGIC, &[0; 84]].concat();
        header[VERSION_AT + 3] = 7;
        std::fs::write(&path, header).expect("a file");
        let (state, sentence) = judged(|list| schema(&path, list));
        assert!(state == State::Ok && sentence.ends_with("has schema version 7"), "{sentence}");
    }
}
