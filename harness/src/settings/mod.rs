//! The settings of a harness that may change while it runs: a file, read again before each turn.
//!
//! `HIVE_SETTINGS` names a JSON object of strings: variables of `hive serve` and their values.
//! `hivectl up` writes it, so that a changed `hive.toml` applies from the next turn on. Without
//! `hivectl up`, `HIVE_CONFIG` names the `hive.toml` itself. A variable of the file overrides that
//! of the environment; an option of the command line overrides both. Invariant: invalid settings
//! change nothing.

pub mod declared;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{CommandFactory as _, FromArgMatches as _};
use hive_core::name::AgentName;

use crate::cli::{Cli, Command, ServeArgs};
use crate::config::{Config, InvalidConfig};
use crate::isolation::Isolation;
use crate::settings::declared::InvalidFile;

/// Why the settings are not usable.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSettings {
    #[error("the settings file {} cannot be read: {source}; create it or unset HIVE_SETTINGS", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the settings file {} must be a JSON object of strings: {source}", .path.display())]
    NotAnObject { path: PathBuf, source: serde_json::Error },
    #[error("the settings file {} names {name}, which is no variable of `hive serve`", .path.display())]
    Unknown { path: PathBuf, name: String },
    #[error(transparent)]
    Declared(#[from] InvalidFile),
    #[error(transparent)]
    Argument(#[from] clap::Error),
    #[error(transparent)]
    Config(#[from] InvalidConfig),
}

/// The file of the settings.
#[derive(Clone, Debug)]
enum File {
    Settings(PathBuf),
    HiveToml(PathBuf, AgentName),
}

/// The source of the settings.
#[derive(Clone, Debug)]
pub struct Source {
    /// The options of `hive serve` on the command line.
    options: Vec<OsString>,
    file: Option<File>,
    home: Option<PathBuf>,
    /// The isolation of the agent, constant while the program runs.
    isolation: Option<Arc<Isolation>>,
}

impl Source {
    /// Creates a source from the command line of this process, and the settings file that it or the
    /// environment names.
    pub fn new(
        args: &ServeArgs,
        command_line: impl IntoIterator<Item = OsString>,
        home: Option<PathBuf>,
    ) -> Self {
        let file = match (&args.settings, &args.config, &args.agent) {
            (Some(path), ..) => Some(File::Settings(path.clone())),
            (None, Some(path), Some(agent)) => Some(File::HiveToml(path.clone(), agent.clone())),
            (None, ..) => None,
        };
        // The program's name and `serve` are added again before the settings.
        Self { options: command_line.into_iter().skip(2).collect(), file, home, isolation: None }
    }

    /// Applies this isolation to all settings from now on.
    pub fn isolate(&mut self, isolation: Isolation) {
        self.isolation = Some(Arc::new(isolation));
    }

    /// Returns the current settings; `None` without a file, because then nothing can have changed.
    pub fn again(&self) -> Result<Option<Config>, InvalidSettings> {
        if self.file.is_some() { self.load().map(Some) } else { Ok(None) }
    }

    pub fn load(&self) -> Result<Config, InvalidSettings> {
        let command =
            Cli::command().mut_subcommand("serve", |serve| serve.args_override_self(true));
        let mut line: Vec<OsString> = vec!["hive".into(), "serve".into()];
        let mut extra_servers = None;
        match &self.file {
            Some(File::Settings(path)) => {
                line.extend(options(path, variables(path)?.into_iter(), &command)?);
            }
            Some(File::HiveToml(path, agent)) => {
                let declared = declared::read(path, agent)?;
                line.extend(options(path, declared.variables.into_iter(), &command)?);
                extra_servers = Some(declared.extra_servers);
            }
            None => {}
        }
        line.extend(self.options.iter().cloned());
        let cli = Cli::from_arg_matches(&command.try_get_matches_from(line)?)?;
        let Command::Serve(args) = cli.command else {
            unreachable!("`serve` is the first word of the line")
        };
        let config = Config::new(*args, self.home.clone())?;
        let extra_servers = extra_servers.unwrap_or(config.extra_servers);
        Ok(Config { isolation: self.isolation.clone(), extra_servers, ..config })
    }
}

/// Reads the variables of a settings file.
fn variables(path: &Path) -> Result<BTreeMap<String, String>, InvalidSettings> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| InvalidSettings::Unreadable { path: path.to_path_buf(), source })?;
    serde_json::from_str(&text)
        .map_err(|source| InvalidSettings::NotAnObject { path: path.to_path_buf(), source })
}

/// Returns the variables of a file as options of `hive serve`.
fn options(
    path: &Path,
    variables: impl Iterator<Item = (impl AsRef<str>, impl AsRef<OsStr>)>,
    command: &clap::Command,
) -> Result<Vec<OsString>, InvalidSettings> {
    let serve = command.find_subcommand("serve").expect("`hive` has the command `serve`");
    let option = |(name, value): (_, _)| {
        let name: &str = AsRef::as_ref(&name);
        let known = serve
            .get_arguments()
            .find(|argument| argument.get_env().is_some_and(|env| env == name));
        let long = known.and_then(clap::Arg::get_long);
        let long = long.ok_or_else(|| InvalidSettings::Unknown {
            path: path.to_path_buf(),
            name: name.escape_debug().to_string(),
        })?;
        let mut option = OsString::from(format!("--{long}="));
        option.push(AsRef::<OsStr>::as_ref(&value));
        Ok(option)
    };
    variables.map(option).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn source(dir: &Path, settings: &str, more: &[&str]) -> Source {
        let file = dir.join("settings.json");
        std::fs::write(&file, settings).expect("a file");
        let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
        let (dir, file) = (text(dir), text(&file));
        let fixed = ["hive", "serve", "--state-dir", &dir, "--home-dir", &dir, "--settings", &file];
        let line: Vec<OsString> = fixed.iter().chain(more).map(OsString::from).collect();
        let Command::Serve(args) = Cli::try_parse_from(&line).expect("parses").command else {
            unreachable!("serve was asked for")
        };
        Source::new(&args, line, None)
    }

    #[test]
    fn a_changed_file_is_a_changed_setting_and_a_removed_one_is_the_default_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = source(
            dir.path(),
            r#"{"HIVE_TURN_MAX_SECS":"7","HIVE_CLAUDE_ENV":"{\"A\":\"1\"}"}"#,
            &[],
        );
        let first = source.load().expect("valid");
        assert_eq!(first.spans.turn_max, Some(std::time::Duration::from_secs(7)));
        assert_eq!(first.claude_env.get("A").map(String::as_str), Some("1"));
        assert_eq!(source.again().expect("valid"), Some(first));
        std::fs::write(dir.path().join("settings.json"), "{}").expect("a file");
        let second = source.again().expect("valid").expect("a file");
        assert_eq!((second.spans.turn_max, second.claude_env.len()), (None, 0));
    }

    /// Returns the settings of ada by a `hive.toml`.
    fn declared(dir: &Path, text: &str, more: &[&str]) -> Result<Config, InvalidSettings> {
        let file = dir.join("hive.toml");
        std::fs::write(&file, text).expect("a file");
        let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
        let (dir, file) = (text(dir), text(&file));
        let fixed = [
            "hive",
            "serve",
            "--state-dir",
            &dir,
            "--home-dir",
            &dir,
            "--config",
            &file,
            "--agent",
            "ada",
        ];
        let line: Vec<OsString> = fixed.iter().chain(more).map(OsString::from).collect();
        let Command::Serve(args) = Cli::try_parse_from(&line).expect("parses").command else {
            unreachable!("serve was asked for")
        };
        Source::new(&args, line, None).load()
    }

    #[test]
    fn a_hive_toml_has_the_settings_of_its_agent_and_its_secrets_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("key"), "k\n").expect("a file");
        let text = "[claude]\ncommand = \"./claude\"\nmax_retries = 4\nenv = { A = \"1\", K = { file = \"key\" } }\n\
                    [agents.ada]\nenv.A = \"2\"\nturn_max_secs = 7\n\
                    extra_mcp_servers.n = { command = \"n\", env.K.file = \"key\" }\n[agents.bob]\nturn_max_secs = 9\n";
        let config = declared(dir.path(), text, &[]).expect("valid");
        let env: Vec<_> = config.claude_env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(env, [("A", "2"), ("K", "k")]);
        assert_eq!((config.label.as_str(), config.claude_max_retries), ("ada", 4));
        assert_eq!(config.spans.turn_max, Some(std::time::Duration::from_secs(7)));
        let base = dir.path().canonicalize().expect("a path");
        assert_eq!(config.claude, base.join("./claude"));
        assert_eq!(config.extra_servers["n"].env["K"], "k");
        // An agent that the file does not name has the settings of all.
        let other = declared(dir.path(), "[claude]\nmax_retries = 3\n", &["--label", "x"]);
        let other = other.expect("valid");
        assert_eq!((other.claude_max_retries, other.label.as_str()), (3, "x"));
        for (text, wanted) in [
            ("[claude]\nmax_retry = 3\n", "did you mean `max_retries`?"),
            ("[claude]\nenv.K.file = \"none\"\n", "HIVE_CLAUDE_ENV, variable K: the secret"),
            (
                "[agents.ada]\nextra_mcp_servers.n = { command = \"n\", env.K.file = \"none\" }\n",
                "`extra_mcp_servers.n.env.K` of the agent: the secret",
            ),
        ] {
            let error = declared(dir.path(), text, &[]).expect_err(text).to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn an_option_of_the_command_line_comes_before_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = source(dir.path(), r#"{"HIVE_TURN_MAX_SECS":"7"}"#, &["--turn-max-secs", "9"]);
        assert_eq!(
            source.load().expect("valid").spans.turn_max,
            Some(std::time::Duration::from_secs(9))
        );
    }

    #[test]
    fn a_file_that_cannot_be_worked_with_is_an_error_that_names_the_reason() {
        let dir = tempfile::tempdir().expect("a directory");
        for (text, wanted) in [
            ("nonsense", "must be a JSON object of strings"),
            (r#"{"HIVE_NO_SUCH":"1"}"#, "HIVE_NO_SUCH, which is no variable"),
            (r#"{"HIVE_TURN_MAX_SECS":"soon"}"#, "invalid value 'soon'"),
            (r#"{"HIVE_MCP_SERVER_NAME":"a__b"}"#, "HIVE_MCP_SERVER_NAME"),
        ] {
            let error = source(dir.path(), text, &[]).load().expect_err(text).to_string();
            assert!(error.contains(wanted), "{error}");
        }
        std::fs::remove_file(dir.path().join("settings.json")).expect("removed");
        let missing = source(dir.path(), "{}", &[]);
        std::fs::remove_file(dir.path().join("settings.json")).expect("removed");
        assert!(missing.again().expect_err("missing").to_string().contains("cannot be read"));
    }
}
