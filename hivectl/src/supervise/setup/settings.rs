//! The files that a harness reads again before each turn: its settings, and its agent's own MCP
//! servers.
//!
//! They may hold keys, so they are in a directory beside the agent's socket. Under bubblewrap no
//! other agent sees it, its harness cannot write in it, and its shell tasks and its own MCP servers
//! do not see it. It is a directory because a mount over a single file would end with the next
//! replacement of that file. Invariant: only their owner can read them, no link is followed, and
//! each file is replaced as a whole.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hive_core::config::ExtraMcpServer;
use hive_core::isolation::Level;
use serde_json::{Map, Value, json};

use crate::supervise::UpError;
use crate::supervise::files::host_path::HostPath;
use crate::supervise::files::ignore_absent;
use crate::supervise::setup::plan::{AgentPlan, Plan, SETTINGS_DIR};
use crate::supervise::setup::secrets::Secrets;

/// The settings of a harness: variables of `hive serve` and their values.
pub(crate) const SETTINGS_FILE: &str = "settings.json";
const EXTRA_MCP_FILE: &str = "extra-mcp.json";
const PROMPT_FILE: &str = "system-prompt.md";
pub(crate) const PROMPT_VARIABLE: &str = "HIVE_SYSTEM_PROMPT";
const PROMPT_BYTES_MAX: u64 = 1 << 20;

/// Writes both files from the configuration; returns whether anything changed.
pub(crate) fn write(plan: &Plan, agent: &AgentPlan, level: Level) -> Result<bool, UpError> {
    let copies = (level == Level::Sandbox).then(|| agent.settings_dir());
    let mut secrets = Secrets::new(copies, &plan.agents_write);
    let extra_mcp = extra_mcp(agent, &mut secrets)?;
    let claude_env = secrets.kept(plan.config.claude_env(&agent.config))?;
    let path = agent.settings_dir().join(EXTRA_MCP_FILE);
    // The servers first: the settings name their file.
    let servers = put(&path, extra_mcp.as_deref())?;
    let mut variables = plan.config.serve_variables(&agent.config, &claude_env);
    if extra_mcp.is_some() {
        variables.insert("HIVE_EXTRA_MCP", path.display().to_string());
    }
    let prompt =
        if level == Level::Sandbox { copy_prompt(plan, agent, &mut variables)? } else { false };
    let text = format!("{:#}\n", json!(variables));
    let settings = put(&self::path(agent), Some(&text))?;
    let secrets = secrets.finish()?;
    Ok(servers || settings || prompt || secrets)
}

/// Copies the system prompt beside the settings: a sandbox does not show the file, and a mount of
/// it would not follow an editor that replaces it.
fn copy_prompt(
    plan: &Plan,
    agent: &AgentPlan,
    variables: &mut BTreeMap<&'static str, String>,
) -> Result<bool, UpError> {
    let copy = agent.settings_dir().join(PROMPT_FILE);
    let Some(path) = variables.get_mut(PROMPT_VARIABLE) else { return put(&copy, None) };
    let text = HostPath::read_text(Path::new(&*path), &plan.agents_write, PROMPT_BYTES_MAX)
        .map_err(|source| UpError::Prompt { path: path.as_str().into(), source })?;
    *path = copy.display().to_string();
    put(&copy, Some(&text))
}

/// Removes the settings of an agent, which are beside its socket.
pub(crate) fn remove(socket_dir: &Path) -> io::Result<()> {
    ignore_absent(fs::remove_dir_all(socket_dir.join(SETTINGS_DIR)))
}

fn extra_mcp(agent: &AgentPlan, secrets: &mut Secrets<'_>) -> Result<Option<String>, UpError> {
    let servers = &agent.config.extra_mcp_servers;
    let file: Map<String, Value> = servers
        .iter()
        .map(|(name, server)| Ok((name.clone(), value(server, secrets)?)))
        .collect::<Result<_, UpError>>()?;
    Ok((!servers.is_empty()).then(|| format!("{:#}\n", Value::Object(file))))
}

fn value(server: &ExtraMcpServer, secrets: &mut Secrets<'_>) -> Result<Value, UpError> {
    let ExtraMcpServer { command, args, env, allowed_tools, timeout_seconds } = server;
    let env = secrets.kept(env.clone())?;
    Ok(
        json!({ "command": command, "args": args, "env": env, "allowedTools": allowed_tools, "timeoutSeconds": timeout_seconds }),
    )
}

/// Replaces the file with a text, or removes it; returns whether that changed anything. A file with
/// the same text is left alone.
pub(crate) fn put(path: &Path, text: Option<&str>) -> Result<bool, UpError> {
    let failed = |source| UpError::Settings { path: path.to_path_buf(), source };
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let before = if is_file { fs::read_to_string(path).ok() } else { None };
    if before.as_deref() == text && (is_file || !path.exists()) {
        return Ok(false);
    }
    match text {
        Some(text) => replace(path, text).map_err(failed)?,
        None => ignore_absent(fs::remove_file(path)).map_err(failed)?,
    }
    Ok(true)
}

/// Writes a new file and renames it: a harness that reads in between sees the old or the new file.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // An earlier run may have left a file of any type there.
    ignore_absent(fs::remove_file(&beside))?;
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&beside, path)
}

pub(crate) fn path(agent: &AgentPlan) -> PathBuf {
    agent.settings_dir().join(SETTINGS_FILE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::supervise::setup::plan::planned_in;

    fn written(plan: &Plan, agent: usize) -> bool {
        write(plan, &plan.agents[agent], Level::None).expect("written")
    }

    fn read(plan: &Plan, agent: usize, name: &str) -> Value {
        let text =
            fs::read_to_string(plan.agents[agent].settings_dir().join(name)).expect("a file");
        serde_json::from_str(&text).expect("JSON")
    }

    const NOTES: &str = "[agents.ada.extra_mcp_servers.notes]\ncommand = \"bin/notes\"\nargs = [\"-v\"]\nenv = { KEY = \"k\" }\n\
                         [agents.ada.extra_mcp_servers.clock]\ncommand = \"clock\"\nallowed_tools = [\"now\"]\ntimeout_seconds = 5\n";

    #[test]
    fn the_servers_file_is_private_and_says_what_the_configuration_says() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        let plan = planned_in(&root, NOTES);
        assert!(written(&plan, 0));
        let path = root.join("h/run/agents/ada/settings/extra-mcp.json");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let notes = root.join("bin/notes");
        let wanted = json!({
            "notes": { "command": notes, "args": ["-v"], "env": { "KEY": "k" }, "allowedTools": ["*"], "timeoutSeconds": 60 },
            "clock": { "command": "clock", "args": [], "env": {}, "allowedTools": ["now"], "timeoutSeconds": 5 },
        });
        assert_eq!(read(&plan, 0, EXTRA_MCP_FILE), wanted);
        assert_eq!(read(&plan, 0, SETTINGS_FILE)["HIVE_EXTRA_MCP"], json!(path));
    }

    #[test]
    fn settings_are_those_of_the_agent_and_then_those_of_claude() {
        let dir = tempfile::tempdir().expect("a directory");
        let text = "[operator]\npronouns = \"they/them\"\n[claude]\nenv = { A = \"1\", B = \"1\" }\nmax_retries = 4\n\
                    context_windows = { Opus = 9000 }\nprocess = \"resident\"\n\
                    [agents.ada]\nmodel = \"opus\"\nenv = { B = \"2\" }\ncontext_window_tokens = 5000\nauto_compact = false\n\
                    plugins = [\"a@b\"]\nmarketplaces = []\n[agents.bob]\nprocess = \"per-turn\"\n";
        let plan = planned_in(dir.path(), text);
        assert!(written(&plan, 0) && written(&plan, 1));
        let (ada, bob) = (read(&plan, 0, SETTINGS_FILE), read(&plan, 1, SETTINGS_FILE));
        for (name, of_ada, of_bob) in [
            ("HIVE_CLAUDE_ENV", Some(r#"{"A":"1","B":"2"}"#), Some(r#"{"A":"1","B":"1"}"#)),
            ("HIVE_MCP_SERVER_NAME", Some("hive"), Some("hive")),
            ("HIVE_DEFAULT_MODEL", Some("opus"), None),
            ("HIVE_CLAUDE_MAX_RETRIES", Some("4"), Some("4")),
            ("HIVE_OPERATOR_PRONOUNS", Some("they/them"), Some("they/them")),
            ("HIVE_AGENT_CONTEXT_WINDOW_TOKENS", Some("5000"), None),
            ("HIVE_CONTEXT_WINDOWS", Some(r#"{"opus":9000}"#), Some(r#"{"opus":9000}"#)),
            ("HIVE_PROCESS", Some("resident"), Some("per-turn")),
            ("HIVE_AUTO_COMPACT", Some("false"), None),
            ("HIVE_PLUGINS", Some(r#"["a@b"]"#), None),
            ("HIVE_MARKETPLACES", Some("[]"), None),
            ("HIVE_EXTRA_MCP", None, None),
        ] {
            assert_eq!((ada[name].as_str(), bob[name].as_str()), (of_ada, of_bob), "{name}");
        }
    }

    #[test]
    fn only_a_change_is_written_and_the_servers_file_goes_with_the_last_server() {
        let dir = tempfile::tempdir().expect("a directory");
        let with = planned_in(dir.path(), NOTES);
        assert_eq!((written(&with, 0), written(&with, 0)), (true, false));
        let without = planned_in(dir.path(), "[agents.ada]");
        assert_eq!((written(&without, 0), written(&without, 0)), (true, false));
        assert!(!dir.path().join("h/run/agents/ada/settings/extra-mcp.json").exists());
    }

    #[test]
    fn links_in_a_files_place_are_replaced_and_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = planned_in(dir.path(), NOTES);
        let target = dir.path().join("target");
        fs::write(&target, "mine").expect("a file");
        fs::create_dir(plan.agents[0].settings_dir()).expect("a directory");
        for name in ["extra-mcp.json", "extra-mcp.json.new", "settings.json"] {
            symlink(&target, plan.agents[0].settings_dir().join(name)).expect("a link");
        }
        assert!(written(&plan, 0));
        for name in [EXTRA_MCP_FILE, SETTINGS_FILE] {
            assert!(
                fs::symlink_metadata(plan.agents[0].settings_dir().join(name))
                    .expect("there")
                    .is_file()
            );
        }
        assert_eq!(fs::read_to_string(target).expect("untouched"), "mine");
    }
}
