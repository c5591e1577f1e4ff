//! Retiring a child of the asker.

use std::borrow::Borrow as _;

use hive_core::agent::Source;
use hive_core::limits::Limits;
use hive_core::name::AgentName;

use super::{Plan, change, child};
use crate::engine::operator::agents;
use crate::engine::{Refusal, actor};
use crate::store::Tx;
use crate::store::agent::{self as rows, AgentRow, Agents};

pub(super) fn plan<A: Agents>(
    conn: &A,
    asker: &AgentRow,
    name: &AgentName,
) -> Result<Plan, Refusal> {
    let row = child(conn, asker, name)?;
    let row = row.borrow();
    if row.source == Some(Source::File) {
        return Err(Refusal::Field {
            field: "effect.retire_agent.name",
            problem: format!(
                "`{name}` is an agent of the configuration file; it is retired by taking it out of the file"
            ),
        });
    }
    let mut changes =
        vec![change("agent", name.as_str(), "retired, its mail is kept", String::new())];
    let children: Vec<String> =
        rows::children(conn, row.key)?.into_iter().map(|child| child.name).collect();
    if !children.is_empty() {
        let before = format!("{}, below {name}", children.join(", "));
        let after = format!("below {}", asker.name);
        changes.push(change("children", &before, &after, String::new()));
    }
    Ok(Plan { key: Some(row.key), changes, narrows: false })
}

pub(super) fn apply(tx: &Tx<'_>, limits: &Limits, name: &AgentName) -> Result<(), Refusal> {
    agents::retire(tx, limits, &*actor::active(tx, name.as_str())?)
}
