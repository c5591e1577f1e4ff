//! `hive.toml`: one file that describes a hive, read into validated values.
//!
//! What it is not: it opens no file, creates nothing and knows no default directory; it turns text
//! into a [`Config`] or into findings, each with its line, its column and, for a misspelt word, the
//! nearest known one. The daemon and `hivectl config check` read with this same code.
//!
//! Invariant: nothing in the file is ignored. An unknown key is a finding, because a setting that
//! is accepted and does nothing is worse than a refusal.
//!
//! ```text
//! [hive]        name, domain, swarm, isolation
//! [broker]      state_dir, runtime_dir, socket_group, agent_unit, retention_days, backup.<every, keep, dir>,
//!               metrics.<socket and group, or listen>, traces.<otlp, headers>, limits.<any field of limits::Limits>
//! [operator]    pronouns, notify.command or notify.webhook, journal_units
//! [claude]      command, env, context_windows, mcp_server_name, and the settings of SETTINGS
//! [actions.NAME] command, preview, description, agents, args.<argument>, timeout_secs
//! [agents.NAME] parent, role, model, tool_groups, allowed_recipients, capabilities, grants, uids, users, unit, state_dir, home_dir, env,
//!               kick_on_start, on_demand, heartbeat.<every, between, zone>, available_models, plugins, marketplaces, isolation, readable, writable, devices, user_namespaces,
//!               the settings of SETTINGS,
//!               extra_mcp_servers.KEY.<command, args, env, allowed_tools, timeout_seconds>,
//!               limits.<sends_per_minute_max, sender_stored_bytes_max, questions_open_max, reminders_pending_max, children_max,
//!               schedules_max>
//! ```
//!
//! A value of `env` and of `headers`, and `notify.webhook`, are a string, `{ file = PATH }` or
//! `{ credential = NAME }`.

mod actions;
mod agents;
mod backup;
mod check;
mod environment;
mod error;
mod extra_servers;
mod heartbeat;
mod keys;
mod limits;
mod meanings;
mod metrics;
mod models;
mod notify;
mod sandbox;
mod secret;
mod section;
mod sections;
mod serve;
mod settings;
mod settings_list;
mod shareable;
#[cfg(test)]
mod tests;
mod traces;
mod unit;
mod values;

use toml::de::DeTable;

pub use self::backup::Backup;
pub use self::environment::{OTHER_VARIABLES, OWN_PREFIX};
pub use self::error::{ConfigError, Finding};
pub use self::extra_servers::{
    BASH_SERVER, TOOL_TIMEOUT_SECONDS, TOOL_TIMEOUTS_SECONDS, is_server_name, is_tool_pattern,
};
pub use self::keys::{Key, KeyKind, keys};
pub use self::notify::check_url as check_webhook;
pub use self::settings::{Kind, NEVER, Setting, SettingValue, Settings};
pub use self::settings_list::SETTINGS;
pub use self::shareable::{ShareableKey, ShareableValue, shareable};
pub use self::traces::Traces;
pub use self::values::{
    AGENT_IN_UNIT, AgentConfig, AgentLimits, Broker, Claude, Config, ExtraMcpServer, Hive, Metrics,
    Notify, Operator, SandboxConfig,
};

use self::error::Findings;

/// Reads the text of a `hive.toml`.
///
/// # Errors
///
/// Returns all errors, in the order of the lines. If the text is not TOML, that is the only error.
pub fn parse(text: &str) -> Result<Config, ConfigError> {
    check(text).map(|checked| checked.config)
}

/// A valid file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The values of the file.
    pub config: Config,
    /// Remarks on values that may not mean what their author expects, in the order of the lines.
    pub remarks: Vec<Finding>,
}

/// Reads the text of a `hive.toml` as [`parse`] does, with remarks.
///
/// # Errors
///
/// The same errors as [`parse`].
pub fn check(text: &str) -> Result<Checked, ConfigError> {
    let mut findings = Findings::new(text);
    let (document, broken) = DeTable::parse_recoverable(text);
    for error in &broken {
        // The library spreads some sentences over two lines; a finding has one.
        let sentence = error.message().lines().collect::<Vec<_>>().join(", ");
        findings.add(error.span().unwrap_or(0..0), String::new(), sentence);
    }
    if !broken.is_empty() {
        return Err(findings.into_error());
    }
    let (config, places) = sections::document(document.get_ref(), &mut findings);
    check::tree(&config, &places, &mut findings);
    if findings.is_empty() {
        Ok(Checked { config, remarks: findings.into_remarks() })
    } else {
        Err(findings.into_error())
    }
}
