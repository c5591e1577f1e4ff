//! The settings of a harness that may change while it runs: a file, read again before each turn.
//!
//! `HIVE_SETTINGS` names a JSON object of strings: variables of `hive serve` and their values.
//! `hivectl up` writes it, so that a changed `hive.toml` applies from the next turn on. A variable
//! of the file overrides that of the environment; an option of the command line overrides both.
//! Invariant: invalid settings change nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::cli::{Cli, Command, ServeArgs};
use crate::config::{Config, InvalidConfig};
use crate::isolation::Isolation;

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
    Argument(#[from] clap::Error),
    #[error(transparent)]
    Config(#[from] InvalidConfig),
}

/// The source of the settings.
#[derive(Clone, Debug)]
pub struct Source {
    /// The options of `hive serve` on the command line.
    options: Vec<OsString>,
    file: Option<PathBuf>,
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
        // The program's name and `serve` are added again before the settings.
        Self {
            options: command_line.into_iter().skip(2).collect(),
            file: args.settings.clone(),
            home,
            isolation: None,
        }
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
        if let Some(file) = &self.file {
            line.extend(options(file, &command)?);
        }
        line.extend(self.options.iter().cloned());
        let cli = Cli::from_arg_matches(&command.try_get_matches_from(line)?)?;
        let Command::Serve(args) = cli.command else {
            unreachable!("`serve` is the first word of the line")
        };
        Ok(Config { isolation: self.isolation.clone(), ..Config::new(*args, self.home.clone())? })
    }
}

/// Returns the variables of a file as options of `hive serve`.
fn options(path: &Path, command: &clap::Command) -> Result<Vec<OsString>, InvalidSettings> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| InvalidSettings::Unreadable { path: path.to_path_buf(), source })?;
    let variables: BTreeMap<String, String> = serde_json::from_str(&text)
        .map_err(|source| InvalidSettings::NotAnObject { path: path.to_path_buf(), source })?;
    let serve = command.find_subcommand("serve").expect("`hive` has the command `serve`");
    let option = |(name, value): (String, String)| {
        let known = serve
            .get_arguments()
            .find(|argument| argument.get_env().is_some_and(|env| env == name.as_str()));
        let long = known.and_then(clap::Arg::get_long);
        let long = long.ok_or_else(|| InvalidSettings::Unknown {
            path: path.to_path_buf(),
            name: name.escape_debug().to_string(),
        })?;
        Ok(OsString::from(format!("--{long}={value}")))
    };
    variables.into_iter().map(option).collect()
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
