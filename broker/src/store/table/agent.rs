//! Table `agent`: the agents and their state. Row 1 is the operator.

use std::borrow::Borrow;
use std::sync::Arc;

use hive_core::agent::{HarnessState, Policy, Source};
use hive_core::message::OPERATOR;
use hive_core::park::Parked;
use rusqlite::{Connection, Result};

use crate::store::codec::{Coded, integer};
use crate::store::columns::{columns, sql};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
pub use crate::store::row::agent::AgentRow;
use crate::store::row::agent::COLUMNS;
use crate::store::row::inbox::{self, InboxRow};
use crate::store::statement::{Sql, Statements, all, first, insert, one, run, update};
use crate::store::write::tx::Tx;

/// The beginning of a query for active agents; the condition of the index `agent_by_parent`.
pub(super) const ACTIVE: &str = "id <> 1 AND retired = 0";
/// The parent of a row, as the index `agent_by_parent` has it.
pub(super) const PARENT: &str = "coalesce(parent_id, 1)";

/// Inserts the row of the operator, if it is missing.
pub fn ensure_operator(tx: &Tx<'_>) -> Result<()> {
    // Most starts find it, and a look is cheaper to prepare than the statements below.
    let there = "SELECT EXISTS (SELECT 1 FROM agent WHERE id = 1) AND EXISTS (SELECT 1 FROM inbox WHERE agent_id = 1)";
    if one(tx, there, [])? {
        return Ok(());
    }
    let sql = "INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, ?1, 0, ?2) ON CONFLICT DO NOTHING";
    run(tx, sql, (OPERATOR, tx.now.wall.0))?;
    run(tx, "INSERT INTO inbox (agent_id) VALUES (1) ON CONFLICT DO NOTHING", [])
}

/// What agents are read from: a connection, or the transaction of the writer, which has rows in
/// memory.
pub(crate) trait Agents: Statements {
    /// A row, or a share of one in memory.
    type Row: Borrow<AgentRow>;

    /// Returns the agent or operator of this name.
    fn agent_by_name(&self, name: &str) -> Result<Option<Self::Row>>;

    /// Returns the agent or operator of this key.
    fn agent_by_key(&self, key: AgentKey) -> Result<Self::Row>;
}

impl Agents for Connection {
    type Row = AgentRow;

    fn agent_by_name(&self, name: &str) -> Result<Option<AgentRow>> {
        named(self, name)
    }

    fn agent_by_key(&self, key: AgentKey) -> Result<AgentRow> {
        keyed(self, key)
    }
}

impl Agents for Tx<'_> {
    type Row = Arc<AgentRow>;

    fn agent_by_name(&self, name: &str) -> Result<Option<Arc<AgentRow>>> {
        if let Some(row) = self.cache().agent_named(name) {
            return Ok(Some(row));
        }
        let row = named(self, name)?;
        Ok(row.map(|row| self.cache().keep_agent(row)))
    }

    fn agent_by_key(&self, key: AgentKey) -> Result<Arc<AgentRow>> {
        if let Some(row) = self.cache().agent(key) {
            return Ok(row);
        }
        Ok(self.cache().keep_agent(keyed(self, key)?))
    }
}

fn named(conn: &impl Statements, name: &str) -> Result<Option<AgentRow>> {
    const SQL: &str = sql!("SELECT ", COLUMNS, " FROM agent WHERE name = ?1");
    first(conn, Sql::Direct(SQL), [name])
}

fn keyed(conn: &impl Statements, key: AgentKey) -> Result<AgentRow> {
    const SQL: &str = sql!("SELECT ", COLUMNS, " FROM agent WHERE id = ?1");
    one(conn, Sql::Direct(SQL), [key.0])
}

/// Returns the agent or operator of this name.
pub(crate) fn by_name<A: Agents>(from: &A, name: &str) -> Result<Option<A::Row>> {
    from.agent_by_name(name)
}

/// Returns the agent or operator of this key.
pub(crate) fn by_key<A: Agents>(from: &A, key: AgentKey) -> Result<A::Row> {
    from.agent_by_key(key)
}

/// Returns the name of a key; of a purged agent, the name that it had.
pub(crate) fn name_of(conn: &impl Statements, key: AgentKey) -> Result<String> {
    one(conn, "SELECT coalesce(purged_name, name) FROM agent WHERE id = ?1", [key.0])
}

/// Returns agents by name, after `after`.
pub(crate) fn page(
    conn: &impl Statements,
    after: &str,
    include_retired: bool,
    rows: u32,
) -> Result<Vec<AgentRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM agent WHERE id <> 1 AND name > ?1 AND (?2 OR retired = 0) AND purged_name IS NULL ORDER BY name LIMIT ?3"
    );
    all(conn, &sql, (after, include_retired, rows))
}

/// Returns all agents that are not retired.
pub(crate) fn active(conn: &impl Statements) -> Result<Vec<AgentRow>> {
    let sql = format!("SELECT {COLUMNS} FROM agent WHERE id <> 1 AND retired = 0 ORDER BY id");
    all(conn, &sql, [])
}

columns! {
    /// The session of an agent.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Session, const SESSION {
        pub agent: AgentKey = "id",
        pub epoch: u64 = "session_epoch",
        pub token: String = "session_token",
    }
}

/// Returns the sessions of all active agents.
pub(crate) fn sessions(conn: &impl Statements) -> Result<Vec<Session>> {
    let sql = format!(
        "SELECT {SESSION} FROM agent WHERE {ACTIVE} AND session_token IS NOT NULL ORDER BY id"
    );
    all(conn, &sql, [])
}

columns! {
    /// The place of an agent in the tree.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Place, const PLACE {
        pub key: AgentKey = "id",
        pub name: String = "name",
        pub source: Option<Source> = "nullif(source, 0)",
        pub parent: Option<AgentKey> = "parent_id",
    }
}

/// Returns the places of all active agents.
pub(crate) fn places(conn: &impl Statements) -> Result<Vec<Place>> {
    all(conn, &format!("SELECT {PLACE} FROM agent WHERE {ACTIVE} ORDER BY id"), [])
}

columns! {
    /// The key and the name of an agent.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Addressee, const ADDRESSEE {
        pub key: AgentKey = "a.id",
        pub name: String = "a.name",
    }
}

/// Returns all other agents that are not retired. The writer then has the counts of their inboxes,
/// because one read of all costs less than one of each.
pub fn others(tx: &Tx<'_>, me: AgentKey) -> Result<Vec<Addressee>> {
    const SQL: &str = sql!(
        "SELECT ",
        ADDRESSEE,
        ", ",
        inbox::COLUMNS,
        " FROM agent a JOIN inbox i ON i.agent_id = a.id WHERE a.id NOT IN (1, ?1) AND a.retired = 0 \
          ORDER BY a.id"
    );
    let rows: Vec<(Addressee, InboxRow)> = all(tx, SQL, [me.0])?;
    let kept = rows.into_iter().map(|(addressee, counts)| {
        tx.cache().counts(addressee.key, || Ok(counts))?;
        Ok(addressee)
    });
    kept.collect()
}

/// Returns the active children of an agent; the operator's are the roots.
pub(crate) fn children(conn: &impl Statements, parent: AgentKey) -> Result<Vec<AgentRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM agent WHERE id <> 1 AND retired = 0 AND coalesce(parent_id, 1) = ?1 ORDER BY name"
    );
    all(conn, &sql, [parent.0])
}

/// Returns the names of all active agents.
pub(crate) fn names(conn: &impl Statements) -> Result<Vec<String>> {
    all(conn, "SELECT name FROM agent WHERE id <> 1 AND retired = 0 ORDER BY name", [])
}

/// The columns of a new agent.
#[derive(Clone, Debug)]
pub struct NewAgent<'a> {
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
    insert!(tx, into agent {
        name: new.name,
        source: new.source.code(),
        parent_id: new.parent.map(|parent| parent.0),
        role: new.role,
        model: new.model,
        policy: policy_json(new.policy),
        declared: new.declared,
        harness_state_time: tx.now.wall.0,
    })?;
    let key = AgentKey(tx.inserted_key());
    insert!(tx, into inbox { agent_id: key.0 })?;
    tx.cache().agent_changes(key);
    tx.after_commit(Effect::Changed(new.parent.unwrap_or(AgentKey::OPERATOR)));
    tx.after_commit(Effect::Changed(key));
    tx.after_commit(Effect::Shown(key));
    Ok(key)
}

/// Writes the columns that the operator or the configuration file decides.
pub fn update(tx: &Tx<'_>, agent: &AgentRow) -> Result<()> {
    let before = by_key(tx, agent.key)?;
    tx.cache().agent_changes(agent.key);
    update!(tx, agent {
        source: agent.source.map_or(0, Coded::code),
        parent_id: agent.parent.map(|parent| parent.0),
        role: agent.role,
        model: agent.model,
        policy: policy_json(&agent.policy),
        declared: agent.declared,
        retired: agent.retired,
        available_models: serde_json::to_string(&agent.available_models).expect("a list of names"),
        stopped: agent.stopped,
        on_demand: agent.on_demand,
        heard: agent.heard.code(),
    } where { id: agent.key.0 })?;
    tx.after_commit(Effect::Changed(agent.key));
    tx.after_commit(Effect::Shown(agent.key));
    notify_neighbours(tx, &before, agent)
}

/// Notifies the harnesses of the agents whose view of the tree changes with a row: its parents
/// before and now, and its children.
fn notify_neighbours(tx: &Tx<'_>, before: &AgentRow, now: &AgentRow) -> Result<()> {
    let shown = |row: &AgentRow| (row.parent, row.role.clone(), row.retired);
    if shown(before) == shown(now) {
        return Ok(());
    }
    for parent in [before.parent, now.parent] {
        tx.after_commit(Effect::Changed(parent.unwrap_or(AgentKey::OPERATOR)));
    }
    if before.role != now.role {
        let sql = format!("SELECT id FROM agent WHERE {ACTIVE} AND {PARENT} = ?1");
        let children: Vec<AgentKey> = all(tx, &sql, [now.key.0])?;
        for child in children {
            tx.after_commit(Effect::Changed(child));
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
    tx.cache().agent_changes(key);
    update!(tx, agent {
        session_epoch: integer(epoch),
        session_token: token,
        revision: revision,
    } where { id: key.0 })?;
    tx.after_commit(Effect::Session(key));
    tx.after_commit(Effect::Shown(key));
    Ok(())
}

/// Frees the name of a retired agent. Its messages and events still show that name.
pub fn free_name(tx: &Tx<'_>, key: AgentKey) -> Result<()> {
    tx.cache().agent_changes(key);
    tx.after_commit(Effect::Shown(key));
    // `#` is in no name that an agent can have.
    let sql =
        "UPDATE agent SET purged_name = name, name = '#' || id, declared = NULL WHERE id = ?1";
    run(tx, sql, [key.0])
}

/// Ends the session.
pub fn clear_session(tx: &Tx<'_>, key: AgentKey) -> Result<()> {
    tx.cache().agent_changes(key);
    run(tx, "UPDATE agent SET session_token = NULL WHERE id = ?1", [key.0])?;
    tx.after_commit(Effect::Session(key));
    tx.after_commit(Effect::Shown(key));
    Ok(())
}

/// Sets the agent's own status.
pub fn set_status_text(tx: &Tx<'_>, key: AgentKey, text: &str) -> Result<()> {
    let time = (!text.is_empty()).then_some(tx.now.wall.0);
    tx.cache().agent_changes(key);
    tx.after_commit(Effect::Shown(key));
    update!(tx, agent { status_text: text, status_time: time } where { id: key.0 })
}

/// Stores the state of the harness; the time changes only with the state.
pub fn set_harness_state(tx: &Tx<'_>, key: AgentKey, state: HarnessState) -> Result<()> {
    let before = by_key(tx, key)?;
    if before.harness_state == state {
        return Ok(());
    }
    tx.cache().agent_changes(key);
    tx.after_commit(Effect::Shown(key));
    let harness_state_time = tx.now.wall;
    let sql = "UPDATE agent SET harness_state = ?2, harness_state_time = ?3 WHERE id = ?1";
    run(tx, sql, (key.0, state.code(), harness_state_time.0))?;
    // It changes twice in each turn, so the row is not read again.
    let row = AgentRow { harness_state: state, harness_state_time, ..(*before).clone() };
    tx.cache().keep_agent(row);
    Ok(())
}

/// Stores the present size of the context; 0 if it is unknown. A window that was not reported stays
/// unchanged.
pub fn set_context(tx: &Tx<'_>, key: AgentKey, tokens: u64, window: u64) -> Result<()> {
    let time = (tokens > 0).then_some(tx.now.wall.0);
    tx.cache().agent_changes(key);
    tx.after_commit(Effect::Shown(key));
    let sql = "UPDATE agent SET context_tokens = ?2, context_window_tokens = iif(?3 = 0, context_window_tokens, ?3), context_time = ?4 \
         WHERE id = ?1";
    run(tx, sql, (key.0, integer(tokens), integer(window), time))
}

/// Parks or unparks the agent and counts its failures in a row.
pub fn set_park(
    tx: &Tx<'_>,
    key: AgentKey,
    park: Option<&Parked>,
    failures_in_a_row: u32,
    operator_notified: bool,
) -> Result<()> {
    tx.cache().agent_changes(key);
    let (wall, boot) = park.map_or((None, None), |parked| parked.park.times());
    update!(tx, agent {
        park_cause: park.map(|park| park.cause.code()),
        park_until_time: wall.map(|until| until.0),
        park_until_boot: boot.map(|until| until.0),
        park_error: park.map_or("", |park| park.error.as_str()),
        failures_in_a_row: failures_in_a_row,
        operator_told: operator_notified,
    } where { id: key.0 })?;
    tx.after_commit(Effect::Hint(key));
    tx.after_commit(Effect::Shown(key));
    Ok(())
}
