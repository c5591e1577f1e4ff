//! The MCP configuration of one claude process: our bridge, with the process token of the turn; the
//! shell tools; and the agent's own servers.
//!
//! Invariants: only this file (mode 0600) and the bridge's environment contain the token. A server
//! gets no variable of claude's environment besides those listed here. The agent's own servers are
//! not children of an isolated agent's claude: a shell task may have written their code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hive_core::config::{BASH_SERVER, ExtraMcpServer};
use serde_json::{Map, Value, json};

use crate::claude::command_line::EXECUTION_GROUP;
use crate::{confine, scrub};

/// Longest tool call of our own servers, in milliseconds: a `recv` of 180 s, a restart of the
/// broker in the meantime, and a margin.
pub const TOOL_TIMEOUT_MS: u64 = 300_000;
/// Tools of the shell server.
pub const BASH_TOOLS: [&str; 2] = ["run", "status"];

/// The bridge that claude starts.
#[derive(Debug)]
pub struct Bridge<'a> {
    /// Its name as an MCP server.
    pub server_name: &'a str,
    pub program: &'a Path,
    pub socket: &'a Path,
    /// The process token of the turn.
    pub process_token: &'a str,
    pub tool_groups: &'a [String],
    pub label: &'a str,
    /// Its log filter; empty: its default.
    pub log: &'a str,
    /// The harness's socket to which it reports each call.
    pub call_log: &'a Path,
}

/// A server that claude starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    name: String,
    program: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    tools: Vec<String>,
    timeout_ms: u64,
    /// The socket over which the harness is asked to start it in a sandbox.
    confine: Option<PathBuf>,
}

/// Returns all servers of an agent: the bridge; the shell tools, if it has their group; and its
/// own, which are started over the socket `confine` if there is one.
pub fn servers(
    bridge: &Bridge<'_>,
    task_socket: &Path,
    extras: &BTreeMap<String, ExtraMcpServer<String>>,
    confine: Option<&Path>,
) -> Vec<Server> {
    let with_bash = bridge.tool_groups.iter().any(|group| group == EXECUTION_GROUP);
    let ours =
        [Some(Server::bridge(bridge)), with_bash.then(|| Server::shell(bridge, task_socket))];
    ours.into_iter()
        .flatten()
        .chain(extras.iter().map(|(name, extra)| Server::extra(name, extra, confine)))
        .collect()
}

/// Returns the values of `--allowedTools` for the servers.
pub fn allowed_tools(servers: &[Server]) -> Vec<String> {
    servers
        .iter()
        .flat_map(|server| server.tools.iter().map(|tool| format!("mcp__{}__{tool}", server.name)))
        .collect()
}

/// Returns the configuration file; `hive` is the program that scrubs the environment of each
/// server.
pub fn text(servers: &[Server], hive: &Path) -> String {
    format!("{:#}\n", value(servers, hive))
}

/// Returns whether a file contains exactly these servers.
pub fn is_sound(text: &str, servers: &[Server], hive: &Path) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|read| read == value(servers, hive))
}

fn value(servers: &[Server], hive: &Path) -> Value {
    let servers: Map<String, Value> =
        servers.iter().map(|server| (server.name.clone(), server.value(hive))).collect();
    json!({ "mcpServers": servers })
}

impl Server {
    fn bridge(bridge: &Bridge<'_>) -> Self {
        let Bridge {
            server_name,
            program,
            socket,
            process_token,
            tool_groups,
            label,
            log,
            call_log,
        } = bridge;
        let mut env = BTreeMap::from([
            (hive_proto::SOCKET_ENV.to_owned(), socket.to_string_lossy().into_owned()),
            ("HIVE_PROCESS_TOKEN".to_owned(), (*process_token).to_owned()),
            ("HIVE_TOOL_GROUPS".to_owned(), tool_groups.join(",")),
            ("HIVE_LABEL".to_owned(), (*label).to_owned()),
        ]);
        insert_log(&mut env, log, call_log);
        Self {
            name: (*server_name).to_owned(),
            program: program.to_string_lossy().into_owned(),
            args: Vec::new(),
            env,
            tools: vec!["*".to_owned()],
            timeout_ms: TOOL_TIMEOUT_MS,
            confine: None,
        }
    }

    fn shell(bridge: &Bridge<'_>, task_socket: &Path) -> Self {
        let mut env = BTreeMap::from([(
            "HIVE_TASK_SOCKET".to_owned(),
            task_socket.to_string_lossy().into_owned(),
        )]);
        insert_log(&mut env, bridge.log, bridge.call_log);
        Self {
            name: BASH_SERVER.to_owned(),
            program: bridge.program.to_string_lossy().into_owned(),
            args: vec!["bash".to_owned()],
            env,
            tools: BASH_TOOLS.map(str::to_owned).to_vec(),
            timeout_ms: TOOL_TIMEOUT_MS,
            confine: None,
        }
    }

    /// Creates one of the agent's own servers. A tool that never answers must not block the turn:
    /// its call ends with an error, and the turn continues.
    fn extra(name: &str, extra: &ExtraMcpServer<String>, confine: Option<&Path>) -> Self {
        let ExtraMcpServer { command, args, env, allowed_tools, timeout_seconds } = extra.clone();
        let timeout_ms = timeout_seconds.saturating_mul(1000);
        let confine = confine.map(Path::to_path_buf);
        Self {
            name: name.to_owned(),
            program: command,
            args,
            env,
            tools: allowed_tools,
            timeout_ms,
            confine,
        }
    }

    fn value(&self, hive: &Path) -> Value {
        let Self { name: _, program, args, env, tools: _, timeout_ms, confine } = self;
        let hive = hive.to_string_lossy();
        let kept = env.keys().map(String::as_str);
        let args = match confine {
            None => scrub::arguments(kept, program, args),
            Some(socket) => {
                scrub::arguments(kept, &hive, &confine::arguments(socket, program, args))
            }
        };
        json!({
            "type": "stdio",
            "command": hive,
            "args": args,
            "env": env,
            // A deferred tool is offered only after the model has searched for it.
            "alwaysLoad": true,
            "timeout": timeout_ms,
        })
    }
}

fn insert_log(env: &mut BTreeMap<String, String>, log: &str, call_log: &Path) {
    env.insert("HIVE_CALL_LOG".to_owned(), call_log.to_string_lossy().into_owned());
    if !log.is_empty() {
        env.insert("HIVE_LOG".to_owned(), log.to_owned());
    }
}

/// Finds the bridge: the named program, else the one beside us, else the one on PATH.
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

    fn all(groups: &[&str], extras: &BTreeMap<String, ExtraMcpServer<String>>) -> Vec<Server> {
        let tool_groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let bridge = Bridge {
            server_name: "hub",
            program: Path::new("/bin/hive-mcp"),
            socket: Path::new("/run/hive/hive.sock"),
            process_token: "secret",
            tool_groups: &tool_groups,
            label: "bob",
            log: "debug",
            call_log: Path::new("/h/calls.sock"),
        };
        servers(&bridge, Path::new("/h/tasks.sock"), extras, None)
    }

    fn notes() -> BTreeMap<String, ExtraMcpServer<String>> {
        let notes = ExtraMcpServer {
            command: "notes".into(),
            args: vec!["--dir".into(), "n".into()],
            env: BTreeMap::from([("NOTES_KEY".into(), "k".into())]),
            allowed_tools: vec!["read_*".into(), "list".into()],
            timeout_seconds: 7,
        };
        BTreeMap::from([("notes".to_owned(), notes)])
    }

    #[test]
    fn every_server_is_started_through_scrub_and_its_tools_are_never_deferred() {
        let servers = all(&["messaging", "execution"], &notes());
        let text = text(&servers, Path::new("/bin/hive"));
        let read: Value = serde_json::from_str(&text).expect("JSON");
        let wanted = json!({ "mcpServers": {
            "hub": {
                "type": "stdio", "command": "/bin/hive", "alwaysLoad": true, "timeout": 300_000,
                "args": ["scrub", "--keep=HIVE_CALL_LOG", "--keep=HIVE_LABEL", "--keep=HIVE_LOG", "--keep=HIVE_PROCESS_TOKEN", "--keep=HIVE_SOCKET",
                    "--keep=HIVE_TOOL_GROUPS", "--", "/bin/hive-mcp"],
                "env": { "HIVE_SOCKET": "/run/hive/hive.sock", "HIVE_PROCESS_TOKEN": "secret",
                    "HIVE_TOOL_GROUPS": "messaging,execution", "HIVE_LABEL": "bob", "HIVE_LOG": "debug", "HIVE_CALL_LOG": "/h/calls.sock" },
            },
            "bash": {
                "type": "stdio", "command": "/bin/hive", "alwaysLoad": true, "timeout": 300_000,
                "args": ["scrub", "--keep=HIVE_CALL_LOG", "--keep=HIVE_LOG", "--keep=HIVE_TASK_SOCKET", "--", "/bin/hive-mcp", "bash"],
                "env": { "HIVE_TASK_SOCKET": "/h/tasks.sock", "HIVE_LOG": "debug", "HIVE_CALL_LOG": "/h/calls.sock" },
            },
            "notes": {
                "type": "stdio", "command": "/bin/hive", "alwaysLoad": true, "timeout": 7000,
                "args": ["scrub", "--keep=NOTES_KEY", "--", "notes", "--dir", "n"],
                "env": { "NOTES_KEY": "k" },
            },
        } });
        assert_eq!(read, wanted);
        assert_eq!(
            text.matches("secret").count(),
            1,
            "the token is in the bridge's environment alone"
        );
    }

    #[test]
    fn only_the_agents_own_servers_are_started_over_the_socket() {
        let mut servers = all(&["messaging", "execution"], &notes());
        let plain = value(&servers, Path::new("/bin/hive"));
        let own = Server::extra("notes", &notes()["notes"], Some(Path::new("/h/confine.sock")));
        *servers.last_mut().expect("there are some") = own;
        let read = value(&servers, Path::new("/bin/hive"));
        for ours in ["hub", "bash"] {
            assert_eq!(read["mcpServers"][ours], plain["mcpServers"][ours]);
        }
        let arguments =
            "scrub --keep=NOTES_KEY -- /bin/hive confine --socket=/h/confine.sock -- notes --dir n";
        let arguments: Value = arguments.split(' ').collect();
        assert_eq!(
            (&read["mcpServers"]["notes"]["args"], &read["mcpServers"]["notes"]["env"]),
            (&arguments, &json!({"NOTES_KEY": "k"}))
        );
    }

    #[test]
    fn allowed_tools_are_listed_one_by_one() {
        let allowed = allowed_tools(&all(&["execution"], &notes()));
        let wanted =
            "mcp__hub__* mcp__bash__run mcp__bash__status mcp__notes__read_* mcp__notes__list";
        assert_eq!(allowed.join(" "), wanted);
        assert_eq!(allowed_tools(&all(&["meta"], &BTreeMap::new())), ["mcp__hub__*"]);
    }

    #[test]
    fn a_file_with_other_servers_is_not_sound() {
        let servers = all(&["meta"], &notes());
        let hive = Path::new("/bin/hive");
        assert!(is_sound(&text(&servers, hive), &servers, hive));
        for other in
            ["", "{}", &text(&servers[..1], hive), &text(&servers, Path::new("/evil/hive"))]
        {
            assert!(!is_sound(other, &servers, hive), "{other}");
        }
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
