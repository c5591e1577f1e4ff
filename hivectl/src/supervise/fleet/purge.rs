//! Deleting the directories of a purged agent.
//!
//! Invariant: only files that this hive made for the agent are deleted, below the hive's own
//! directory. Links are deleted and not followed. If the configuration names a directory below the
//! place, nothing is deleted. The broker is notified after the deletion, so an interrupted deletion
//! is repeated.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hive_core::name::AgentName;

use crate::output::text::visible_line;
use crate::supervise::files::{delete, ignore_absent};
use crate::supervise::launch::purged;
use crate::supervise::setup::plan::Plan;
use crate::supervise::setup::settings;

/// The files of an agent on this host.
#[derive(Clone, Debug)]
pub(crate) struct AgentFiles {
    name: AgentName,
    dir: PathBuf,
    socket_dir: PathBuf,
    log: PathBuf,
    /// Directories that the configuration names for it, which are left alone.
    named: Vec<PathBuf>,
    /// Directories below `dir` that the configuration names for any agent.
    in_the_way: Vec<PathBuf>,
    operator_socket: PathBuf,
}

impl AgentFiles {
    pub(crate) fn new(plan: &Plan, name: &AgentName) -> Self {
        let dir = plan.agent_dir(name);
        let named = plan.named_dirs();
        let in_the_way = named
            .iter()
            .map(|(_, named)| *named)
            .filter(|named| named.starts_with(&dir))
            .map(Path::to_path_buf);
        Self {
            name: name.clone(),
            in_the_way: in_the_way.collect(),
            dir,
            socket_dir: plan.socket_dir(name),
            log: plan.log_file(name.as_str()),
            named: named
                .iter()
                .filter(|(agent, _)| *agent == name)
                .map(|(_, named)| named.to_path_buf())
                .collect(),
            operator_socket: plan.operator_socket(),
        }
    }
}

/// Deletes the directories and notifies the broker; returns the sentence to print, and whether the
/// broker knows.
pub(crate) async fn run(files: AgentFiles, purge_id: u64) -> (String, bool) {
    match try_run(files, purge_id).await {
        Ok(sentence) => (sentence, true),
        Err(sentence) => (sentence, false),
    }
}

async fn try_run(files: AgentFiles, purge_id: u64) -> Result<String, String> {
    let name = files.name.clone();
    if let Some(named) = files.in_the_way.first() {
        return Err(format!(
            "{name} is purged, but its directories are not deleted: hive.toml names {} there; remove that line from hive.toml and send \
             SIGHUP to this program",
            named.display()
        ));
    }
    let to_delete = files.clone();
    let deleted = tokio::task::spawn_blocking(move || delete(&to_delete)).await;
    let failed = |why: &dyn std::fmt::Display| {
        format!(
            "{name} is purged, but its directories are not deleted: {}; delete {} and send SIGHUP to this program",
            visible_line(&why.to_string()),
            files.dir.display()
        )
    };
    match deleted {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(failed(&error)),
        Err(error) => return Err(failed(&error)),
    }
    match purged::finish(&files.operator_socket, purge_id).await {
        Ok(()) => {
            let kept: Vec<String> =
                files.named.iter().map(|dir| dir.display().to_string()).collect();
            let kept = if kept.is_empty() {
                String::new()
            } else {
                format!("; {} is left alone", kept.join(" and "))
            };
            Ok(format!("{name} is purged, and its directories are deleted{kept}"))
        }
        Err(error) => Err(format!(
            "{name} is purged and its directories are deleted, but the broker does not take that in: {}; send SIGHUP to this program",
            visible_line(&error)
        )),
    }
}

fn delete(files: &AgentFiles) -> io::Result<()> {
    delete::tree(&files.dir)?;
    settings::remove(&files.socket_dir)?;
    ignore_absent(fs::remove_file(&files.log))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::setup::plan::planned_in;

    fn files(dir: &Path, agents: &str, name: &str) -> AgentFiles {
        AgentFiles::new(&planned_in(dir, agents), &AgentName::parse(name).expect("a name"))
    }

    #[tokio::test]
    async fn a_directory_that_the_configuration_names_is_not_deleted() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        let named = root.join("h/agents/ada/state");
        let files = files(&root, "[agents.ada]\nstate_dir = \"h/agents/ada/state\"\n", "ada");
        fs::write(named.join("work"), "kept").expect("a file");
        let (said, is_finished) = run(files, 1).await;
        assert!(!is_finished);
        assert!(
            said.contains(&format!("are not deleted: hive.toml names {} there", named.display())),
            "{said}"
        );
        assert!(named.join("work").exists());
    }

    #[test]
    fn only_what_is_below_the_place_is_in_the_way() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        let text =
            "[agents.ada]\nhome_dir = \"ada\"\n[agents.bob]\nhome_dir = \"h/agents/bob/home\"\n";
        let ada = files(&root, text, "ada");
        assert_eq!((ada.named, ada.in_the_way), (vec![root.join("ada")], Vec::new()));
        let bob = files(&root, text, "bob");
        assert_eq!(
            (&bob.named, &bob.in_the_way),
            (&vec![root.join("h/agents/bob/home")], &bob.named)
        );
    }
}
