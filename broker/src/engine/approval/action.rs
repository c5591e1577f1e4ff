//! Running an action of the configuration.

use std::collections::BTreeMap;

use hive_core::action::{Action, Actions, shown};
use hive_core::id::QuestionId;

use super::{Plan, change};
use crate::engine::Refusal;
use crate::engine::mail::question::Preview;
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
    preview: Option<&[String]>,
) -> Result<Plan, Refusal> {
    let (action, argv) = resolve(actions, asker, name, args).map_err(refused)?;
    let runs = |field: &str, value: &str| change(field, "", value, String::new());
    let mut changes = vec![runs("action", name), runs("command", &shown(&argv))];
    match preview {
        // Without a line it would look as if the action had no preview.
        Some([]) => changes.push(runs("preview", "(no output)")),
        Some(lines) => changes.extend(lines.iter().map(|line| runs("preview", line))),
        None => {}
    }
    changes.push(runs("timeout", &format!("{} s", action.timeout.as_secs())));
    Ok(Plan { key: None, changes, narrows: false })
}

/// Returns the preview of an action with these arguments.
pub(super) fn preview(
    actions: &Actions,
    asker: &AgentRow,
    name: &str,
    args: &BTreeMap<String, String>,
) -> Result<Option<Preview>, Refusal> {
    let (action, _) = resolve(actions, asker, name, args).map_err(refused)?;
    let argv = action.preview_argv(args).map_err(|fault| refused(fault.to_string()))?;
    let (name, agent) = (name.to_owned(), asker.name.clone());
    Ok(argv.map(|argv| Preview { action: name, agent, argv, timeout: action.timeout }))
}

fn refused(problem: String) -> Refusal {
    Refusal::Field { field: "effect.run_action", problem }
}

pub(super) fn apply(tx: &Tx<'_>, id: QuestionId) -> Result<(), Refusal> {
    Ok(action_run::insert(tx, id)?)
}
