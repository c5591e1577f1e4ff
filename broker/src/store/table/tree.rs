//! Table `agent`, read as a tree: the agents around one agent.
//!
//! Invariant: if the text to look for is empty, a list reads no more rows than it returns, not
//! counting the children that it has already returned and reads again to skip them.

use rusqlite::{Connection, Result};

use crate::store::key::AgentKey;
use crate::store::row::agent::COLUMNS;
use crate::store::statement::{Statements, all, one};
use crate::store::table::agent::{ACTIVE, AgentRow, PARENT, by_key};

/// The condition that an agent's name, role or status contains a text.
const MATCHES: &str = "(?1 = '%' OR name LIKE ?1 ESCAPE '\\' OR role LIKE ?1 ESCAPE '\\' OR status_text LIKE ?1 ESCAPE '\\')";

/// Returns the pattern of `LIKE` for texts that contain `text`.
fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    if !text.is_empty() {
        pattern.push('%');
    }
    pattern
}

pub(in crate::store) fn first_children() -> String {
    format!("SELECT name, role FROM agent WHERE {ACTIVE} AND {PARENT} = ?1 ORDER BY name LIMIT ?2")
}

/// Returns the names and roles of the first children by name; the operator's are the roots.
pub(crate) fn children(
    conn: &impl Statements,
    parent: AgentKey,
    rows: u32,
) -> Result<Vec<(String, String)>> {
    all(conn, &first_children(), (parent.0, rows))
}

/// Returns how many children an agent has.
pub(crate) fn children_count(conn: &impl Statements, parent: AgentKey) -> Result<u32> {
    let sql = format!("SELECT count(*) FROM agent WHERE {ACTIVE} AND {PARENT} = ?1");
    one(conn, &sql, [parent.0])
}

pub(in crate::store) fn below() -> String {
    format!(
        "WITH RECURSIVE below(key) AS (VALUES (?1) UNION \
         SELECT id FROM below CROSS JOIN agent ON {ACTIVE} AND {PARENT} = key LIMIT ?2) SELECT count(*) - 1 FROM below"
    )
}

/// Returns how many agents are below an agent, or `most` if there are more.
pub(crate) fn below_count(conn: &impl Statements, agent: AgentKey, most: u32) -> Result<u32> {
    one(conn, &below(), (agent.0, i64::from(most) + 1))
}

pub(in crate::store) fn children_after() -> String {
    format!(
        "SELECT {COLUMNS} FROM agent WHERE {ACTIVE} AND {PARENT} = ?1 AND name > ?2 ORDER BY name LIMIT ?3"
    )
}

/// Returns active children by name, after a name; the operator's are the roots.
pub(crate) fn children_page(
    conn: &impl Statements,
    parent: AgentKey,
    after: &str,
    rows: u32,
) -> Result<Vec<AgentRow>> {
    all(conn, &children_after(), (parent.0, after, rows))
}

/// The place of an agent among those around another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// The number of its group: 0 for the children, 1 for the parent, 2 for the others.
    pub group: u8,
    /// Its name; the order within a group.
    pub name: String,
}

/// Returns active agents whose name, role or status contains `text`, without `me`: its children,
/// its parent, then the others, each with the number of its group; each group by name. Only those
/// after `after`.
pub(crate) fn around(
    conn: &impl Statements,
    me: &AgentRow,
    text: &str,
    after: Option<&Around>,
    rows: u32,
) -> Result<Vec<(u8, AgentRow)>> {
    let pattern = pattern(text);
    let parent = me.parent.unwrap_or(AgentKey::OPERATOR);
    let groups = [
        (0, format!("{PARENT} = ?2 AND id <> ?3")),
        (1, format!("{PARENT} <> ?2 AND id = ?3")),
        (2, format!("{PARENT} <> ?2 AND id <> ?3 AND id <> ?2")),
    ];
    let mut found: Vec<(u8, AgentRow)> = Vec::new();
    for (group, condition) in groups {
        let left = i64::from(rows) - found.len() as i64;
        if left <= 0 {
            break;
        }
        let name = match after {
            Some(after) if group < after.group => continue,
            Some(after) if group == after.group => after.name.as_str(),
            Some(_) | None => "",
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM agent WHERE {ACTIVE} AND {MATCHES} AND {condition} AND name > ?4 ORDER BY name LIMIT ?5"
        );
        let agents: Vec<AgentRow> = all(conn, &sql, (&pattern, me.key.0, parent.0, name, left))?;
        found.extend(agents.into_iter().map(|row| (group, row)));
    }
    Ok(found)
}

/// Returns the role of an agent's parent; empty for a root.
pub(crate) fn parent_role(conn: &Connection, agent: &AgentRow) -> Result<String> {
    match agent.parent {
        Some(AgentKey::OPERATOR) | None => Ok(String::new()),
        Some(parent) => Ok(by_key(conn, parent)?.role),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_pattern() {
        assert_eq!(pattern("5%_\\"), "%5\\%\\_\\\\%");
        assert_eq!(pattern(""), "%");
    }
}
