//! Which claude runs, and whether it can be expected to be logged in.
//!
//! Invariant: the claude that runs is printed; a stand-in never runs silently.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hive_core::secret::Secret;

use crate::output::note;
use crate::supervise::UpError;
use crate::supervise::files::display_path;
use crate::supervise::setup::binaries::resolve;
use crate::supervise::setup::plan::Plan;

const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
/// The file of a login, below a home.
const LOGIN_FILE: &str = ".claude/.credentials.json";

#[derive(Debug)]
pub(crate) struct Claude {
    pub(crate) program: PathBuf,
    /// Why the configured one does not run.
    instead: Option<String>,
    login: Login,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Login {
    /// By a key in the environment: every agent has it.
    Key,
    /// By a file in the user's home: the agents have homes of their own.
    UsersFile,
    Absent,
}

/// `--claude`, else the configured one, else the fallback.
pub(crate) fn choose(
    given: Option<&Path>,
    fallback: Option<&Path>,
    plan: &Plan,
) -> Result<Claude, UpError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let login = login(|name| std::env::var_os(name), home.as_deref(), plan);
    let find = |command: &str| {
        resolve(command).ok_or_else(|| UpError::NoClaude { command: command.to_owned() })
    };
    let command = &plan.config.claude.command;
    let (program, instead) = match (given, fallback) {
        (Some(given), _) => (find(&on_path_or_here(given).to_string_lossy())?, None),
        (None, None) => (find(command)?, None),
        (None, Some(fallback)) => match (find(command), login) {
            (Ok(program), Login::Key | Login::UsersFile) => (program, None),
            (found, _) => {
                let why = if found.is_err() {
                    format!("`{command}` is not installed")
                } else {
                    let keys = KEYS.join(", ");
                    format!("`{command}` is not logged in, and none of {keys} is set")
                };
                (find(&on_path_or_here(fallback).to_string_lossy())?, Some(why))
            }
        },
    };
    Ok(Claude { program, instead, login })
}

/// Searches a bare name on PATH, unless the directory has a file of that name.
fn on_path_or_here(path: &Path) -> PathBuf {
    if path.components().count() == 1 && path.exists() {
        Path::new(".").join(path)
    } else {
        path.to_path_buf()
    }
}

fn login(variable: impl Fn(&str) -> Option<OsString>, home: Option<&Path>, plan: &Plan) -> Login {
    let configured = |name: &str| {
        let is_set = |value: &Secret| value.text().is_none_or(|text| !text.is_empty());
        let everyone = plan.config.claude.env.get(name).is_some_and(is_set);
        everyone
            || (!plan.agents.is_empty()
                && plan.agents.iter().all(|agent| agent.config.env.contains_key(name)))
    };
    if KEYS
        .iter()
        .any(|name| variable(name).is_some_and(|value| !value.is_empty()) || configured(name))
    {
        return Login::Key;
    }
    let agents_have_it = !plan.agents.is_empty()
        && plan.agents.iter().all(|agent| agent.home_dir.join(LOGIN_FILE).is_file());
    if agents_have_it {
        return Login::Key;
    }
    if home.is_some_and(|home| home.join(LOGIN_FILE).is_file()) {
        Login::UsersFile
    } else {
        Login::Absent
    }
}

impl Claude {
    pub(crate) fn announce(&self, plan: &Plan) {
        match &self.instead {
            Some(why) => {
                note(&format!("SCRIPTED CLAUDE: {why};"));
                note(&format!(
                    "    agents run {} instead: it follows a script and asks no model.",
                    display_path(&self.program)
                ));
                note(
                    "    For the real one install Claude Code and export a key; `hivectl up --help` explains more.",
                );
            }
            None => note(&format!("claude: {}", self.program.display())),
        }
        if self.instead.is_none() && self.login == Login::UsersFile {
            let Some(agent) =
                plan.agents.iter().find(|agent| !agent.home_dir.join(LOGIN_FILE).is_file())
            else {
                return;
            };
            note(
                "NOT LOGGED IN YET: your login belongs to your home, and each agent has one of its own.",
            );
            note(
                "    Either run `claude setup-token` once, export CLAUDE_CODE_OAUTH_TOKEN and start again,",
            );
            note(&format!(
                "    or log each agent in while the hive runs: hivectl login {}",
                agent.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::setup::plan::planned_in;

    #[test]
    fn a_login_is_a_key_or_a_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = planned_in(dir.path(), "[agents.ada]");
        let none = |_: &str| None;
        assert_eq!(login(none, Some(dir.path()), &plan), Login::Absent);
        assert_eq!(login(|name| (name == KEYS[0]).then(|| "k".into()), None, &plan), Login::Key);
        assert_eq!(login(|name| (name == KEYS[0]).then(OsString::new), None, &plan), Login::Absent);
        for (home, wanted) in [
            (dir.path().to_path_buf(), Login::UsersFile),
            (plan.agents[0].home_dir.clone(), Login::Key),
        ] {
            std::fs::create_dir_all(home.join(".claude")).expect("a directory");
            std::fs::write(home.join(LOGIN_FILE), "{}").expect("a file");
            assert_eq!(login(none, Some(dir.path()), &plan), wanted);
        }
    }

    #[test]
    fn a_configured_key_is_a_login() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = planned_in(dir.path(), "[claude]\nenv = { ANTHROPIC_API_KEY = \"k\" }");
        assert_eq!(login(|_| None, None, &plan), Login::Key);
    }

    #[test]
    fn the_fallback_runs_where_claude_is_missing_and_says_so() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = planned_in(dir.path(), "[claude]\ncommand = \"/no/such/claude\"");
        let chosen = choose(None, Some(Path::new("/bin/sh")), &plan).expect("a claude");
        assert_eq!(chosen.program, Path::new("/bin/sh"));
        assert_eq!(chosen.instead.as_deref(), Some("`/no/such/claude` is not installed"));
        assert!(matches!(choose(None, None, &plan), Err(UpError::NoClaude { .. })));
        assert_eq!(
            choose(Some(Path::new("/bin/sh")), None, &plan).expect("a claude").instead,
            None
        );
    }
}
