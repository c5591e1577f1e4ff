//! `[actions.NAME]`: the commands that agents may ask to run.
//!
//! Invariant: each argument has a pattern and a place in the command, so that nothing an agent
//! gives is dropped without a word; an action with a mistake is left out.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeTable;

use super::error::Findings;
use super::section::Section;
use super::sections::bounded;
use crate::action::{ACTION_TIMEOUT, Action, Actions, Pattern, is_name, placeholder};
use crate::limits::ROLE_CHARS_MAX;
use crate::name::AgentName;

/// Valid time limits, in seconds: at most a day.
const TIMEOUTS_SECS: RangeInclusive<u64> = 1..=86_400;
/// Names whose tools are Hive's own.
const OWN_TOOLS: [&str; 5] =
    ["create_agent", "retire_agent", "schedule_prompt", "set_agent", "set_policy"];
/// Arguments that each tool of an action has.
const OWN_ARGUMENTS: [&str; 2] = ["why", "ttl_seconds"];
/// The rule that [`is_name`] checks.
const NAME_RULE: &str =
    "small letters, digits and `_`, at most 40 characters, and a letter at the beginning";

/// Reads all actions.
pub(super) fn read(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Actions {
    let mut actions = BTreeMap::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let path = format!("actions.{}", name.escape_debug());
        if !is_name(name) {
            let sentence =
                format!("`{}` is no name of an action: use {NAME_RULE}", name.escape_debug());
            findings.add(key.span(), path, sentence);
            continue;
        }
        if OWN_TOOLS.contains(&name) {
            let sentence = format!("`request_{name}` is a tool of Hive's own; choose another name");
            findings.add(key.span(), path, sentence);
            continue;
        }
        let Some(table) = value.get_ref().as_table() else {
            let sentence = format!("`{name}` must be a table: write [actions.{name}]");
            findings.add(value.span(), path, sentence);
            continue;
        };
        let mut section = Section::new(path, table, findings);
        if let Some(action) = action(&mut section, key.span()) {
            actions.insert(name.to_owned(), action);
        }
        section.finish();
    }
    actions
}

fn action(section: &mut Section<'_, '_, '_>, place: std::ops::Range<usize>) -> Option<Action> {
    let command = command(section, place);
    let preview = section.value("preview").is_some().then(|| words(section, "preview"));
    let description = bounded(section, "description", ROLE_CHARS_MAX).unwrap_or_default();
    let agents = agents(section);
    let args = args(section, command.as_deref().unwrap_or_default());
    let timeout = section.number("timeout_secs", TIMEOUTS_SECS).map(Duration::from_secs);
    let timeout = timeout.unwrap_or(ACTION_TIMEOUT);
    // An action that the operator wants to see before it runs is none without its preview.
    let preview = preview.map_or(Some(None), |words| words.map(Some))?;
    Some(Action { command: command?, preview, description, agents: agents?, args: args?, timeout })
}

fn command(
    section: &mut Section<'_, '_, '_>,
    place: std::ops::Range<usize>,
) -> Option<Vec<String>> {
    let key = "command";
    if section.value(key).is_none() {
        section.texts(key);
        let sentence = "`command` is missing: the program and its arguments".to_owned();
        section.object(place, key, sentence, None);
        return None;
    }
    words(section, key)
}

/// Reads a program and its arguments.
fn words(section: &mut Section<'_, '_, '_>, key: &'static str) -> Option<Vec<String>> {
    let words = section.texts(key)?;
    let span = section.value(key)?.span();
    if words.first().is_none_or(|(program, _)| program.is_empty() || program.contains('{')) {
        let sentence =
            format!("`{key}` must begin with a program: [\"git\", \"show\", \"{{commit}}\"]");
        section.object(span, key, sentence, None);
        return None;
    }
    if words.iter().any(|(word, _)| word.contains('\0')) {
        let sentence = "no program takes an argument with a NUL character".to_owned();
        section.object(span, key, sentence, None);
        return None;
    }
    Some(words.into_iter().map(|(word, _)| word).collect())
}

fn agents(section: &mut Section<'_, '_, '_>) -> Option<Vec<AgentName>> {
    let key = "agents";
    let mut agents = Some(Vec::new());
    for (name, span) in section.texts(key).unwrap_or_default() {
        match AgentName::parse(&name) {
            Ok(name) => agents.iter_mut().for_each(|agents| agents.push(name.clone())),
            Err(error) => {
                let sentence = error.to_string().escape_debug().to_string();
                section.object(span, key, sentence, None);
                agents = None;
            }
        }
    }
    agents
}

/// Reads the arguments; each has a place in the command.
fn args(
    section: &mut Section<'_, '_, '_>,
    command: &[String],
) -> Option<BTreeMap<String, Pattern>> {
    let key = "args";
    let mut args = Some(BTreeMap::new());
    for (name, (text, span)) in section.texts_by_name(key) {
        let place = placeholder(&name);
        let problem = if !is_name(&name) {
            Some(format!("`{}` is no name of an argument: use {NAME_RULE}", name.escape_debug()))
        } else if OWN_ARGUMENTS.contains(&name.as_str()) {
            Some(format!("`{name}` is an argument of each action; choose another name"))
        } else if !command.is_empty() && !command.iter().any(|word| word.contains(&place)) {
            Some(format!("`command` has no place for `{name}`: write `{place}` where it belongs"))
        } else {
            None
        };
        let pattern = Pattern::parse(&text)
            .map_err(|error| format!("`{name}` is no regular expression: {error}"));
        match (problem, pattern) {
            (None, Ok(pattern)) => {
                args.iter_mut().for_each(|args| drop(args.insert(name.clone(), pattern.clone())));
            }
            (Some(problem), _) | (None, Err(problem)) => {
                let problem = problem.replace(char::is_control, " ");
                section.object(span, key, problem, None);
                args = None;
            }
        }
    }
    args
}
