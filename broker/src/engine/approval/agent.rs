//! Changing the role or the model of the asker, or of a child of it.

use std::borrow::Borrow as _;

use hive_core::event::{AgentChange, AgentChanged};
use hive_core::name::AgentName;

use super::rights::lack_of_model;
use super::{Approved, Plan, asker_or_child, change};
use crate::engine::operator::agents::check_settings;
use crate::engine::operator::commands::{check_available, set_model};
use crate::engine::{Refusal, actor};
use crate::store::Tx;
use crate::store::agent::{self as agents, AgentRow, Agents};
use crate::store::event::{Fact, log};

pub(super) fn plan<A: Agents>(
    conn: &A,
    asker: &AgentRow,
    name: &AgentName,
    role: Option<&str>,
    model: Option<&str>,
) -> Result<Plan, Refusal> {
    let row = asker_or_child(conn, asker, name)?;
    let row = row.borrow();
    check_settings(role.unwrap_or_default(), model.unwrap_or_default())?;
    let mut changes = vec![];
    if let Some(role) = role.filter(|role| *role != row.role) {
        changes.push(change(&format!("{name}.role"), &row.role, role, String::new()));
    }
    if let Some(model) = model.filter(|model| *model != row.model) {
        if model.is_empty() {
            let problem = "name a model".to_owned();
            return Err(Refusal::Field { field: "effect.set_agent.model", problem });
        }
        check_available(row, model, "effect.set_agent.model")?;
        let field = format!("{name}.model");
        changes.push(change(&field, &row.model, model, lack_of_model(asker, model)));
    }
    Ok(Plan { key: Some(row.key), changes, narrows: false })
}

pub(super) fn apply(
    tx: &Tx<'_>,
    approved: Approved<'_>,
    name: &AgentName,
    role: Option<&str>,
    model: Option<&str>,
) -> Result<(), Refusal> {
    let mut row = (*actor::active(tx, name.as_str())?).clone();
    if let Some(role) = role.filter(|role| *role != row.role) {
        role.clone_into(&mut row.role);
        agents::update(tx, &row)?;
        let changed = AgentChanged { change: AgentChange::Role };
        log(tx, Fact::about(changed, row.key).detail(&format!("role, {}", approved.detail())));
    }
    match model.filter(|model| *model != row.model) {
        Some(model) => set_model(tx, &mut row, model, approved.who).map(|_| ()),
        None => Ok(()),
    }
}
