//! claude's plugins: claude itself installs them before the first turn.
//!
//! Invariant: no error ends the program; it becomes a sentence for a person. Each step ends within
//! a minute, with all processes that it started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::claude::program::Program;
use crate::cli::ExtraArgs;
use crate::process::child;
use crate::spawn::spawn;
use crate::turn::output::Signal;

/// The marketplace of named plugins, if none is configured.
pub const OFFICIAL_MARKETPLACE: &str = "anthropics/claude-plugins-official";
/// Longest step.
const STEP_MAX: Duration = Duration::from_secs(60);
/// Maximum time for which the pipes may stay open after the end of a step.
const PIPE_PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of each stream that are read for an error.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// Maximum characters of claude's output in an error.
const WORDS_CHARS_MAX: usize = 400;
/// Maximum failures that are reported one by one.
const FAILURES_MAX: usize = 20;

/// The plugins to install.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Marketplaces to add to those that claude knows.
    pub marketplaces: Vec<String>,
    pub plugins: Vec<String>,
    /// Whether the marketplaces are refreshed.
    pub auto_update: bool,
}

/// A list that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{variable} must be a JSON array of words that do not begin with `-`, as [\"formatter@my-marketplace\"]"
)]
pub struct InvalidList {
    variable: &'static str,
}

impl Plan {
    /// Checks the arguments.
    pub fn new(args: &ExtraArgs) -> Result<Self, InvalidList> {
        let plugins = list("HIVE_PLUGINS", &args.plugins)?;
        let marketplaces = match &args.marketplaces {
            Some(text) => list("HIVE_MARKETPLACES", text)?,
            None if plugins.is_empty() => Vec::new(),
            None => vec![OFFICIAL_MARKETPLACE.to_owned()],
        };
        Ok(Self { marketplaces, plugins, auto_update: args.plugins_auto_update })
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.marketplaces.is_empty() && self.plugins.is_empty()
    }

    /// Returns the arguments of each step, in order.
    fn steps(&self) -> Vec<Vec<&str>> {
        let Self { marketplaces, plugins, auto_update } = self;
        let added = marketplaces.iter().map(|source| vec!["plugin", "marketplace", "add", source]);
        let updated =
            (*auto_update && !self.is_empty()).then(|| vec!["plugin", "marketplace", "update"]);
        let installed = plugins.iter().map(|plugin| vec!["plugin", "install", plugin]);
        added.chain(updated).chain(installed).collect()
    }
}

fn list(variable: &'static str, text: &str) -> Result<Vec<String>, InvalidList> {
    let words: Vec<String> = serde_json::from_str(text).map_err(|_| InvalidList { variable })?;
    let is_word = |word: &String| {
        !word.is_empty() && !word.starts_with('-') && !word.contains(char::is_control)
    };
    if words.iter().all(is_word) { Ok(words) } else { Err(InvalidList { variable }) }
}

/// Executes the plan, one step after the other; returns the failures as text.
pub async fn install(
    program: &Program,
    environment: &BTreeMap<OsString, OsString>,
    dir: &Path,
    plan: &Plan,
) -> Vec<String> {
    install_within(program, environment, dir, plan, STEP_MAX).await
}

async fn install_within(
    program: &Program,
    environment: &BTreeMap<OsString, OsString>,
    dir: &Path,
    plan: &Plan,
    step_max: Duration,
) -> Vec<String> {
    let mut failures = Vec::new();
    let mut omitted = 0;
    for step in plan.steps() {
        let mut command = Command::from(program.command());
        // git must not ask at a terminal for a name and password.
        command
            .args(&step)
            .env_clear()
            .envs(environment)
            .env("GIT_TERMINAL_PROMPT", "0")
            .current_dir(dir);
        let Err(why) = run(command, step_max).await else { continue };
        let failure = format!("`claude {}` {why}", step.join(" "));
        tracing::warn!(failure, "a plugin step failed");
        if failures.len() < FAILURES_MAX {
            failures.push(failure);
        } else {
            omitted += 1;
        }
    }
    if omitted > 0 {
        failures.push(format!("{omitted} more steps failed; the harness's log names them"));
    }
    failures
}

/// Runs one step; the error says why it failed.
async fn run(mut command: Command, longest: Duration) -> Result<(), String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let group = child::group(&child);
    let end = || child::send(group, Signal::Kill);
    let output = spawn("plugin output", read_output(child.stdout.take(), child.stderr.take()));
    let status = match tokio::time::timeout(longest, child.wait()).await {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => {
            end();
            return Err(format!("was lost: {error}"));
        }
        Err(_) => {
            end();
            // Waits for its end, so that no zombie stays.
            let _ = child.wait().await;
            output.abort();
            return Err(format!("did not end within {} s", longest.as_secs_f32()));
        }
    };
    // Its leftover processes would hold the pipes open.
    end();
    let handle = output.abort_handle();
    let text = tokio::time::timeout(PIPE_PATIENCE, output).await;
    handle.abort();
    if status.success() {
        return Ok(());
    }
    let text = text.ok().and_then(Result::ok).unwrap_or_default();
    Err(failed(status, &text))
}

fn failed(status: ExitStatus, output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text: String =
        lines.join(" ").chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect();
    let text = if text.is_empty() { "it printed nothing" } else { &text };
    match status.code() {
        Some(code) => format!("failed with exit code {code}: {text}"),
        None => format!("was ended by a signal: {text}"),
    }
}

/// Returns the beginning of its stderr, else of its stdout. The rest is read and discarded, so that
/// no writer blocks on a full pipe.
async fn read_output(
    stdout: Option<impl AsyncRead + Unpin>,
    stderr: Option<impl AsyncRead + Unpin>,
) -> String {
    let (stdout, stderr) = tokio::join!(beginning(stdout), beginning(stderr));
    let text = if stderr.trim_ascii().is_empty() { stdout } else { stderr };
    String::from_utf8_lossy(&text).into_owned()
}

async fn beginning(pipe: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let Some(mut pipe) = pipe else { return Vec::new() };
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => return kept,
            Ok(count) => {
                let room = OUTPUT_BYTES_MAX.saturating_sub(kept.len());
                kept.extend_from_slice(&buffer[..count.min(room)]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
