//! The environment of the children: variables that they need, and no others of the caller.
//!
//! Invariant: an agent's environment is made from an allow-list; a secret in the operator's shell
//! that claude does not need never reaches it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use hive_core::secret::CREDENTIALS_ENV;

use crate::supervise::setup::binaries::Binaries;
use crate::supervise::setup::plan::AgentPlan;
use crate::supervise::setup::settings;

pub(crate) type Env = BTreeMap<OsString, OsString>;

/// Variables that any program needs, for the user's language, and for the network.
const PASSED: &str = "\
    PATH LANG LANGUAGE TZ TERM USER LOGNAME SHELL TMPDIR HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY \
    http_proxy https_proxy no_proxy all_proxy SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS \
    RUST_LOG RUST_BACKTRACE";
/// Prefixes of variables for claude's API, for the harness and for the locale.
const PASSED_PREFIXES: [&str; 4] = ["ANTHROPIC_", "CLAUDE_", "HIVE_", "LC_"];
/// Further variables for the broker, for `operator.notify`: a home, the operator's desktop, and the
/// credential that may hold the URL of a webhook.
const PASSED_TO_BROKER: [&str; 6] = [
    "HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    CREDENTIALS_ENV,
];
/// Variables that belong to the caller's own claude or hive, and would mislead another.
const DROPPED: &str = "\
    CLAUDE_CONFIG_DIR CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SSE_PORT CLAUDE_CODE_SESSION_ID \
    HIVE_AGENT HIVE_CONFIG HIVE_SOCKET HIVE_RUNTIME_DIR HIVE_PROCESS_TOKEN HIVE_TOOL_GROUPS HIVE_RUN_DIR HIVE_CLAUDE \
    HIVE_CLAUDE_ENV HIVE_LABEL HIVE_EXTRA_MCP HIVE_PLUGINS HIVE_MARKETPLACES HIVE_TASK_SOCKET \
    HIVE_SETTINGS HIVE_ISOLATION HIVE_ISOLATION_FD HIVE_SUPERVISOR_FD";

pub(crate) fn of_caller() -> Env {
    std::env::vars_os().collect()
}

fn has_word(words: &str, name: &OsStr) -> bool {
    words.split(' ').any(|word| name == word)
}

fn scrubbed(caller: &Env) -> Env {
    let passes = |name: &OsStr| {
        let named = has_word(PASSED, name);
        let prefixed =
            PASSED_PREFIXES.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()));
        (named || prefixed) && !has_word(DROPPED, name)
    };
    caller
        .iter()
        .filter(|(name, _)| passes(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns the environment of the broker: claude's keys are not for it.
pub(crate) fn for_broker(caller: &Env) -> Env {
    let mut env = scrubbed(caller);
    env.retain(|name, _| {
        !name.as_bytes().starts_with(b"ANTHROPIC_") && !name.as_bytes().starts_with(b"CLAUDE_")
    });
    let besides =
        caller.iter().filter(|(name, _)| PASSED_TO_BROKER.iter().any(|passed| name == passed));
    env.extend(besides.map(|(name, value)| (name.clone(), value.clone())));
    env
}

/// Returns the environment of an agent's harness. Settings that may change while it runs are in its
/// settings file.
pub(crate) fn for_agent(
    caller: &Env,
    agent: &AgentPlan,
    claude: &Path,
    binaries: &Binaries,
) -> Env {
    let mut env = scrubbed(caller);
    let mut set = |name: &str, value: &OsStr| {
        env.insert(name.into(), value.to_owned());
    };
    set("HOME", agent.home_dir.as_os_str());
    set("HIVE_LABEL", agent.name.as_str().as_ref());
    set("HIVE_SOCKET", agent.socket().as_os_str());
    set("HIVE_STATE_DIR", agent.state_dir.as_os_str());
    set("HIVE_HOME_DIR", agent.home_dir.as_os_str());
    set("HIVE_CLAUDE", claude.as_os_str());
    set("HIVE_MCP", binaries.hive_mcp.as_os_str());
    set("HIVE_SETTINGS", settings::path(agent).as_os_str());
    env
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::setup::plan::planned;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    #[test]
    fn of_the_callers_environment_only_what_is_needed_passes() {
        let caller = env(&[
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("LC_ALL", "C"),
            ("DISPLAY", ":0"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("SSH_AUTH_SOCK", "s"),
            ("GITHUB_TOKEN", "s"),
            ("ANTHROPIC_API_KEY", "k"),
            ("CLAUDE_CONFIG_DIR", "/home/me/.claude"),
            ("CLAUDECODE", "1"),
            ("HIVE_SOCKET", "/other"),
            ("HIVE_EXTRA_MCP", "/other"),
            ("HIVE_PLUGINS", "[]"),
            ("HIVE_MARKETPLACES", "[]"),
            ("HIVE_TURN_MAX_SECS", "9"),
        ]);
        let names = |env: Env| {
            env.into_keys().map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            names(scrubbed(&caller)),
            ["ANTHROPIC_API_KEY", "HIVE_TURN_MAX_SECS", "LC_ALL", "PATH"]
        );
        assert_eq!(
            names(for_broker(&caller)),
            ["DISPLAY", "HIVE_TURN_MAX_SECS", "HOME", "LC_ALL", "PATH"]
        );
    }

    #[test]
    fn an_agent_gets_its_own_directories_and_its_settings_file() {
        let (_dir, _, plan) = planned("[agents.ada]\n");
        let ada = &plan.agents[0];
        let binaries = Binaries {
            hived: "/b/hived".into(),
            hive: "/b/hive".into(),
            hive_mcp: "/b/hive-mcp".into(),
        };
        let caller =
            env(&[("HOME", "/root"), ("HIVE_SOCKET", "/other"), ("HIVE_SETTINGS", "/other")]);
        let env = for_agent(&caller, ada, Path::new("/c/claude"), &binaries);
        let get = |name: &str| {
            env.get(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(get("HOME").as_deref(), ada.home_dir.to_str());
        assert_eq!(get("HIVE_SOCKET").as_deref(), ada.socket().to_str());
        assert_eq!(get("HIVE_CLAUDE").as_deref(), Some("/c/claude"));
        assert_eq!(get("HIVE_MCP").as_deref(), Some("/b/hive-mcp"));
        assert_eq!(
            get("HIVE_SETTINGS").as_deref(),
            ada.settings_dir().join("settings.json").to_str()
        );
    }
}
