//! The settings that `hive.toml` declares for one agent, read by its harness itself.
//!
//! Without `hivectl up`, for example as a service of systemd, a harness needs no other program for
//! its settings. An agent that the file does not name, because the operator created it at run time,
//! has those of all agents. Invariant: the file means the same as it does to `hivectl up`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hive_core::config::{AgentConfig, ConfigError, ExtraMcpServer};
use hive_core::name::AgentName;
use hive_core::secret::SecretError;

use crate::secrets;

/// The directory of the sockets, if the file names none.
const RUNTIME_DIR: &str = "/run/hive";

/// Why the file is not usable.
#[derive(Debug, thiserror::Error)]
pub enum InvalidFile {
    #[error("the configuration {} cannot be read: {source}; name another with --config", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the configuration {} is not valid:\n{source}\n`hivectl config check` checks it again", .path.display())]
    Invalid { path: PathBuf, source: ConfigError },
    #[error("`{key}` of the agent: {source}")]
    Secret { key: String, source: SecretError },
}

/// What the file declares for a harness.
#[derive(Debug)]
pub struct Declared {
    /// Variables of `hive serve`.
    pub variables: BTreeMap<&'static str, OsString>,
    pub extra_servers: BTreeMap<String, ExtraMcpServer<String>>,
}

/// Reads the file.
pub fn read(path: &Path, agent: &AgentName) -> Result<Declared, InvalidFile> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| InvalidFile::Unreadable { path: path.to_path_buf(), source })?;
    let mut config = hive_core::config::parse(&text)
        .map_err(|source| InvalidFile::Invalid { path: path.to_path_buf(), source })?;
    let base = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    config.resolve_paths(&base.canonicalize().unwrap_or_else(|_| base.to_path_buf()));
    let mut of_agent = config.agents.remove(agent).unwrap_or_default();
    let servers = std::mem::take(&mut of_agent.extra_mcp_servers);
    let extra_servers = servers
        .into_iter()
        .map(|(server, extra)| match with_secrets(extra) {
            Ok(extra) => Ok((server, extra)),
            Err((name, source)) => {
                let key = format!("extra_mcp_servers.{server}.env.{}", name.escape_debug());
                Err(InvalidFile::Secret { key, source })
            }
        })
        .collect::<Result<_, _>>()?;
    let claude_env = config.claude_env(&of_agent);
    let variables = config.serve_variables(&of_agent, &claude_env);
    let mut variables: BTreeMap<_, _> =
        variables.into_iter().map(|(name, value)| (name, OsString::from(value))).collect();
    variables.insert("HIVE_LABEL", agent.as_str().into());
    // A container has the socket elsewhere, and says where.
    if std::env::var_os(hive_proto::SOCKET_ENV).is_none() {
        let runtime_dir = config.broker.runtime_dir.unwrap_or_else(|| RUNTIME_DIR.into());
        let socket = runtime_dir.join("agents").join(agent.as_str()).join("hive.sock");
        variables.insert(hive_proto::SOCKET_ENV, socket.into());
    }
    variables.insert("HIVE_CLAUDE", config.claude.command.into());
    let AgentConfig { state_dir, home_dir, .. } = of_agent;
    for (name, dir) in [("HIVE_STATE_DIR", state_dir), ("HIVE_HOME_DIR", home_dir)] {
        variables.extend(dir.map(|dir| (name, dir.into())));
    }
    Ok(Declared { variables, extra_servers })
}

/// Returns a server with the values of its environment.
fn with_secrets(extra: ExtraMcpServer) -> Result<ExtraMcpServer<String>, (String, SecretError)> {
    let ExtraMcpServer { command, args, env, allowed_tools, timeout_seconds } = extra;
    let env = secrets::values(env)?;
    Ok(ExtraMcpServer { command, args, env, allowed_tools, timeout_seconds })
}
