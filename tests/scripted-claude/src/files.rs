//! The files that claude is started with, and its errors if one is missing or invalid.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::args::Args;

#[derive(Debug, Default)]
pub struct Files {
    /// The built-in tools offered, without those that the settings deny.
    pub builtin_tools: Vec<String>,
    pub servers: BTreeMap<String, Server>,
}

/// The command that starts an MCP server.
#[derive(Clone, Debug, Deserialize)]
pub struct Server {
    pub command: String,
    /// The program's arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables added to the inherited environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// The reason that claude does not start; the text is what it writes to stderr.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// `--print --output-format stream-json` without `--verbose`.
    #[error("Error: When using --print, --output-format=stream-json requires --verbose")]
    NeedsVerbose,
    /// A file is missing.
    #[error("Error: {what} file not found: {path}")]
    Missing {
        /// `Settings` or `System prompt`.
        what: &'static str,
        path: String,
    },
    /// The MCP configuration is missing.
    #[error("Error: Invalid MCP configuration:\nMCP config file not found: {0}")]
    McpMissing(String),
    /// The MCP configuration is no JSON.
    #[error("Error: Invalid MCP configuration:\nMCP config is not a valid JSON")]
    McpInvalid,
    /// A resident process whose output is no stream.
    #[error("Error: --input-format=stream-json requires output-format=stream-json.")]
    NeedsStream,
    /// Nothing on stdin.
    #[error(
        "Error: Input must be provided either through stdin or as a prompt argument when using --print"
    )]
    NoInput,
    /// Only blanks on stdin.
    #[error("Error: Input contained only whitespace. Provide a prompt.")]
    BlankInput,
}

/// Reads the files that the arguments name.
pub fn read(args: &Args) -> Result<Files, Unusable> {
    if args.output_format.as_deref() == Some("stream-json") && !args.verbose {
        return Err(Unusable::NeedsVerbose);
    }
    if args.is_resident() && args.output_format.as_deref() != Some("stream-json") {
        return Err(Unusable::NeedsStream);
    }
    let settings = match &args.settings {
        // A settings file that is not JSON is silently dropped, including its deny list, as by the
        // real one.
        Some(path) => serde_json::from_str(&text("Settings", path)?).unwrap_or_default(),
        None => Value::Null,
    };
    if let Some(path) = &args.system_prompt_file {
        text("System prompt", path)?;
    }
    let denied: Vec<&str> = strings(&settings["permissions"]["deny"]).collect();
    let asked = args.tools.as_deref().unwrap_or("Bash,Edit,Glob,Grep,Read,Task,Write");
    let offered =
        asked.split(',').map(str::trim).filter(|tool| !tool.is_empty() && !denied.contains(tool));
    let servers = args.mcp_config.as_deref().map(servers).transpose()?.unwrap_or_default();
    Ok(Files { builtin_tools: offered.map(str::to_owned).collect(), servers })
}

fn text(what: &'static str, path: &Path) -> Result<String, Unusable> {
    std::fs::read_to_string(path)
        .map_err(|_| Unusable::Missing { what, path: path.display().to_string() })
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn servers(path: &Path) -> Result<BTreeMap<String, Server>, Unusable> {
    let text = std::fs::read_to_string(path)
        .map_err(|_| Unusable::McpMissing(path.display().to_string()))?;
    let config: Value = serde_json::from_str(&text).map_err(|_| Unusable::McpInvalid)?;
    let entries = config["mcpServers"].as_object().cloned().unwrap_or_default();
    // An entry without a command is silently dropped, as by the real one.
    Ok(entries
        .into_iter()
        .filter_map(|(name, entry)| Some((name, serde_json::from_value(entry).ok()?)))
        .collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn args(line: &str) -> Args {
        Args::try_parse_from(std::iter::once("claude").chain(line.split_whitespace()))
            .expect("it is understood")
    }

    #[test]
    fn missing_files_are_reported_as_by_the_real_one() {
        let told = |line: &str| read(&args(line)).expect_err("a file is missing").to_string();
        assert_eq!(told("--print --settings /no/s"), "Error: Settings file not found: /no/s");
        assert_eq!(
            told("--print --system-prompt-file /no/p"),
            "Error: System prompt file not found: /no/p"
        );
        assert!(told("--print --mcp-config /no/m").ends_with("MCP config file not found: /no/m"));
        assert!(told("--print --output-format stream-json").ends_with("requires --verbose"));
    }

    #[test]
    fn denied_tools_are_not_offered_unless_the_settings_are_broken() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("s.json");
        let line = format!("--print --tools Edit,Bash --settings {}", path.display());
        std::fs::write(&path, r#"{"permissions": {"deny": ["Bash"]}}"#).expect("it is written");
        assert_eq!(read(&args(&line)).expect("usable").builtin_tools, ["Edit"]);
        std::fs::write(&path, "{").expect("it is written");
        assert_eq!(read(&args(&line)).expect("usable").builtin_tools, ["Edit", "Bash"]);
    }
}
