//! Table `published_loose_end`, and the one list of loose ends of every kind.
//!
//! Invariant: a co-process's set is replaced as a whole, and an entry whose key stays keeps its id.

use hive_core::limits::LOOSE_END_TEXT_CHARS_MAX;
use hive_core::loose_end::LooseEnd;
use rusqlite::{Result, Row};

use crate::store::codec::integer;
use crate::store::columns::Columns;
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, all, insert, one, run};
use crate::store::write::tx::Tx;

/// An entry of a set: its key and its text.
pub type Entry = (String, String);

/// Returns how many other co-processes publish for an agent.
pub(crate) fn other_labels(conn: &impl Statements, agent: AgentKey, label: &str) -> Result<usize> {
    let sql =
        "SELECT count(DISTINCT label) FROM published_loose_end WHERE agent_id = ?1 AND label <> ?2";
    one(conn, sql, (agent.0, label))
}

/// Replaces the set with this label.
pub fn replace(tx: &Tx<'_>, agent: AgentKey, label: &str, entries: &[Entry]) -> Result<()> {
    // Rows with the newest ids may be deleted.
    tx.keep_counters()?;
    let sql = "SELECT key FROM published_loose_end WHERE agent_id = ?1 AND label = ?2";
    let known: Vec<String> = all(tx, sql, (agent.0, label))?;
    for key in known.iter().filter(|key| !entries.iter().any(|(entry, _)| entry == *key)) {
        let sql = "DELETE FROM published_loose_end WHERE agent_id = ?1 AND label = ?2 AND key = ?3";
        run(tx, sql, (agent.0, label, key))?;
    }
    for (key, text) in entries {
        if known.contains(key) {
            let sql = "UPDATE published_loose_end SET text = ?4 WHERE agent_id = ?1 AND label = ?2 AND key = ?3 AND text <> ?4";
            run(tx, sql, (agent.0, label, key, text))?;
        } else {
            insert!(tx, into published_loose_end {
                id: integer(tx.next_id()),
                agent_id: agent.0,
                label: label,
                key: key,
                text: text,
                create_time: tx.now.wall.0,
            })?;
        }
    }
    Ok(())
}

/// Deletes all published loose ends of an agent.
pub fn clear(tx: &Tx<'_>, agent: AgentKey) -> Result<()> {
    tx.keep_counters()?;
    run(tx, "DELETE FROM published_loose_end WHERE agent_id = ?1", [agent.0])
}

/// Returns the statement for loose ends of every kind after an id, of one agent (?2) or of all.
/// Each arm has the same columns in the same order.
fn list_sql(one: bool) -> String {
    let of = |column: &str| if one { format!("{column} = ?2") } else { "?2 IS NULL".to_owned() };
    let name = |column: &str| {
        format!("(SELECT coalesce(purged_name, name) FROM agent WHERE id = {column})")
    };
    let text = |column: &str| format!("substr({column}, 1, {LOOSE_END_TEXT_CHARS_MAX})");
    let (asker, target) = (name("q.asker_id"), name("q.target_id"));
    let question = text("q.text");
    [
        format!(
            "SELECT CASE WHEN q.effect IS NULL THEN 1 ELSE 6 END AS kind, q.id AS id, {asker}, {target}, {question}, q.create_time, q.deadline_time, '' FROM question q \
             WHERE q.state = 1 AND q.id > ?1 AND {}",
            of("q.asker_id")
        ),
        format!(
            "SELECT 2, q.id, {target}, {asker}, {question}, q.create_time, q.deadline_time, '' FROM question q \
             WHERE q.state = 1 AND q.id > ?1 AND {}",
            of("q.target_id")
        ),
        format!(
            "SELECT 3, r.id, {}, '', {}, r.create_time, r.due_time, '' FROM reminder r WHERE r.state = 1 AND r.id > ?1 AND {}",
            name("r.agent_id"),
            text("r.body"),
            of("r.agent_id")
        ),
        // Messages of agents and of the operator. A message is one loose end, in however many
        // inboxes it is dead.
        format!(
            "SELECT 4, m.id, {}, group_concat({}, ', '), {}, max(d.state_time), NULL, '' FROM open_delivery d \
             JOIN message m ON m.id = d.message_id WHERE d.queue = 4 AND d.state = 4 AND m.origin_kind IN (1, 2) AND m.id > ?1 AND {} GROUP BY m.id",
            name("m.origin_id"),
            name("d.agent_id"),
            text("m.body"),
            of("m.origin_id")
        ),
        format!(
            "SELECT 5, p.id, {}, p.label, p.text, p.create_time, NULL, p.key FROM published_loose_end p WHERE p.id > ?1 AND {}",
            name("p.agent_id"),
            of("p.agent_id")
        ),
    ]
    .join(" UNION ALL ")
}

/// The columns of each arm of the list.
impl Columns for LooseEnd {
    const WIDTH: usize = 8;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        Ok(Self {
            kind: Columns::read(row, at)?,
            id: Columns::read(row, at + 1)?,
            agent: row.get(at + 2)?,
            peer: row.get(at + 3)?,
            text: row.get(at + 4)?,
            create_time: Columns::read(row, at + 5)?,
            due_time: Columns::read(row, at + 6)?,
            key: row.get(at + 7)?,
        })
    }
}

/// Returns loose ends by id, of one agent or of all; and whether there are more. A question between
/// two agents is a loose end of each. Entries of one id stay together, so a page may be longer by
/// one.
pub(crate) fn page(
    conn: &impl Statements,
    agent: Option<AgentKey>,
    after: u64,
    rows: u32,
) -> Result<(Vec<LooseEnd>, bool)> {
    let sql = format!("{} ORDER BY id, kind LIMIT ?3", list_sql(agent.is_some()));
    let mut found: Vec<LooseEnd> =
        all(conn, &sql, (integer(after), agent.map(|key| key.0), rows + 2))?;
    let rows = rows as usize;
    let pair = found.len() > rows && rows > 0 && found[rows - 1].id == found[rows].id;
    let cut = if pair { rows + 1 } else { rows };
    let more = found.len() > cut;
    found.truncate(cut);
    Ok((found, more))
}
