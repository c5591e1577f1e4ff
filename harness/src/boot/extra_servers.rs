//! The file that `HIVE_EXTRA_MCP` names: the agent's MCP servers besides Hive's own.
//!
//! ```json
//! { "KEY": { "command": "notes", "args": ["--dir", "n"], "env": { "NOTES_KEY": "..." }, "allowedTools": ["*"], "timeoutSeconds": 60 } }
//! ```
//!
//! The file may contain keys, so no error shows its text. Invariant: the result passes the same
//! checks as in `hive.toml`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hive_core::config::{
    BASH_SERVER, ExtraMcpServer, TOOL_TIMEOUT_SECONDS, TOOL_TIMEOUTS_SECONDS, is_server_name,
    is_tool_pattern,
};
use hive_core::secret::Secret;
use serde_json::{Map, Value};

use crate::secrets;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidExtraServers {
    #[error("HIVE_EXTRA_MCP names {}, which cannot be read: {source}; create the file or unset the variable", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} (HIVE_EXTRA_MCP) is no JSON object: line {line}, column {column}; correct it there", .path.display())]
    Json { path: PathBuf, line: usize, column: usize },
    #[error("{} (HIVE_EXTRA_MCP), server `{server}`: {problem}", .path.display())]
    Server { path: PathBuf, server: String, problem: String },
}

/// Reads the file; `own` is the name of Hive's own server.
pub fn read(
    path: &Path,
    own: &str,
) -> Result<BTreeMap<String, ExtraMcpServer<String>>, InvalidExtraServers> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| InvalidExtraServers::Unreadable { path: path.to_path_buf(), source })?;
    let file: Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| InvalidExtraServers::Json {
            path: path.to_path_buf(),
            line: error.line(),
            column: error.column(),
        })?;
    let mut servers = BTreeMap::new();
    for (name, value) in file {
        match server(&name, value, own) {
            Ok(server) => servers.insert(name, server),
            Err(problem) => {
                let server = name.escape_debug().to_string();
                return Err(InvalidExtraServers::Server {
                    path: path.to_path_buf(),
                    server,
                    problem,
                });
            }
        };
    }
    Ok(servers)
}

fn server(name: &str, value: Value, own: &str) -> Result<ExtraMcpServer<String>, String> {
    if !is_server_name(name) {
        return Err("its name must be 1 to 32 letters, digits, `-` or single `_`".to_owned());
    }
    if name == own || name == BASH_SERVER {
        return Err("this is the name of a server of Hive's own; choose another".to_owned());
    }
    let Value::Object(mut fields) = value else {
        return Err("it must be an object with a `command`".to_owned());
    };
    let command = match fields.remove("command") {
        Some(Value::String(command)) if !command.is_empty() && !command.contains('\0') => command,
        _ => return Err("`command` must name the program".to_owned()),
    };
    let args = texts(fields.remove("args"))
        .ok_or("`args` must be a list of strings without NUL characters")?;
    let env = environment(fields.remove("env"))
        .ok_or("`env` must be an object of variables, each a string, {\"file\": PATH} or {\"credential\": NAME}")?;
    let env = secrets::values(env)
        .map_err(|(name, error)| format!("variable {}: {error}", name.escape_debug()))?;
    let allowed_tools = match fields.remove("allowedTools") {
        None | Some(Value::Null) => vec!["*".to_owned()],
        given => texts(given)
            .filter(|patterns| !patterns.is_empty() && patterns.iter().all(|pattern| is_tool_pattern(pattern)))
            .ok_or("`allowedTools` must be a list of tools: letters, digits, `_`, `-`, and `*` for any")?,
    };
    let timeout_seconds = match fields.remove("timeoutSeconds") {
        None | Some(Value::Null) => TOOL_TIMEOUT_SECONDS,
        given => given
            .and_then(|given| given.as_u64())
            .filter(|seconds| TOOL_TIMEOUTS_SECONDS.contains(seconds))
            .ok_or("`timeoutSeconds` must be a whole number from 1 to 86400")?,
    };
    match fields.keys().next() {
        Some(unknown) => Err(format!(
            "unknown key `{}`; known are `command`, `args`, `env`, `allowedTools` and `timeoutSeconds`",
            unknown.escape_debug()
        )),
        None => Ok(ExtraMcpServer { command, args, env, allowed_tools, timeout_seconds }),
    }
}

fn texts(value: Option<Value>) -> Option<Vec<String>> {
    match value.filter(|value| !value.is_null()) {
        None => Some(Vec::new()),
        Some(value) => value.as_array()?.iter().map(text).collect(),
    }
}

fn environment(value: Option<Value>) -> Option<BTreeMap<String, Secret>> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Some(BTreeMap::new()) };
    let env: BTreeMap<String, Secret> = serde_json::from_value(value).ok()?;
    let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let is_value = |value: &Secret| value.text().is_none_or(|text| !text.contains('\0'));
    env.iter().all(|(name, value)| is_name(name) && is_value(value)).then_some(env)
}

/// Returns a text that can be part of a command line or an environment.
fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.contains('\0')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(
        text: &str,
    ) -> Result<BTreeMap<String, ExtraMcpServer<String>>, InvalidExtraServers> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("extra.json");
        std::fs::write(&path, text).expect("written");
        read(&path, "hive")
    }

    #[test]
    fn an_absent_key_has_a_default() {
        let servers = read_text(
            r#"{"a":{"command":"x"},"b-1":{"command":"y","args":["z"],"env":{"K":"v"},"allowedTools":["t_*"],"timeoutSeconds":5}}"#,
        );
        let servers = servers.expect("valid");
        assert_eq!(
            (
                servers["a"].args.len(),
                servers["a"].env.len(),
                servers["a"].allowed_tools.as_slice()
            ),
            (0, 0, &["*".to_owned()][..])
        );
        assert_eq!(
            (servers["b-1"].args.as_slice(), servers["b-1"].env["K"].as_str()),
            (&["z".to_owned()][..], "v")
        );
        assert_eq!(servers["b-1"].allowed_tools, ["t_*"]);
        assert_eq!((servers["a"].timeout_seconds, servers["b-1"].timeout_seconds), (60, 5));
    }

    #[test]
    fn errors_name_the_fault_and_show_no_value() {
        let cases = [
            ("[]", "no JSON object"),
            ("{\"a\":", "line 1, column 5"),
            (r#"{"hive":{"command":"x"}}"#, "a server of Hive's own"),
            (r#"{"bash":{"command":"x"}}"#, "a server of Hive's own"),
            (r#"{"a__b":{"command":"x"}}"#, "1 to 32 letters"),
            (r#"{"a":3}"#, "must be an object"),
            (r#"{"a":{}}"#, "`command`"),
            (r#"{"a":{"command":""}}"#, "`command`"),
            (r#"{"a":{"command":"x","args":"s3cret"}}"#, "`args`"),
            (r#"{"a":{"command":"x","args":["s3cret\u0000"]}}"#, "`args`"),
            (r#"{"a":{"command":"x","env":{"A":1}}}"#, "`env`"),
            (r#"{"a":{"command":"x","env":{"A":{"file":"/no/such","x":"s3cret"}}}}"#, "`env`"),
            (
                r#"{"a":{"command":"x","env":{"A":{"file":"/no/such"}}}}"#,
                "variable A: the secret /no/such",
            ),
            (r#"{"a":{"command":"x","env":{"A=B":"s3cret"}}}"#, "`env`"),
            (r#"{"a":{"command":"x","allowedTools":[]}}"#, "`allowedTools`"),
            (r#"{"a":{"command":"x","allowedTools":["t,Bash"]}}"#, "`allowedTools`"),
            (r#"{"a":{"command":"x","timeoutSeconds":0}}"#, "`timeoutSeconds`"),
            (r#"{"a":{"command":"x","timeoutSeconds":"s3cret"}}"#, "`timeoutSeconds`"),
            (
                r#"{"a":{"command":"x","env":{"K":"s3cret"},"allowed_tools":["t"]}}"#,
                "unknown key `allowed_tools`",
            ),
        ];
        for (text, wanted) in cases {
            let error = read_text(text).expect_err(text).to_string();
            assert!(error.contains(wanted) && !error.contains("s3cret"), "{text}: {error}");
        }
        let error = read(Path::new("/no/such"), "hive").expect_err("missing").to_string();
        assert!(error.contains("/no/such") && error.contains("HIVE_EXTRA_MCP"), "{error}");
    }
}
