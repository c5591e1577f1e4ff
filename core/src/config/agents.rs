//! `[agents.NAME]`: the agents of the hive.
//!
//! Invariant: an invalid value is reported and left at its default.

use std::collections::BTreeMap;

use toml::de::DeTable;

use super::environment;
use super::error::Findings;
use super::section::{Section, list};
use super::sections::{Places, bounded, path};
use super::settings;
use super::values::{AgentConfig, Claude};
use crate::action::GRANT_PREFIX;
use crate::agent::{CAPABILITIES, GRANTS, KickOnStart, TOOL_GROUPS, is_grant};
use crate::limits::ROLE_CHARS_MAX;
use crate::message::OPERATOR;
use crate::name::{AgentName, nearest};

/// What is known before the agents are read.
pub(super) struct Known<'a> {
    /// The defaults of their settings, and the name of our MCP server.
    pub(super) claude: &'a Claude,
    /// The names of the actions of the file.
    pub(super) actions: Vec<&'a str>,
}

/// Reads all agents.
pub(super) fn read(
    table: &DeTable<'_>,
    known: &Known<'_>,
    findings: &mut Findings<'_>,
    places: &mut Places,
) -> BTreeMap<AgentName, AgentConfig> {
    let mut agents = BTreeMap::new();
    for (key, value) in table {
        let written = key.get_ref().as_ref();
        let name = match AgentName::parse(written) {
            Ok(name) => name,
            Err(error) => {
                findings.add(
                    key.span(),
                    format!("agents.{}", written.escape_debug()),
                    error.to_string().escape_debug().to_string(),
                );
                continue;
            }
        };
        let Some(table) = value.get_ref().as_table() else {
            let sentence = format!("`{name}` must be a table: write [agents.{name}]");
            findings.add(value.span(), format!("agents.{name}"), sentence);
            continue;
        };
        let agent = agent(&name, table, known, findings, places);
        agents.insert(name, agent);
    }
    agents
}

fn agent(
    name: &AgentName,
    table: &DeTable<'_>,
    known: &Known<'_>,
    findings: &mut Findings<'_>,
    places: &mut Places,
) -> AgentConfig {
    let claude = known.claude;
    let mut section = Section::new(format!("agents.{name}"), table, findings);
    let agent = AgentConfig {
        parent: section.text("parent").and_then(|(parent, span)| match AgentName::parse(&parent) {
            Ok(parent) => {
                places.insert(name.clone(), span);
                Some(parent)
            }
            Err(_) if parent == OPERATOR => {
                section.object(
                    span,
                    "parent",
                    "a root has no `parent`: leave the key out".to_owned(),
                    None,
                );
                None
            }
            Err(error) => {
                section.object(span, "parent", error.to_string().escape_debug().to_string(), None);
                None
            }
        }),
        role: bounded(&mut section, "role", ROLE_CHARS_MAX),
        model: super::models::chosen(&mut section),
        tool_groups: word_list(&mut section, "tool_groups", "tool group", &TOOL_GROUPS),
        allowed_recipients: allowed_recipients(&mut section),
        capabilities: word_list(&mut section, "capabilities", "capability", &CAPABILITIES),
        grants: grants(&mut section, &known.actions),
        limits: section
            .table("limits")
            .map(|limits| {
                super::limits::of_agent(format!("agents.{name}.limits"), limits, section.findings())
            })
            .unwrap_or_default(),
        uids: section
            .numbers("uids", 0..=u64::from(u32::MAX) - 1)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|uid| u32::try_from(uid).ok())
            .collect(),
        users: users(&mut section),
        unit: super::unit::of_agent(&mut section),
        state_dir: path(&mut section, "state_dir"),
        home_dir: path(&mut section, "home_dir"),
        env: environment::of_claude(&mut section),
        settings: settings::of_agent(&mut section, &claude.settings),
        kick_on_start: kick_on_start(&mut section),
        on_demand: section.flag("on_demand").unwrap_or_default(),
        heartbeat: super::heartbeat::read(&mut section),
        available_models: super::models::available(&mut section),
        extra_mcp_servers: super::extra_servers::read(&mut section, &claude.mcp_server_name),
        plugins: arguments(&mut section, "plugins").unwrap_or_default(),
        marketplaces: arguments(&mut section, "marketplaces"),
        sandbox: super::sandbox::read(&mut section),
    };
    section.finish();
    agent
}

fn kick_on_start(section: &mut Section<'_, '_, '_>) -> KickOnStart {
    let key = "kick_on_start";
    let Some((word, span)) = section.text(key) else { return KickOnStart::default() };
    let known = KickOnStart::ALL.into_iter().find(|known| known.word() == word);
    known.unwrap_or_else(|| {
        let near = nearest(&word, KickOnStart::ALL.map(KickOnStart::word)).first().copied();
        let sentence =
            "`kick_on_start` must be \"interrupted\", \"always\" or \"never\"".to_owned();
        section.object(span, key, sentence, near);
        KickOnStart::default()
    })
}

/// Reads names of users. Whether they exist is known only where the broker runs.
fn users(section: &mut Section<'_, '_, '_>) -> Vec<String> {
    let key = "users";
    let mut users = Vec::new();
    for (user, span) in section.texts(key).unwrap_or_default() {
        let shown = user.escape_debug();
        if !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_digit()) {
            let sentence = format!("`{shown}` is no name of a user; write numbers in `uids`");
            section.object(span, key, sentence, None);
        } else if user.is_empty() || user.contains(|c: char| ":/, ".contains(c) || c.is_control()) {
            section.object(span, key, format!("`{shown}` is no name of a user"), None);
        } else {
            users.push(user);
        }
    }
    users
}

/// Reads a list of words, each of which must be known.
fn word_list(
    section: &mut Section<'_, '_, '_>,
    key: &'static str,
    noun: &str,
    known: &[&'static str],
) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for (word, span) in section.texts(key)? {
        if known.contains(&word.as_str()) {
            words.push(word);
            continue;
        }
        let near = nearest(&word, known.iter().copied()).first().copied();
        let mut sentence = format!("unknown {noun} `{}`", word.escape_debug());
        if near.is_none() {
            let be = if known.len() == 1 { "is" } else { "are" };
            sentence.push_str(&format!("; known {be} {}", list(known.iter().copied())));
        }
        section.object(span, key, sentence, near);
    }
    Some(words)
}

/// Reads grants: known words, and those of actions.
fn grants(section: &mut Section<'_, '_, '_>, actions: &[&str]) -> Option<Vec<String>> {
    let key = "grants";
    let mut grants = Vec::new();
    for (word, span) in section.texts(key)? {
        let action = word.strip_prefix(GRANT_PREFIX).filter(|_| is_grant(&word));
        match action {
            Some(action) if !actions.contains(&action) => {
                let near = nearest(action, actions.iter().copied()).first().copied();
                let sentence = format!("there is no action `{action}` in the file");
                section.object(span, key, sentence, near);
                continue;
            }
            _ if is_grant(&word) => {
                grants.push(word);
                continue;
            }
            _ => {}
        }
        let near = nearest(&word, GRANTS).first().copied();
        let mut sentence = format!("unknown grant `{}`", word.escape_debug());
        if near.is_none() {
            let of_an_action = format!("{GRANT_PREFIX}NAME");
            let known = list(GRANTS.into_iter().chain([of_an_action.as_str()]));
            sentence.push_str(&format!("; known are {known}"));
        }
        section.object(span, key, sentence, near);
    }
    Some(grants)
}

fn allowed_recipients(section: &mut Section<'_, '_, '_>) -> Option<Vec<String>> {
    let span = section.value("allowed_recipients")?.span();
    let mut recipients = Vec::new();
    let texts = section.texts("allowed_recipients")?;
    if texts.is_empty() {
        // The meaning is the same as on the wire. The author of `[]` may mean the opposite.
        let sentence = "`allowed_recipients = []` allows everyone, as if the key were not there; to restrict the agent, name recipients";
        section.remark(span, "allowed_recipients", sentence.to_owned());
        return None;
    }
    for (recipient, span) in texts {
        match AgentName::parse(&recipient) {
            Err(error) if recipient != OPERATOR => {
                let sentence = format!(
                    "{}; write an agent's name or `{OPERATOR}`",
                    error.to_string().escape_debug()
                );
                section.object(span, "allowed_recipients", sentence, None);
            }
            Ok(_) | Err(_) => recipients.push(recipient),
        }
    }
    Some(recipients)
}

/// Reads words that become arguments of claude: plugins and their marketplaces.
fn arguments(section: &mut Section<'_, '_, '_>, key: &'static str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for (word, span) in section.texts(key)? {
        // A word that begins with `-` would be an option of claude.
        if word.is_empty() || word.starts_with('-') || word.chars().any(char::is_control) {
            let sentence =
                format!("`{key}` must be words of one line each that do not begin with `-`");
            section.object(span, key, sentence, None);
        } else {
            words.push(word);
        }
    }
    Some(words)
}
