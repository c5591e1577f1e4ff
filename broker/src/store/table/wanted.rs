//! Table `agent`: how an agent is wanted on its host, and what its parent was notified of.

use hive_core::agent::Heard;
use rusqlite::Result;

use crate::store::codec::{Coded as _, integer};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{run, update};
use crate::store::write::tx::Tx;

/// Stores how an agent is wanted: whether it is stopped, and whether its harness runs on demand.
/// Its harness is notified, and a call that waits for its mail is polled.
pub fn set_wanted(tx: &Tx<'_>, key: AgentKey, stopped: bool, on_demand: bool) -> Result<()> {
    tx.cache().agent_changes(key);
    update!(tx, agent { stopped: stopped, on_demand: on_demand } where { id: key.0 })?;
    tx.after_commit(Effect::Changed(key));
    tx.after_commit(Effect::Hint(key));
    tx.after_commit(Effect::Shown(key));
    Ok(())
}

/// Requests one more restart of the harness.
pub fn request_restart(tx: &Tx<'_>, key: AgentKey) -> Result<()> {
    tx.cache().agent_changes(key);
    run(tx, "UPDATE agent SET restart_count = restart_count + 1 WHERE id = ?1", [key.0])?;
    tx.after_commit(Effect::Changed(key));
    tx.after_commit(Effect::Shown(key));
    Ok(())
}

/// Stores what the parent was notified of.
pub fn set_heard(tx: &Tx<'_>, key: AgentKey, heard: Heard, restarts_told: u64) -> Result<()> {
    tx.cache().agent_changes(key);
    update!(tx, agent { heard: heard.code(), restarts_told: integer(restarts_told) } where { id: key.0 })
}
