//! Table `agent`: the agents and their state. Row 1 is the operator.

use hive_core::agent::{HarnessState, Policy, Source};
use hive_core::message::OPERATOR;
use hive_core::park::{Park, Parked};
use hive_core::time::{BootTime, Now, WallTime};
use hive_core::turn::Outcome;
use rusqlite::{Connection, OptionalExtension as _, Result, Row};

use crate::store::codec::{Coded as _, coded, coded_option, integer, json, unsigned};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::write::tx::Tx;

/// The beginning of a query for active agents; the condition of the index `agent_by_parent`.
pub(super) const ACTIVE: &str = "id <> 1 AND retired = 0";
/// The parent of a row, as the index `agent_by_parent` has it.
pub(super) const PARENT: &str = "coalesce(parent_id, 1)";
/// The row of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRow {
    /// The key of the row.
    pub key: AgentKey,
    /// The name, which no other row has.
    pub name: String,
    /// The source that declared it; `None` for the operator.
    pub source: Option<Source>,
    /// The parent; `None` for a root.
    pub parent: Option<AgentKey>,
    /// The purpose of the agent, as others see it.
    pub role: String,
    /// The model; empty for the default.
    pub model: String,
    /// The rights and limits of the agent.
    pub policy: Policy,
    /// The last declaration of the configuration file, as JSON.
    pub declared: Option<String>,
    /// Whether it was retired.
    pub retired: bool,
    /// The status text that the agent set.
    pub status_text: String,
    /// When the status text was set.
    pub status_time: Option<WallTime>,
    /// The state that its harness reported.
    pub harness_state: HarnessState,
    /// When that state began.
    pub harness_state_time: WallTime,
    /// The version of its harness.
    pub revision: String,
    /// Size of its context in tokens.
    pub context_tokens: u64,
    /// Size of its model's window in tokens.
    pub context_window_tokens: u64,
    /// The number of its last session.
    pub session_epoch: u64,
    /// Its session's token; `None` while no session lives.
    pub session_token: Option<String>,
    /// The reason for which it starts no turns, if it is parked.
    pub park: Option<Parked>,
    /// Turns in a row that could not run.
    pub failures_in_a_row: u32,
    /// Whether the operator was notified of the present trouble.
    pub operator_told: bool,
    /// When the size of its context was measured.
    pub context_time: Option<WallTime>,
    /// Models that it may be switched to; empty: any.
    pub available_models: Vec<String>,
    /// Whether the operator stopped it.
    pub stopped: bool,
}

impl AgentRow {
    /// Returns its park, if that still holds.
    #[must_use]
    pub fn parked(&self, now: Now) -> Option<&Parked> {
        self.park.as_ref().filter(|parked| parked.park.holds(now))
    }
}

pub(in crate::store) const COLUMNS: &str = "id, name, source, parent_id, role, model, policy, declared, retired, status_text, status_time, harness_state, \
     harness_state_time, revision, context_tokens, context_window_tokens, session_epoch, session_token, park_cause, \
     park_until_time, park_until_boot, park_error, failures_in_a_row, operator_told, context_time, available_models, stopped";

pub(in crate::store) fn from_row(row: &Row<'_>) -> Result<AgentRow> {
    let policy: String = row.get(6)?;
    let policy = if policy == "{}" {
        Policy::default()
    } else {
        serde_json::from_str(&policy).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                6,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })?
    };
    let cause: Option<Outcome> = coded_option(row, 18)?;
    let park = match cause {
        None => None,
        Some(cause) => {
            let wall = row.get::<_, Option<i64>>(19)?.map(WallTime);
            let boot = row.get::<_, Option<i64>>(20)?.map(BootTime);
            Some(Parked { cause, park: Park::new(cause, wall, boot), error: row.get(21)? })
        }
    };
    Ok(AgentRow {
        key: AgentKey(row.get(0)?),
        name: row.get(1)?,
        source: if row.get::<_, i64>(2)? == 0 { None } else { Some(coded(row, 2)?) },
        parent: row.get::<_, Option<i64>>(3)?.map(AgentKey),
        role: row.get(4)?,
        model: row.get(5)?,
        policy,
        declared: row.get(7)?,
        retired: row.get(8)?,
        status_text: row.get(9)?,
        status_time: row.get::<_, Option<i64>>(10)?.map(WallTime),
        harness_state: coded(row, 11)?,
        harness_state_time: WallTime(row.get(12)?),
        revision: row.get(13)?,
        context_tokens: unsigned(row, 14)?,
        context_window_tokens: unsigned(row, 15)?,
        session_epoch: unsigned(row, 16)?,
        session_token: row.get(17)?,
        park,
        failures_in_a_row: unsigned(row, 22)?,
        operator_told: row.get(23)?,
        context_time: row.get::<_, Option<i64>>(24)?.map(WallTime),
        available_models: json(row, 25)?,
        stopped: row.get(26)?,
    })
}

/// Inserts the row of the operator, if it is missing.
pub fn ensure_operator(tx: &Tx<'_>) -> Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, ?1, 0, ?2) ON CONFLICT DO NOTHING",
    )?;
    insert.execute((OPERATOR, tx.now.wall.0))?;
    tx.execute("INSERT INTO inbox (agent_id) VALUES (1) ON CONFLICT DO NOTHING", []).map(|_| ())
}

/// Returns the agent or operator of this name.
pub fn by_name(conn: &Connection, name: &str) -> Result<Option<AgentRow>> {
    let mut select =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM agent WHERE name = ?1"))?;
    select.query_row([name], from_row).optional()
}

/// Returns the agent or operator of this key.
pub fn by_key(conn: &Connection, key: AgentKey) -> Result<AgentRow> {
    let mut select = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM agent WHERE id = ?1"))?;
    select.query_row([key.0], from_row)
}

/// Returns the name of a key; of a purged agent, the name that it had.
pub fn name_of(conn: &Connection, key: AgentKey) -> Result<String> {
    conn.prepare_cached("SELECT coalesce(purged_name, name) FROM agent WHERE id = ?1")?
        .query_row([key.0], |row| row.get(0))
}

/// Returns agents by name, after `after`.
pub fn page(
    conn: &Connection,
    after: &str,
    include_retired: bool,
    rows: u32,
) -> Result<Vec<AgentRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM agent WHERE id <> 1 AND name > ?1 AND (?2 OR retired = 0) AND purged_name IS NULL ORDER BY name LIMIT ?3"
    );
    conn.prepare_cached(&sql)?.query_map((after, include_retired, rows), from_row)?.collect()
}

/// Returns all agents that are not retired.
pub fn active(conn: &Connection) -> Result<Vec<AgentRow>> {
    let sql = format!("SELECT {COLUMNS} FROM agent WHERE id <> 1 AND retired = 0 ORDER BY id");
    conn.prepare_cached(&sql)?.query_map([], from_row)?.collect()
}

/// Returns the active children of an agent; the operator's are the roots.
pub fn children(conn: &Connection, parent: AgentKey) -> Result<Vec<AgentRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM agent WHERE id <> 1 AND retired = 0 AND coalesce(parent_id, 1) = ?1 ORDER BY name"
    );
    conn.prepare_cached(&sql)?.query_map([parent.0], from_row)?.collect()
}

/// Returns the names of all active agents.
pub fn names(conn: &Connection) -> Result<Vec<String>> {
    let mut select =
        conn.prepare_cached("SELECT name FROM agent WHERE id <> 1 AND retired = 0 ORDER BY name")?;
    select.query_map([], |row| row.get(0))?.collect()
}

/// The columns of a new agent.
#[derive(Clone, Debug)]
pub struct NewAgent<'a> {
    /// The name of the new agent.
    pub name: &'a str,
    /// The source that declares it.
    pub source: Source,
    /// The parent; `None` for a root.
    pub parent: Option<AgentKey>,
    /// The purpose of the agent, as others see it.
    pub role: &'a str,
    /// The model; empty for the default.
    pub model: &'a str,
    /// The rights and limits of the agent.
    pub policy: &'a Policy,
    /// The declaration of the configuration file, if it has one.
    pub declared: Option<&'a str>,
}

fn policy_json(policy: &Policy) -> String {
    serde_json::to_string(policy).expect("a policy is three lists of strings")
}

/// Adds an agent with an empty inbox.
pub fn insert(tx: &Tx<'_>, new: &NewAgent<'_>) -> Result<AgentKey> {
    tx.prepare_cached(
        "INSERT INTO agent (name, source, parent_id, role, model, policy, declared, harness_state_time) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute((
        new.name,
        new.source.code(),
        new.parent.map(|parent| parent.0),
        new.role,
        new.model,
        policy_json(new.policy),
        new.declared,
        tx.now.wall.0,
    ))?;
    let key = AgentKey(tx.last_insert_rowid());
    tx.prepare_cached("INSERT INTO inbox (agent_id) VALUES (?1)")?.execute([key.0])?;
    tx.after_commit(Effect::Told(new.parent.unwrap_or(AgentKey::OPERATOR)));
    Ok(key)
}

/// Writes the columns that the operator or the configuration file decides.
pub fn update(tx: &Tx<'_>, agent: &AgentRow) -> Result<()> {
    let before = by_key(tx, agent.key)?;
    tx.prepare_cached(
        "UPDATE agent SET source = ?2, parent_id = ?3, role = ?4, model = ?5, policy = ?6, declared = ?7, retired = ?8, \
         available_models = ?9, stopped = ?10 WHERE id = ?1",
    )?
    .execute((
        agent.key.0,
        agent.source.map_or(0, crate::store::codec::Coded::code),
        agent.parent.map(|parent| parent.0),
        &agent.role,
        &agent.model,
        policy_json(&agent.policy),
        agent.declared.as_deref(),
        agent.retired,
        serde_json::to_string(&agent.available_models).expect("names are plain data"),
        agent.stopped,
    ))?;
    tx.after_commit(Effect::Told(agent.key));
    tell_around(tx, &before, agent)
}

/// Notifies the harnesses of the agents whose view of the tree changes with a row: its parents
/// before and now, and its children.
fn tell_around(tx: &Tx<'_>, before: &AgentRow, now: &AgentRow) -> Result<()> {
    let shown = |row: &AgentRow| (row.parent, row.role.clone(), row.retired);
    if shown(before) == shown(now) {
        return Ok(());
    }
    for parent in [before.parent, now.parent] {
        tx.after_commit(Effect::Told(parent.unwrap_or(AgentKey::OPERATOR)));
    }
    if before.role != now.role {
        let sql = format!("SELECT id FROM agent WHERE {ACTIVE} AND {PARENT} = ?1");
        let children: Vec<i64> = tx
            .prepare_cached(&sql)?
            .query_map([now.key.0], |row| row.get(0))?
            .collect::<Result<_>>()?;
        for child in children {
            tx.after_commit(Effect::Told(AgentKey(child)));
        }
    }
    Ok(())
}

/// Begins a session.
pub fn set_session(
    tx: &Tx<'_>,
    key: AgentKey,
    epoch: u64,
    token: &str,
    revision: &str,
) -> Result<()> {
    tx.prepare_cached(
        "UPDATE agent SET session_epoch = ?2, session_token = ?3, revision = ?4 WHERE id = ?1",
    )?
    .execute((key.0, integer(epoch), token, revision))?;
    tx.after_commit(Effect::Session(key));
    Ok(())
}

/// Stops or starts the agent. Its harness is notified, and a call that waits for its mail is
/// polled.
pub fn set_stopped(tx: &Tx<'_>, key: AgentKey, stopped: bool) -> Result<()> {
    tx.prepare_cached("UPDATE agent SET stopped = ?2 WHERE id = ?1")?.execute((key.0, stopped))?;
    tx.after_commit(Effect::Told(key));
    tx.after_commit(Effect::Wake(key));
    Ok(())
}

/// Frees the name of a retired agent. Its messages and events still show that name.
pub fn free_name(tx: &Tx<'_>, key: AgentKey) -> Result<()> {
    // `#` is in no name that an agent can have.
    tx.prepare_cached(
        "UPDATE agent SET purged_name = name, name = '#' || id, declared = NULL WHERE id = ?1",
    )?
    .execute([key.0])
    .map(|_| ())
}

/// Ends the session.
pub fn clear_session(tx: &Tx<'_>, key: AgentKey) -> Result<()> {
    tx.prepare_cached("UPDATE agent SET session_token = NULL WHERE id = ?1")?.execute([key.0])?;
    tx.after_commit(Effect::Session(key));
    Ok(())
}

/// Sets the agent's own status.
pub fn set_status_text(tx: &Tx<'_>, key: AgentKey, text: &str) -> Result<()> {
    let time = (!text.is_empty()).then_some(tx.now.wall.0);
    tx.prepare_cached("UPDATE agent SET status_text = ?2, status_time = ?3 WHERE id = ?1")?
        .execute((key.0, text, time))
        .map(|_| ())
}

/// Stores the state of the harness; the time changes only with the state.
pub fn set_harness_state(tx: &Tx<'_>, key: AgentKey, state: HarnessState) -> Result<()> {
    tx.prepare_cached("UPDATE agent SET harness_state = ?2, harness_state_time = ?3 WHERE id = ?1 AND harness_state <> ?2")?
        .execute((key.0, state.code(), tx.now.wall.0))
        .map(|_| ())
}

/// Stores the present size of the context; 0 if it is unknown. A window that was not reported stays
/// unchanged.
pub fn set_context(tx: &Tx<'_>, key: AgentKey, tokens: u64, window: u64) -> Result<()> {
    let time = (tokens > 0).then_some(tx.now.wall.0);
    tx.prepare_cached(
        "UPDATE agent SET context_tokens = ?2, context_window_tokens = iif(?3 = 0, context_window_tokens, ?3), context_time = ?4 \
         WHERE id = ?1",
    )?
    .execute((key.0, integer(tokens), integer(window), time))
    .map(|_| ())
}

/// Parks or unparks the agent and counts its failures in a row.
pub fn set_park(
    tx: &Tx<'_>,
    key: AgentKey,
    park: Option<&Parked>,
    failures_in_a_row: u32,
    operator_told: bool,
) -> Result<()> {
    let (wall, boot) = park.map_or((None, None), |parked| parked.park.times());
    tx.prepare_cached(
        "UPDATE agent SET park_cause = ?2, park_until_time = ?3, park_until_boot = ?4, park_error = ?5, failures_in_a_row = ?6, \
         operator_told = ?7 WHERE id = ?1",
    )?
    .execute((
        key.0,
        park.map(|park| park.cause.code()),
        wall.map(|until| until.0),
        boot.map(|until| until.0),
        park.map_or("", |park| park.error.as_str()),
        failures_in_a_row,
        operator_told,
    ))?;
    tx.after_commit(Effect::Wake(key));
    Ok(())
}
