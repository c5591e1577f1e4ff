//! Checks of the agents' sockets: each agent has one, and no other is left.
//!
//! Invariant: a socket is judged only while the broker answers, which alone knows the agents.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use hive_core::name::AgentName;

use super::list::List;
use super::places::Places;
use super::repair::Repair;
use crate::view::agent::Agent;
use crate::view::check::State;

const NAME: &str = "sockets";
const SOCKET: &str = "hive.sock";

/// Checks the sockets of these agents, which are all that are not retired.
pub(super) fn all(places: &Places, agents: &[Agent], list: &mut List) {
    let Some(dir) = places.runtime_dir.as_ref().map(|dir| dir.join("agents")) else { return };
    let before = list.checks.len();
    let active: BTreeSet<&str> =
        agents.iter().filter(|agent| !agent.retired).map(|agent| agent.name.as_str()).collect();
    for name in &active {
        let path = dir.join(name).join(SOCKET);
        // A directory that this user cannot look into says nothing.
        let missing =
            path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if missing {
            let sentence =
                format!("{name} has no socket {}: it cannot reach the broker", path.display());
            let next = "restart hived, which opens the socket of each agent".to_owned();
            list.about_agent(NAME, State::Problem, name, sentence, next);
        }
    }
    for name in others(&dir, &active) {
        let path = dir.join(&name).join(SOCKET);
        if is_stale(&path) {
            let shown = path.display();
            list.repairable(
                NAME,
                State::Warning,
                format!("{shown} is left of {name}, which is no agent of this hive, and no process listens on it"),
                format!("`rm {shown}` as its owner, or `hivectl doctor --fix`"),
                Repair::RemoveSocket { path: path.clone() },
                0,
            );
        }
    }
    if list.checks.len() == before {
        list.ok(NAME, "each agent has its socket, and no other is left");
    }
}

/// Returns the names of directories for sockets that are no agent's.
fn others(dir: &Path, active: &BTreeSet<&str>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| AgentName::parse(name).is_ok() && !active.contains(name.as_str()))
        .collect();
    names.sort();
    names
}

/// Returns whether this is a socket that no process listens on.
fn is_stale(path: &Path) -> bool {
    let is_socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    is_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}
