//! The probe of the claude CLI: does it exist, does it run, is it new enough?
//!
//! Invariant: a missing or broken CLI causes an error for the operator, never a crash.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

use crate::claude::program::Program;
use crate::claude::version::{self, Unsupported};
use crate::fence;

/// Longest time that `claude --version` may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why the CLI cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(
        "claude cannot be started as `{program}`: {source}; install Claude Code, or name it with HIVE_CLAUDE"
    )]
    NotStarted { program: String, source: io::Error },
    #[error(
        "claude cannot be started as `{program}`: {reason}; install Claude Code, or name it with HIVE_CLAUDE"
    )]
    NotFenced { program: String, reason: String },
    #[error("`{program} --version` did not end within {} s", PATIENCE.as_secs())]
    Hangs { program: String },
    #[error("`{program} --version` failed ({status}): {stderr}")]
    Fails { program: String, status: ExitStatus, stderr: String },
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// Asks the CLI for its version.
pub async fn run(
    program: &Program,
    environment: &BTreeMap<OsString, OsString>,
    dir: &Path,
) -> Result<String, ProbeError> {
    let shown = || program.name.display().to_string();
    let output = output(program, &["--version"], environment, dir)
        .await
        .ok_or_else(|| ProbeError::Hangs { program: shown() })?
        .map_err(|source| ProbeError::NotStarted { program: shown(), source })?;
    if !output.status.success() {
        let stderr: String =
            String::from_utf8_lossy(&output.stderr).trim().chars().take(500).collect();
        let is_of_fence = !program.first.is_empty()
            && output.status.code().is_some_and(|code| {
                [fence::NOT_FOUND, fence::NOT_RUNNABLE].map(i32::from).contains(&code)
            });
        if is_of_fence {
            return Err(ProbeError::NotFenced { program: shown(), reason: stderr });
        }
        return Err(ProbeError::Fails { program: shown(), status: output.status, stderr });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let found = version::judge(&text)?;
    Ok(found.map_or_else(|| "of an unknown version".to_owned(), |version| version.to_string()))
}

/// Runs the CLI to its end; `None`: it did not end in time.
async fn output(
    program: &Program,
    arguments: &[&str],
    environment: &BTreeMap<OsString, OsString>,
    dir: &Path,
) -> Option<io::Result<Output>> {
    let mut command = Command::from(program.command());
    command.args(arguments).env_clear().envs(environment).current_dir(dir);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    tokio::time::timeout(PATIENCE, output).await.ok()
}

/// Returns whether the CLI has a login. A CLI without this subcommand counts as logged in: its
/// turns report a missing login.
pub async fn is_logged_in(
    program: &Program,
    environment: &BTreeMap<OsString, OsString>,
    dir: &Path,
) -> bool {
    let output = output(program, &["auth", "status"], environment, dir).await;
    let Some(Ok(output)) = output else { return true };
    let status: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
    status.and_then(|status| status["loggedIn"].as_bool()).unwrap_or(true)
}
