//! The environment of the children: what they need, and nothing else of the caller's.
//!
//! Invariant: an agent's environment is made from an allow-list; a secret in the operator's shell that claude does not need never reaches it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::binaries::Binaries;
use super::plan::{AgentPlan, Plan};

/// An environment.
pub(super) type Env = BTreeMap<OsString, OsString>;

/// What a program needs to run at all, to speak the user's language, and to reach the network.
const PASSED: [&str; 22] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "RUST_LOG",
    "RUST_BACKTRACE",
];
/// What claude's API needs, what the harness is tuned by, the words of the locale.
const PASSED_PREFIXES: [&str; 4] = ["ANTHROPIC_", "CLAUDE_", "HIVE_", "LC_"];
/// What the broker gets besides, for the command of `operator.notify`: a home, and the way to the operator's desktop.
const PASSED_TO_BROKER: [&str; 5] = ["HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"];
/// What belongs to the caller's own claude or hive, and would mislead another.
const DROPPED: [&str; 16] = [
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SESSION_ID",
    "HIVE_SOCKET",
    "HIVE_RUNTIME_DIR",
    "HIVE_PROCESS_TOKEN",
    "HIVE_TOOL_GROUPS",
    "HIVE_RUN_DIR",
    "HIVE_CLAUDE",
    "HIVE_CLAUDE_ENV",
    "HIVE_LABEL",
    "HIVE_EXTRA_MCP",
    "HIVE_PLUGINS",
    "HIVE_MARKETPLACES",
    "HIVE_TASK_SOCKET",
];

/// The caller's environment.
pub(super) fn of_caller() -> Env {
    std::env::vars_os().collect()
}

fn scrubbed(caller: &Env) -> Env {
    let passes = |name: &OsStr| {
        let named = PASSED.iter().any(|passed| name == *passed);
        let prefixed = PASSED_PREFIXES.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()));
        (named || prefixed) && !DROPPED.iter().any(|dropped| name == *dropped)
    };
    caller.iter().filter(|(name, _)| passes(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The environment of the broker: claude's keys are none of its business.
pub(super) fn for_broker(caller: &Env) -> Env {
    let mut env = scrubbed(caller);
    env.retain(|name, _| !name.as_bytes().starts_with(b"ANTHROPIC_") && !name.as_bytes().starts_with(b"CLAUDE_"));
    let besides = caller.iter().filter(|(name, _)| PASSED_TO_BROKER.iter().any(|passed| name == passed));
    env.extend(besides.map(|(name, value)| (name.clone(), value.clone())));
    env
}

/// The environment of an agent's harness; `extra_mcp` is the file of its own MCP servers.
pub(super) fn for_agent(
    caller: &Env,
    plan: &Plan,
    agent: &AgentPlan,
    claude: &Path,
    binaries: &Binaries,
    extra_mcp: Option<&Path>,
) -> Env {
    let claude_env: BTreeMap<&String, &String> = plan.config.claude.env.iter().chain(&agent.config.env).collect();
    let mut env = scrubbed(caller);
    env.extend(claude_env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
    let json = serde_json::to_string(&claude_env).expect("strings are JSON");
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
    set("HIVE_MCP_SERVER_NAME", plan.config.claude.mcp_server_name.as_ref());
    set("HIVE_CLAUDE_ENV", json.as_ref());
    for (variable, value) in plan.config.harness_variables(&agent.config) {
        set(variable, value.as_ref());
    }
    if let Some(file) = extra_mcp {
        set("HIVE_EXTRA_MCP", file.as_os_str());
    }
    let list = |words: &Vec<String>| serde_json::to_string(words).expect("strings are JSON");
    let mut set_if = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            env.insert(name.into(), value.into());
        }
    };
    set_if("HIVE_DEFAULT_MODEL", agent.config.first_model().map(str::to_owned));
    set_if("HIVE_PLUGINS", (!agent.config.plugins.is_empty()).then(|| list(&agent.config.plugins)));
    set_if("HIVE_MARKETPLACES", agent.config.marketplaces.as_ref().map(list));
    set_if("HIVE_OPERATOR_PRONOUNS", plan.config.operator.pronouns.clone());
    let windows = &plan.config.claude.context_windows;
    set_if("HIVE_CONTEXT_WINDOWS", (!windows.is_empty()).then(|| serde_json::to_string(windows).expect("numbers are JSON")));
    env
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let names: Vec<String> = scrubbed(&caller).into_keys().map(|name| name.to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["ANTHROPIC_API_KEY", "HIVE_TURN_MAX_SECS", "LC_ALL", "PATH"]);
        let names: Vec<String> = for_broker(&caller).into_keys().map(|name| name.to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["DISPLAY", "HIVE_TURN_MAX_SECS", "HOME", "LC_ALL", "PATH"]);
    }

    #[test]
    fn an_agent_gets_its_own_directories_and_the_configured_environment() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("hive.toml");
        let text = "[operator]\npronouns = \"they/them\"\n[claude]\nenv = { A = \"1\", B = \"1\" }\nmax_retries = 4\n\
                    context_windows = { Opus = 9000 }\n\
                    [agents.ada]\nmodel = \"opus\"\nenv = { B = \"2\" }\ncontext_window_tokens = 5000\n";
        std::fs::write(&file, text).expect("a file");
        let plan = Plan::make(&file, &dir.path().join("h")).expect("a plan");
        let ada = &plan.agents[0];
        let binaries = Binaries { hived: "/b/hived".into(), hive: "/b/hive".into(), hive_mcp: "/b/hive-mcp".into() };
        let env =
            for_agent(&env(&[("HOME", "/root"), ("HIVE_SOCKET", "/other")]), &plan, ada, Path::new("/c/claude"), &binaries, None);
        let get = |name: &str| env.get(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned());
        assert_eq!(get("HOME").as_deref(), ada.home_dir.to_str());
        assert_eq!(get("HIVE_SOCKET").as_deref(), ada.socket().to_str());
        assert_eq!(get("HIVE_CLAUDE").as_deref(), Some("/c/claude"));
        assert_eq!(get("HIVE_MCP").as_deref(), Some("/b/hive-mcp"));
        assert_eq!(get("HIVE_MCP_SERVER_NAME").as_deref(), Some("hive"));
        assert_eq!(get("HIVE_CLAUDE_ENV").as_deref(), Some(r#"{"A":"1","B":"2"}"#));
        assert_eq!((get("A").as_deref(), get("B").as_deref()), (Some("1"), Some("2")));
        assert_eq!(get("HIVE_DEFAULT_MODEL").as_deref(), Some("opus"));
        assert_eq!(get("HIVE_CLAUDE_MAX_RETRIES").as_deref(), Some("4"));
        assert_eq!(get("HIVE_OPERATOR_PRONOUNS").as_deref(), Some("they/them"));
        assert_eq!(get("HIVE_AGENT_CONTEXT_WINDOW_TOKENS").as_deref(), Some("5000"));
        assert_eq!(get("HIVE_CONTEXT_WINDOWS").as_deref(), Some(r#"{"opus":9000}"#));
        for (name, wanted) in [
            ("HIVE_CONTEXT_WINDOW_TOKENS", None),
            ("HIVE_AUTO_COMPACT", None),
            ("HIVE_PROCESS", None),
            ("HIVE_EXTRA_MCP", None),
            ("HIVE_PLUGINS", None),
            ("HIVE_MARKETPLACES", None),
        ] {
            assert_eq!(get(name).as_deref(), wanted, "{name}");
        }
    }

    #[test]
    fn what_the_file_says_of_an_agent_comes_before_the_callers_environment() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("hive.toml");
        let text = "[claude]\nprocess = \"resident\"\n[agents.ada]\nauto_compact = false\navailable_models = [\"opus\", \"haiku\"]\n\
                    plugins = [\"a@b\"]\nmarketplaces = []\nplugins_auto_update = true\ncargo_short_messages = false\n\
                    [agents.bob]\nprocess = \"per-turn\"\n";
        std::fs::write(&file, text).expect("a file");
        let plan = Plan::make(&file, &dir.path().join("h")).expect("a plan");
        let binaries = Binaries { hived: "/b/hived".into(), hive: "/b/hive".into(), hive_mcp: "/b/hive-mcp".into() };
        let caller = env(&[("HIVE_AUTO_COMPACT", "true"), ("HIVE_PLUGINS", "[\"other\"]"), ("HIVE_PROCESS", "resident")]);
        let of = |agent: usize, extra| for_agent(&caller, &plan, &plan.agents[agent], Path::new("/c"), &binaries, extra);
        let (ada, bob) = (of(0, Some(Path::new("/x/extra.json"))), of(1, None));
        for (name, of_ada, of_bob) in [
            ("HIVE_PROCESS", Some("resident"), Some("per-turn")),
            ("HIVE_AUTO_COMPACT", Some("false"), Some("true")),
            ("HIVE_DEFAULT_MODEL", Some("opus"), None),
            ("HIVE_PLUGINS", Some(r#"["a@b"]"#), None),
            ("HIVE_MARKETPLACES", Some("[]"), None),
            ("HIVE_PLUGINS_AUTO_UPDATE", Some("true"), None),
            ("HIVE_CARGO_SHORT_MESSAGES", Some("false"), None),
            ("HIVE_EXTRA_MCP", Some("/x/extra.json"), None),
        ] {
            let get = |env: &Env| env.get(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned());
            assert_eq!((get(&ada).as_deref(), get(&bob).as_deref()), (of_ada, of_bob), "{name}");
        }
    }
}
