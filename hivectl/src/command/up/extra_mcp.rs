//! The file that tells a harness of its agent's own MCP servers.
//!
//! It may hold keys, so it lies beside the agent's socket: under bubblewrap no other agent sees that directory, and nobody can put a link in
//! the directory's place. Invariant: only its owner can read it, no link is followed, and it is not there where the agent has no such servers.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hive_core::config::ExtraMcpServer;
use serde_json::{Map, Value, json};

use super::UpError;
use super::plan::AgentPlan;

/// Writes the file anew; where it is, if there has to be one.
pub(super) fn write(agent: &AgentPlan) -> Result<Option<PathBuf>, UpError> {
    let path = agent.socket_dir.join("extra-mcp.json");
    let failed = |source| UpError::ExtraMcp { path: path.clone(), source };
    let servers = &agent.config.extra_mcp_servers;
    if servers.is_empty() {
        remove(&path).map_err(failed)?;
        return Ok(None);
    }
    let file: Map<String, Value> = servers.iter().map(|(name, server)| (name.clone(), value(server))).collect();
    put(&path, &format!("{:#}\n", Value::Object(file))).map_err(failed)?;
    Ok(Some(path))
}

fn value(server: &ExtraMcpServer) -> Value {
    let ExtraMcpServer { command, args, env, allowed_tools, timeout_seconds } = server;
    json!({ "command": command, "args": args, "env": env, "allowedTools": allowed_tools, "timeoutSeconds": timeout_seconds })
}

/// Beside it first, then in its place: a harness that starts meanwhile sees the old or the new one.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("json.new");
    // What an earlier run left there may be anything.
    remove(&beside)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&beside, path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::command::up::plan::Plan;

    fn agent(dir: &Path, text: &str) -> AgentPlan {
        let file = dir.join("hive.toml");
        fs::write(&file, text).expect("a file");
        Plan::make(&file, &dir.join("h")).expect("a plan").agents.remove(0)
    }

    const NOTES: &str = "[agents.ada.extra_mcp_servers.notes]\ncommand = \"bin/notes\"\nargs = [\"-v\"]\nenv = { KEY = \"k\" }\n\
                         [agents.ada.extra_mcp_servers.clock]\ncommand = \"clock\"\nallowed_tools = [\"now\"]\ntimeout_seconds = 5\n";

    #[test]
    fn the_file_is_private_and_says_what_the_configuration_says() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        let path = write(&agent(&root, NOTES)).expect("written").expect("a file");
        assert!(path.starts_with(root.join("h/run/agents/ada")));
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let read: Value = serde_json::from_str(&fs::read_to_string(&path).expect("text")).expect("JSON");
        let notes = root.join("bin/notes");
        let wanted = json!({
            "notes": { "command": notes, "args": ["-v"], "env": { "KEY": "k" }, "allowedTools": ["*"], "timeoutSeconds": 60 },
            "clock": { "command": "clock", "args": [], "env": {}, "allowedTools": ["now"], "timeoutSeconds": 5 },
        });
        assert_eq!(read, wanted);
    }

    #[test]
    fn it_goes_with_the_last_server() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = write(&agent(dir.path(), NOTES)).expect("written").expect("a file");
        assert_eq!(write(&agent(dir.path(), "[agents.ada]")).expect("removed"), None);
        assert!(!path.exists());
        assert_eq!(write(&agent(dir.path(), "[agents.ada]")).expect("nothing to remove"), None);
    }

    #[test]
    fn links_in_its_place_are_replaced_and_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let ada = agent(dir.path(), NOTES);
        let target = dir.path().join("target");
        fs::write(&target, "mine").expect("a file");
        for name in ["extra-mcp.json", "extra-mcp.json.new"] {
            symlink(&target, ada.socket_dir.join(name)).expect("a link");
        }
        let path = write(&ada).expect("written").expect("a file");
        assert!(fs::symlink_metadata(path).expect("there").is_file());
        assert_eq!(fs::read_to_string(target).expect("untouched"), "mine");
    }
}
