//! Running an action of the configuration.

use std::collections::BTreeMap;

use hive_core::action::{Action, Actions, shown};
use hive_core::id::QuestionId;

use super::{Plan, change};
use crate::engine::Refusal;
use crate::store::agent::AgentRow;
use crate::store::{Tx, action_run};

/// Returns an action and its command with these arguments, or why the asker cannot have it run.
pub(crate) fn resolve<'a>(
    actions: &'a Actions,
    asker: &AgentRow,
    name: &str,
    args: &BTreeMap<String, String>,
) -> Result<(&'a Action, Vec<String>), String> {
    let may_ask = |action: &&Action| action.agents.iter().any(|agent| agent.as_str() == asker.name);
    // An action of others is no action for the asker, so that it learns nothing about it.
    let action = actions.get(name).filter(may_ask);
    let action =
        action.ok_or_else(|| format!("{} has no action `{}`", asker.name, name.escape_debug()))?;
    let argv = action.argv(args).map_err(|fault| fault.to_string().escape_debug().to_string())?;
    Ok((action, argv))
}

pub(super) fn plan(
    actions: &Actions,
    asker: &AgentRow,
    name: &str,
    args: &BTreeMap<String, String>,
) -> Result<Plan, Refusal> {
    let (action, argv) = resolve(actions, asker, name, args)
        .map_err(|problem| Refusal::Field { field: "effect.run_action", problem })?;
    let runs = |field: &str, value: &str| change(field, "", value, String::new());
    let timeout = format!("{} s", action.timeout.as_secs());
    let changes =
        vec![runs("action", name), runs("command", &shown(&argv)), runs("timeout", &timeout)];
    Ok(Plan { key: None, changes })
}

pub(super) fn apply(tx: &Tx<'_>, id: QuestionId) -> Result<(), Refusal> {
    Ok(action_run::insert(tx, id)?)
}
