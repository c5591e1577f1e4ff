//! The sections of the file, each read into its value.
//!
//! Invariant: an invalid value is reported and left at its default, so that one reading finds all
//! mistakes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use toml::de::DeTable;

use super::environment;
use super::error::Findings;
use super::extra_servers::{BASH_SERVER, SERVER_NAME_RULE, is_server_name};
use super::section::Section;
use super::settings;
use super::settings_list::WINDOW_TOKENS;
use super::values::{Broker, Claude, Config, Hive, Operator, RETENTION_DAYS_DEFAULT};
use crate::name::AgentName;

/// The place at which each agent names its parent.
pub(super) type Places = BTreeMap<AgentName, Range<usize>>;

/// Reads the whole file.
pub(super) fn document(table: &DeTable<'_>, findings: &mut Findings<'_>) -> (Config, Places) {
    let mut file = Section::new(String::new(), table, findings);
    let mut config = Config::default();
    let mut places = Places::new();
    if let Some(table) = file.table("hive") {
        config.hive = hive(table, file.findings());
    }
    if let Some(table) = file.table("broker") {
        config.broker = broker(table, file.findings());
    }
    if let Some(table) = file.table("operator") {
        config.operator = operator(table, file.findings());
    }
    if let Some(table) = file.table("claude") {
        config.claude = claude(table, file.findings());
    }
    let actions = file.table("actions");
    if let Some(table) = actions {
        config.actions = super::actions::read(table, file.findings());
    }
    if let Some(table) = file.table("agents") {
        // As they are written: one with a mistake is there, too.
        let actions = actions.into_iter().flatten().map(|(name, _)| name.get_ref().as_ref());
        let known = super::agents::Known { claude: &config.claude, actions: actions.collect() };
        config.agents = super::agents::read(table, &known, file.findings(), &mut places);
    }
    file.finish();
    (config, places)
}

fn hive(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Hive {
    let mut section = Section::new("hive".to_owned(), table, findings);
    let hive = Hive {
        name: line(&mut section, "name"),
        domain: line(&mut section, "domain"),
        swarm: line(&mut section, "swarm"),
        isolation: super::sandbox::isolation(&mut section),
    };
    section.finish();
    hive
}

fn broker(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Broker {
    let mut section = Section::new("broker".to_owned(), table, findings);
    let broker = Broker {
        state_dir: path(&mut section, "state_dir"),
        runtime_dir: path(&mut section, "runtime_dir"),
        socket_group: line(&mut section, "socket_group"),
        agent_unit: super::unit::of_agents(&mut section),
        retention_days: section
            .number("retention_days", 1..=36_500)
            .and_then(|days| u32::try_from(days).ok())
            .unwrap_or(RETENTION_DAYS_DEFAULT),
        backup: super::backup::read(&mut section),
        metrics: super::metrics::read(&mut section),
        traces: super::traces::read(&mut section),
        limits: section
            .table("limits")
            .map(|limits| {
                super::limits::read("broker.limits".to_owned(), limits, section.findings())
            })
            .unwrap_or_default(),
    };
    section.finish();
    broker
}

fn operator(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Operator {
    let mut section = Section::new("operator".to_owned(), table, findings);
    let operator = Operator {
        pronouns: line(&mut section, "pronouns"),
        notify: super::notify::read(&mut section),
        journal_units: super::unit::of_journal(&mut section),
    };
    section.finish();
    operator
}

fn claude(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Claude {
    let mut section = Section::new("claude".to_owned(), table, findings);
    let mut claude = Claude::default();
    if let Some(command) = line(&mut section, "command") {
        claude.command = command;
    }
    claude.env = environment::of_claude(&mut section);
    claude.settings = settings::of_claude(&mut section);
    claude.context_windows = windows(&mut section);
    if let Some((name, span)) = section.text("mcp_server_name") {
        if !is_server_name(&name) {
            let sentence = format!("`mcp_server_name` must be {SERVER_NAME_RULE}");
            section.object(span, "mcp_server_name", sentence, None);
        } else if name == BASH_SERVER {
            let sentence = format!(
                "`mcp_server_name` cannot be `{BASH_SERVER}`: that is the server of the shell tools"
            );
            section.object(span, "mcp_server_name", sentence, None);
        } else {
            claude.mcp_server_name = name;
        }
    }
    section.finish();
    claude
}

/// Reads the windows of models by a part of their names.
fn windows(section: &mut Section<'_, '_, '_>) -> BTreeMap<String, u64> {
    let key = "context_windows";
    let mut windows = BTreeMap::new();
    for (name, (tokens, span)) in section.numbers_by_name(key, WINDOW_TOKENS) {
        let part = name.to_lowercase();
        if part.is_empty() || part.chars().any(char::is_control) {
            let sentence = format!("`{}` is no part of a model's name", name.escape_debug());
            section.object(span, key, sentence, None);
        } else if windows.insert(part, tokens).is_some() {
            let sentence =
                format!("`{name}` is there twice: upper and lower case make no difference");
            section.object(span, key, sentence, None);
        }
    }
    windows
}

/// Reads a text of one line.
pub(super) fn line(section: &mut Section<'_, '_, '_>, key: &'static str) -> Option<String> {
    let (text, span) = section.text(key)?;
    if text.chars().any(char::is_control) {
        section.object(
            span,
            key,
            format!("`{key}` must be one line without control characters"),
            None,
        );
        return None;
    }
    Some(text)
}

/// Reads a text with a maximum number of characters.
pub(super) fn bounded(
    section: &mut Section<'_, '_, '_>,
    key: &'static str,
    chars_max: usize,
) -> Option<String> {
    let (text, span) = section.text(key)?;
    let chars = text.chars().count();
    if chars > chars_max {
        section.object(
            span,
            key,
            format!("`{key}` has {chars} characters, more than {chars_max}"),
            None,
        );
        return None;
    }
    Some(text)
}

pub(super) fn path(section: &mut Section<'_, '_, '_>, key: &'static str) -> Option<PathBuf> {
    line(section, key).map(PathBuf::from)
}
