//! Creating a child of the asker.

use std::borrow::Borrow as _;

use hive_core::agent::{Policy, PolicyPart};
use hive_core::limits::Limits;
use hive_core::name::AgentName;

use super::policy::value;
use super::rights::Rights;
use super::{Approved, Plan, change};
use crate::engine::error::AgentError;
use crate::engine::operator::agents::{Create, check_create, insert};
use crate::engine::{Refusal, actor};
use crate::store::agent::{self as agents, AgentRow, Agents};
use crate::store::{AgentKey, Tx, tree};

/// Most agents below one that are counted, whatever its policy allows.
const COUNTED_MAX: u32 = 10_000;

/// Returns the child that an effect wants.
pub(super) fn wanted(
    asker: &AgentRow,
    name: &AgentName,
    role: &str,
    model: &str,
    policy: &Policy,
) -> Result<Create, Refusal> {
    let parent = AgentName::parse(&asker.name)
        .map_err(|_| Refusal::Fault("a row of an agent has no agent's name"))?;
    let create = Create {
        name: name.clone(),
        parent: Some(parent),
        role: role.to_owned(),
        model: model.to_owned(),
        policy: policy.clone(),
        adopt: false,
    };
    check_create(&create)?;
    Ok(create)
}

pub(super) fn plan<A: Agents>(
    conn: &A,
    limits: &Limits,
    asker: &AgentRow,
    create: &Create,
) -> Result<Plan, Refusal> {
    let Create { name, parent: _, role, model, policy, adopt: _ } = create;
    // The asker may have been retired since.
    actor::active(conn, &asker.name)?;
    if let Some(row) = agents::by_name(conn, name.as_str())? {
        let (name, retired) = (name.to_string(), row.borrow().retired);
        return Err(if retired {
            AgentError::Retired { name }
        } else {
            AgentError::Exists { name }
        }
        .into());
    }
    let rights = Rights { asker, limits };
    let mut changes = vec![
        change("agent", "", name.as_str(), too_many(conn, limits, asker)?),
        change("parent", "", &asker.name, String::new()),
    ];
    if !role.is_empty() {
        changes.push(change("role", "", role, String::new()));
    }
    let shown = if model.is_empty() { "the default" } else { model };
    changes.push(change("model", "", shown, rights.lack_of_model(model)));
    for part in PolicyPart::ALL {
        let says = matches!(part, PolicyPart::ToolGroups | PolicyPart::AllowedRecipients);
        let exceeds = rights.lack_of(part, policy);
        if says || !exceeds.is_empty() || !part.same(policy, &Policy::default()) {
            let field = format!("policy.{}", part.name());
            changes.push(change(&field, "", &value(part, policy, limits), exceeds));
        }
    }
    Ok(Plan { key: None, changes, narrows: false })
}

pub(super) fn apply(tx: &Tx<'_>, approved: Approved<'_>, create: &Create) -> Result<(), Refusal> {
    insert(tx, create, &approved.detail())?;
    let agent = create.name.to_string();
    approved.short.map_or(Ok(()), |short| Err(AgentError::NoFiles { agent, short }.into()))
}

/// Returns whose limit of agents below it one more would exceed; empty for none. The asker's own
/// limit counts only for its grant; that of an agent above it, if its policy states one.
fn too_many<A: Agents>(conn: &A, limits: &Limits, asker: &AgentRow) -> Result<String, Refusal> {
    let own = asker.policy.children_max;
    let max = own.or_else(|| {
        asker.policy.has_grant(hive_core::agent::CREATE_AGENT).then_some(limits.children_max)
    });
    let full = |key: AgentKey, name: &str, max: u32| {
        let below = tree::below_count(conn, key, max.min(COUNTED_MAX))?;
        let sentence =
            format!("{name} has {below} agents below it, as many as its children_max allows");
        Ok::<_, Refusal>((below >= max).then_some(sentence))
    };
    if let Some(sentence) = max.map(|max| full(asker.key, &asker.name, max)).transpose()?.flatten()
    {
        return Ok(sentence);
    }
    let (mut above, mut seen) = (asker.parent, vec![asker.key]);
    while let Some(key) = above.filter(|key| !seen.contains(key)) {
        seen.push(key);
        let row = agents::by_key(conn, key)?;
        let row = row.borrow();
        let max = row.policy.children_max;
        if let Some(sentence) = max.map(|max| full(key, &row.name, max)).transpose()?.flatten() {
            return Ok(sentence);
        }
        above = row.parent;
    }
    Ok(String::new())
}
