//! Deleting the directories of a purged agent.
//!
//! Invariant: only what this hive made for the agent is deleted, below the hive's own directory. Links are deleted and not followed, and a
//! directory that the configuration names is left alone. The broker is notified when everything is gone, so a deletion that was interrupted is
//! done again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hive_core::name::AgentName;
use hive_proto::connect::connect;
use hive_proto::v1::FinishPurgeRequest;
use hive_proto::v1::admin_service_client::AdminServiceClient;

use tokio::time::{Duration, Instant};

use super::plan::Plan;
use super::{delete, settings};
use crate::output::text::visible_line;

/// How long a broker that is being started again is waited for.
const BROKER_PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two tries to reach it.
const BROKER_PAUSE: Duration = Duration::from_millis(200);

/// What there is of an agent on this host.
#[derive(Clone, Debug)]
pub(super) struct Places {
    name: AgentName,
    /// Its directory below the hive's own.
    dir: PathBuf,
    socket_dir: PathBuf,
    log: PathBuf,
    /// Directories that the configuration names, which are left alone.
    named: Vec<PathBuf>,
    operator_socket: PathBuf,
}

impl Places {
    pub(super) fn of(plan: &Plan, name: &AgentName) -> Self {
        let config = plan.config.agents.get(name);
        let named = config.into_iter().flat_map(|config| config.state_dir.iter().chain(&config.home_dir)).cloned().collect();
        Self {
            name: name.clone(),
            dir: plan.agents_dir.join(name.as_str()),
            socket_dir: plan.socket_dir(name),
            log: plan.log_file(name.as_str()),
            named,
            operator_socket: plan.operator_socket(),
        }
    }
}

/// Deletes the directories and tells the broker; returns what to say of it.
pub(super) async fn run(places: Places, purge_id: u64) -> String {
    let name = places.name.clone();
    let also = places.clone();
    let deleted = tokio::task::spawn_blocking(move || delete(&also)).await;
    let failed = |why: &dyn std::fmt::Display| {
        format!(
            "{name} is purged, but its directories are not deleted: {}; delete {} and send SIGHUP to this program",
            visible_line(&why.to_string()),
            places.dir.display()
        )
    };
    match deleted {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return failed(&error),
        Err(error) => return failed(&error),
    }
    match finish_soon(&places.operator_socket, purge_id).await {
        Ok(()) => {
            let kept: Vec<String> = places.named.iter().map(|dir| dir.display().to_string()).collect();
            let kept = if kept.is_empty() { String::new() } else { format!("; {} is left alone", kept.join(" and ")) };
            format!("{name} is purged, and its directories are deleted{kept}")
        }
        Err(error) => {
            format!(
                "{name} is purged and its directories are deleted, but the broker does not take that in: {}; send SIGHUP to this program",
                visible_line(&error)
            )
        }
    }
}

/// As [`finish`], again and again while the broker may be starting again.
async fn finish_soon(socket: &Path, purge_id: u64) -> Result<(), String> {
    let until = Instant::now() + BROKER_PATIENCE;
    loop {
        match finish(socket, purge_id).await {
            Err(_) if Instant::now() < until => tokio::time::sleep(BROKER_PAUSE).await,
            done => return done,
        }
    }
}

async fn finish(socket: &Path, purge_id: u64) -> Result<(), String> {
    let channel = connect(socket).await.map_err(|error| error.to_string())?;
    // One id for one purge, so that a repeat is the same request.
    let request = FinishPurgeRequest { request_id: format!("up-purge-{purge_id}"), purge_id };
    AdminServiceClient::new(channel).finish_purge(request).await.map_err(|status| status.message().to_owned())?;
    Ok(())
}

fn delete(places: &Places) -> io::Result<()> {
    delete::tree(&places.dir)?;
    settings::remove(&places.socket_dir)?;
    match fs::remove_file(&places.log) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
