//! The end of a purged agent on a host with systemd: its directories are deleted, and the broker is
//! notified.
//!
//! Invariant: only what systemd made for the unit is deleted, and only while the unit is inactive.
//! The broker is notified after the deletion, so an interrupted deletion is repeated.

use std::path::Path;

use hive_core::name::AgentName;

use crate::output::text::visible_line;
use crate::supervise::launch::purged;
use crate::supervise::units::systemctl::{Systemctl, Unit, Verb};

/// Deletes the directories of an agent whose unit has no process, and notifies the broker.
pub(crate) async fn run(
    systemctl: &Systemctl,
    name: &AgentName,
    has_failed: bool,
    socket: &Path,
    id: u64,
) -> Result<(), String> {
    let unit = Unit::of(name);
    if has_failed {
        // systemd does not delete the directories of such a unit.
        systemctl.order(Verb::ResetFailed, &unit).await?;
    }
    systemctl
        .order(Verb::Clean, &unit)
        .await
        .map_err(|why| format!("its directories are not deleted: {why}"))?;
    purged::finish(socket, id).await.map_err(|why| {
        format!(
            "its directories are deleted, but the broker refuses to know: {}",
            visible_line(&why)
        )
    })
}
