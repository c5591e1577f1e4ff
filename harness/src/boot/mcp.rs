//! The MCP configuration of one claude process: our bridge, with the token that ties it to the turn.
//!
//! Invariant: the token is in no other place than this file (mode 0600) and the bridge's environment.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// Longest tool call, in milliseconds: a `recv` of 180 s, a broker that restarts meanwhile, and a margin.
pub const TOOL_TIMEOUT_MS: u64 = 300_000;

/// The bridge that claude is to start.
#[derive(Debug)]
pub struct Bridge<'a> {
    /// Its name as an MCP server.
    pub server_name: &'a str,
    /// The program.
    pub program: &'a Path,
    /// The agent's socket.
    pub socket: &'a Path,
    /// What ties it to the turn.
    pub process_token: &'a str,
    /// The agent's tool groups.
    pub tool_groups: &'a [String],
    /// The agent's name.
    pub label: &'a str,
    /// What it logs; empty: as it likes.
    pub log: &'a str,
}

/// The configuration file.
#[must_use]
pub fn text(bridge: &Bridge<'_>) -> String {
    let Bridge { server_name, program, socket, process_token, tool_groups, label, log } = bridge;
    let mut environment = json!({
        hive_proto::SOCKET_ENV: socket.to_string_lossy(),
        "HIVE_PROCESS_TOKEN": process_token,
        "HIVE_TOOL_GROUPS": tool_groups.join(","),
        "HIVE_LABEL": label,
    });
    if !log.is_empty() {
        environment["HIVE_LOG"] = json!(log);
    }
    let server = json!({
        "type": "stdio",
        "command": program.to_string_lossy(),
        "args": [],
        "env": environment,
        "alwaysLoad": true,
        "timeout": TOOL_TIMEOUT_MS,
    });
    let servers = Map::from_iter([((*server_name).to_owned(), server)]);
    format!("{:#}\n", json!({ "mcpServers": Value::Object(servers) }))
}

/// Finds the bridge: the named program, else the one beside us, else the one on PATH.
#[must_use]
pub fn find(named: Option<&Path>, own: Option<&Path>, path: &std::ffi::OsStr) -> Option<PathBuf> {
    if let Some(named) = named.filter(|named| named.components().count() > 1) {
        return std::path::absolute(named).ok().filter(|program| program.is_file());
    }
    let name = named.unwrap_or(Path::new("hive-mcp"));
    let beside = own.and_then(Path::parent).map(|dir| dir.join(name)).filter(|_| named.is_none());
    let on_path = std::env::split_paths(path).map(|dir| dir.join(name));
    beside.into_iter().chain(on_path).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridge_gets_what_it_needs_and_its_tools_are_never_deferred() {
        let text = text(&Bridge {
            server_name: "hub",
            program: Path::new("/bin/hive-mcp"),
            socket: Path::new("/run/hive/hive.sock"),
            process_token: "secret",
            tool_groups: &["messaging".into(), "meta".into()],
            label: "bob",
            log: "",
        });
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            read,
            json!({ "mcpServers": { "hub": {
                "type": "stdio", "command": "/bin/hive-mcp", "args": [], "alwaysLoad": true, "timeout": 300_000,
                "env": { "HIVE_SOCKET": "/run/hive/hive.sock", "HIVE_PROCESS_TOKEN": "secret", "HIVE_TOOL_GROUPS": "messaging,meta", "HIVE_LABEL": "bob" },
            } } })
        );
    }

    #[test]
    fn the_bridge_is_found_beside_us_or_on_the_path() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = dir.path().join("hive-mcp");
        std::fs::write(&program, "").expect("written");
        let none = std::ffi::OsStr::new("");
        assert_eq!(find(None, Some(&dir.path().join("hive")), none), Some(program.clone()));
        assert_eq!(find(None, None, dir.path().as_os_str()), Some(program.clone()));
        assert_eq!(find(Some(&program), None, none), Some(program));
        assert_eq!(find(Some(Path::new("/no/such")), None, dir.path().as_os_str()), None);
        assert_eq!(find(None, None, none), None);
    }
}
