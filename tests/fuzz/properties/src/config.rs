//! `hive.toml`: text to a configuration, or to findings.
//!
//! What it is not: a daemon; nothing is opened. Invariants: a finding is one line that names a
//! place in the text; a valid configuration that is written out is read as the same again; making
//! its paths absolute twice is the same as once.

use std::path::Path;

use hive_core::agent::{CAPABILITIES, TOOL_GROUPS, is_model_name};
use hive_core::config::{self, Config, ConfigError, is_server_name, is_tool_pattern};
use hive_core::limits::ROLE_CHARS_MAX;
use hive_core::message::OPERATOR;
use hive_core::name::AgentName;

use crate::config_text;
use crate::seen;

/// Most characters of one finding for each character of the text, and beside it.
const WORDS_MAX: (usize, usize) = (16, 1000);

/// Checks the bytes as the text of a file.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = config::parse(&text);
    assert_eq!(read, config::parse(&text), "the same text gives the same");
    match read {
        Ok(config) => valid(config),
        Err(error) => check_findings(&text, &error),
    }
}

fn check_findings(text: &str, error: &ConfigError) {
    assert!(!error.findings.is_empty(), "a refusal has findings");
    let mut before = (0, 0);
    for finding in &error.findings {
        let place = (finding.line, finding.column);
        assert!(place >= before, "findings come in the order of the lines");
        before = place;
        let lines = text.matches('\n').count() + 1;
        assert!(
            (1..=lines).contains(&finding.line) && finding.column >= 1,
            "{finding:?} is no place of the text"
        );
        let shown = finding.to_string();
        assert!(
            !finding.sentence.is_empty() && shown.lines().count() == 1,
            "a finding is one line: {shown:?}"
        );
        assert!(
            !shown.contains(|c: char| c.is_control()),
            "a finding acts on a terminal: {shown:?}"
        );
        let bound = text.chars().count() * WORDS_MAX.0 + WORDS_MAX.1;
        assert!(shown.chars().count() <= bound, "{} characters of finding", shown.chars().count());
    }
}

fn valid(mut config: Config) {
    sound(&config);
    let written = config_text::write(&config);
    match config::parse(&written) {
        Ok(again) => assert_eq!(again, config, "another configuration from:\n{written}"),
        Err(error) => {
            panic!("a valid configuration is refused when it is written out: {error}\n{written}")
        }
    }
    let base = Path::new("/srv/hive");
    config.resolve_paths(base);
    let once = config.clone();
    config.resolve_paths(base);
    assert_eq!(config, once, "a path that is absolute stays");
    let dirs = [&config.broker.state_dir, &config.broker.runtime_dir].into_iter().flatten();
    let dirs = dirs.chain(
        config.agents.values().flat_map(|agent| [&agent.state_dir, &agent.home_dir]).flatten(),
    );
    assert!(dirs.into_iter().all(|dir| dir.is_absolute()));
}

/// Checks that a valid configuration is usable.
fn sound(config: &Config) {
    assert!(is_server_name(&config.claude.mcp_server_name));
    for (name, agent) in &config.agents {
        assert_eq!(AgentName::parse(name.as_str()).as_ref(), Ok(name));
        let mut here = name;
        for _ in 0..=config.agents.len() {
            let Some(parent) = config.agents[here].parent.as_ref() else { break };
            assert!(config.agents.contains_key(parent), "the parent of {here} is not there");
            assert_ne!(parent, name, "{name} is its own ancestor");
            here = parent;
        }
        assert!(
            agent.model.iter().chain(&agent.available_models).all(|model| is_model_name(model)),
            "{agent:?}"
        );
        assert!(
            agent.model.is_none()
                || agent.available_models.is_empty()
                || agent.available_models.contains(agent.model.as_ref().expect("set"))
        );
        assert!(agent.role.as_ref().is_none_or(|role| role.chars().count() <= ROLE_CHARS_MAX));
        assert!(
            agent.tool_groups.iter().flatten().all(|group| TOOL_GROUPS.contains(&group.as_str()))
        );
        assert!(
            agent
                .capabilities
                .iter()
                .flatten()
                .all(|capability| CAPABILITIES.contains(&capability.as_str()))
        );
        let allowed = agent.allowed_recipients.iter().flatten();
        assert!(allowed.clone().all(|name| name == OPERATOR || AgentName::parse(name).is_ok()));
        assert!(agent.allowed_recipients.as_ref().is_none_or(|names| !names.is_empty()));
        for (server, extra) in &agent.extra_mcp_servers {
            assert!(is_server_name(server) && *server != config.claude.mcp_server_name, "{server}");
            assert!(
                !extra.allowed_tools.is_empty()
                    && extra.allowed_tools.iter().all(|pattern| is_tool_pattern(pattern))
            );
            assert!(
                !extra.command.is_empty() && seen::one_line(&extra.command),
                "{:?}",
                extra.command
            );
        }
        let variables = config.claude.env.iter().chain(&agent.env);
        assert!(variables.into_iter().all(|(name, value)| !name.is_empty()
            && !name.contains(['=', '\0'])
            && value.text().is_none_or(|text| !text.contains('\0'))));
    }
}
