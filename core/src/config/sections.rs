//! The sections of the file, each read into its value.
//!
//! Invariant: a value that is wrong is reported and left at its default, so that one reading finds all mistakes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use toml::de::DeTable;

use super::error::Findings;
use super::section::{Section, list};
use super::values::{AgentConfig, Broker, Claude, Config, Hive, Operator, RETENTION_DAYS_DEFAULT};
use crate::agent::{CAPABILITIES, TOOL_GROUPS, is_model_name};
use crate::limits::{MODEL_CHARS_MAX, ROLE_CHARS_MAX};
use crate::message::OPERATOR;
use crate::name::{AgentName, nearest};

/// Longest name of an MCP server: claude's tool names stay under 64 characters with it.
const MCP_SERVER_NAME_CHARS_MAX: usize = 32;

/// Variables that Hive sets for each agent's processes itself.
const OWN_VARIABLES: [&str; 7] =
    ["HOME", "HIVE_SOCKET", "HIVE_STATE_DIR", "HIVE_HOME_DIR", "HIVE_CLAUDE", "HIVE_CLAUDE_ENV", "HIVE_PROCESS_TOKEN"];

/// Where each agent names its parent.
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
    if let Some(table) = file.table("agents") {
        config.agents = agents(table, file.findings(), &mut places);
    }
    file.finish();
    (config, places)
}

fn hive(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Hive {
    let mut section = Section::new("hive".to_owned(), table, findings);
    let hive =
        Hive { name: line(&mut section, "name"), domain: line(&mut section, "domain"), swarm: line(&mut section, "swarm") };
    section.finish();
    hive
}

fn broker(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Broker {
    let mut section = Section::new("broker".to_owned(), table, findings);
    let broker = Broker {
        state_dir: path(&mut section, "state_dir"),
        runtime_dir: path(&mut section, "runtime_dir"),
        socket_group: line(&mut section, "socket_group"),
        retention_days: section
            .number("retention_days", 1..=36_500)
            .and_then(|days| u32::try_from(days).ok())
            .unwrap_or(RETENTION_DAYS_DEFAULT),
        limits: section
            .table("limits")
            .map(|limits| super::limits::read("broker.limits".to_owned(), limits, section.findings()))
            .unwrap_or_default(),
    };
    section.finish();
    broker
}

fn operator(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Operator {
    let mut section = Section::new("operator".to_owned(), table, findings);
    let operator = Operator { pronouns: line(&mut section, "pronouns"), notify: super::notify::read(&mut section) };
    section.finish();
    operator
}

fn claude(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Claude {
    let mut section = Section::new("claude".to_owned(), table, findings);
    let mut claude = Claude::default();
    if let Some(command) = line(&mut section, "command") {
        claude.command = command;
    }
    claude.env = environment(&mut section);
    claude.max_retries = section.number("max_retries", 0..=100).and_then(|retries| u32::try_from(retries).ok());
    if let Some((process, span)) = section.text("process") {
        match process.as_str() {
            "per-turn" => {}
            "resident" => {
                let sentence = "`process = \"resident\"` is not supported yet by this version; use \"per-turn\"";
                section.object(span, "process", sentence.to_owned(), None);
            }
            _ => section.object(span, "process", "`process` must be \"per-turn\"".to_owned(), None),
        }
    }
    if let Some((name, span)) = section.text("mcp_server_name") {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') && !name.contains("__");
        if plain && name.len() <= MCP_SERVER_NAME_CHARS_MAX {
            claude.mcp_server_name = name;
        } else {
            let sentence = format!(
                "`mcp_server_name` must be letters, digits, `-` and single `_`, at most {MCP_SERVER_NAME_CHARS_MAX} characters"
            );
            section.object(span, "mcp_server_name", sentence, None);
        }
    }
    section.finish();
    claude
}

fn agents(table: &DeTable<'_>, findings: &mut Findings<'_>, places: &mut Places) -> BTreeMap<AgentName, AgentConfig> {
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
        let agent = agent(&name, table, findings, places);
        agents.insert(name, agent);
    }
    agents
}

fn agent(name: &AgentName, table: &DeTable<'_>, findings: &mut Findings<'_>, places: &mut Places) -> AgentConfig {
    let mut section = Section::new(format!("agents.{name}"), table, findings);
    let agent = AgentConfig {
        parent: section.text("parent").and_then(|(parent, span)| match AgentName::parse(&parent) {
            Ok(parent) => {
                places.insert(name.clone(), span);
                Some(parent)
            }
            Err(_) if parent == OPERATOR => {
                section.object(span, "parent", "a root has no `parent`: leave the key out".to_owned(), None);
                None
            }
            Err(error) => {
                section.object(span, "parent", error.to_string().escape_debug().to_string(), None);
                None
            }
        }),
        role: bounded(&mut section, "role", ROLE_CHARS_MAX),
        model: model(&mut section),
        tool_groups: words(&mut section, "tool_groups", "tool group", &TOOL_GROUPS),
        allowed_recipients: allowed_recipients(&mut section),
        capabilities: words(&mut section, "capabilities", "capability", &CAPABILITIES),
        limits: section
            .table("limits")
            .map(|limits| super::limits::of_agent(format!("agents.{name}.limits"), limits, section.findings()))
            .unwrap_or_default(),
        uids: section
            .numbers("uids", 0..=u64::from(u32::MAX) - 1)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|uid| u32::try_from(uid).ok())
            .collect(),
        state_dir: path(&mut section, "state_dir"),
        home_dir: path(&mut section, "home_dir"),
        env: environment(&mut section),
        context_window_tokens: section.number("context_window_tokens", 1_000..=100_000_000),
    };
    for later in [
        "extra_mcp_servers",
        "auto_compact",
        "available_models",
        "plugins",
        "marketplaces",
        "plugins_auto_update",
        "cargo_short_messages",
    ] {
        section.not_yet(later);
    }
    section.finish();
    agent
}

fn model(section: &mut Section<'_, '_, '_>) -> Option<String> {
    let (text, span) = section.text("model")?;
    if !is_model_name(&text) {
        let sentence = format!("`model` has at most {MODEL_CHARS_MAX} printable characters and does not begin with `-`");
        section.object(span, "model", sentence, None);
        return None;
    }
    Some(text)
}

/// A list of words, each of which has to be known.
fn words(section: &mut Section<'_, '_, '_>, key: &'static str, noun: &str, known: &[&'static str]) -> Option<Vec<String>> {
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

fn allowed_recipients(section: &mut Section<'_, '_, '_>) -> Option<Vec<String>> {
    let span = section.value("allowed_recipients")?.span();
    let mut recipients = Vec::new();
    let texts = section.texts("allowed_recipients")?;
    if texts.is_empty() {
        // On the wire an empty list is "everyone"; who writes [] here most likely means the opposite.
        let sentence = "`allowed_recipients` is empty; leave it out to allow everyone, or name whom the agent may send to";
        section.object(span, "allowed_recipients", sentence.to_owned(), None);
    }
    for (recipient, span) in texts {
        match AgentName::parse(&recipient) {
            Err(error) if recipient != OPERATOR => {
                let sentence = format!("{}; write an agent's name or `{OPERATOR}`", error.to_string().escape_debug());
                section.object(span, "allowed_recipients", sentence, None);
            }
            Ok(_) | Err(_) => recipients.push(recipient),
        }
    }
    Some(recipients)
}

/// A text of one line.
fn line(section: &mut Section<'_, '_, '_>, key: &'static str) -> Option<String> {
    let (text, span) = section.text(key)?;
    if text.chars().any(char::is_control) {
        section.object(span, key, format!("`{key}` must be one line without control characters"), None);
        return None;
    }
    Some(text)
}

/// A text of at most so many characters.
fn bounded(section: &mut Section<'_, '_, '_>, key: &'static str, chars_max: usize) -> Option<String> {
    let (text, span) = section.text(key)?;
    let chars = text.chars().count();
    if chars > chars_max {
        section.object(span, key, format!("`{key}` has {chars} characters, more than {chars_max}"), None);
        return None;
    }
    Some(text)
}

fn path(section: &mut Section<'_, '_, '_>, key: &'static str) -> Option<PathBuf> {
    line(section, key).map(PathBuf::from)
}

fn environment(section: &mut Section<'_, '_, '_>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for (name, (value, span)) in section.map("env") {
        let key = format!("env.{}", name.escape_debug());
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let sentence = format!("`{}` is no environment variable", name.escape_debug());
            section.object(span, &key, sentence, None);
        } else if OWN_VARIABLES.contains(&name.as_str()) {
            section.object(span, &key, format!("`{name}` is set by Hive itself; remove it"), None);
        } else {
            env.insert(name, value);
        }
    }
    env
}
