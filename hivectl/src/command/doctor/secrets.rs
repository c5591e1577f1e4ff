//! Checks of the files that the configuration names for secrets: they are there, and not for all.
//!
//! Invariant: no secret is read.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use hive_core::config::{Config, Notify};
use hive_core::secret::{Place, Secret};

use super::list::List;

const NAME: &str = "secrets";

pub(super) fn all(config: &Config, list: &mut List) {
    let files = files(config);
    let before = list.checks.len();
    for path in &files {
        check(path, list);
    }
    if list.checks.len() == before {
        let sentence = match files.len() {
            0 => "the configuration names no file with a secret".to_owned(),
            count => format!("{count} files are there, and not every user can read them"),
        };
        list.ok(NAME, sentence);
    }
}

fn files(config: &Config) -> BTreeSet<&Path> {
    let webhook = match &config.operator.notify {
        Some(Notify::Webhook(url)) => Some(url),
        Some(Notify::Command(_)) | None => None,
    };
    let of_agents = config.agents.values().flat_map(|agent| {
        let of_servers = agent.extra_mcp_servers.values().flat_map(|server| server.env.values());
        agent.env.values().chain(of_servers)
    });
    let all = config.claude.env.values().chain(webhook).chain(of_agents);
    all.filter_map(|secret| match secret {
        Secret::Kept(Place::File(path)) => Some(path.as_path()),
        Secret::Kept(Place::Credential(_)) | Secret::Text(_) => None,
    })
    .collect()
}

fn check(path: &Path, list: &mut List) {
    let shown = path.display();
    let found = match path.metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return list.problem(
                NAME,
                format!("the secret {shown} is missing: what needs it does not start"),
                format!("write it, readable for its user alone: `install -m 0600 FILE {shown}`"),
            );
        }
        Err(error) => {
            return list.not_checked(NAME, format!("{shown} cannot be seen from here: {error}"));
        }
    };
    let mode = found.mode() & 0o7777;
    if !found.is_file() || found.len() == 0 {
        list.problem(
            NAME,
            format!("the secret {shown} is empty or no file: what needs it does not start"),
            format!("write it: `ls -l {shown}` shows what is there"),
        );
    } else if mode & 0o004 != 0 {
        // An agent of another user may read it as one of all, so no program changes the mode.
        list.warning(
            NAME,
            format!("{shown} has mode {mode:04o}: every user of this host can read the secret"),
            format!("give it to the user that needs it, then `chmod 0600 {shown}`"),
        );
    }
}
