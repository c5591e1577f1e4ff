//! A trial of a sandbox: the harness's probes and `claude --version` run inside.
//!
//! Invariant: an agent cannot influence it: it runs with new directories in place of the agent's
//! own.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use hive_core::isolation::{Found, Level};
use tokio::process::Command;

use super::confined::{Confined, Parts};
use super::own::Trial;
use super::remedy;
use crate::output::note;
use crate::output::text::visible_line;
use crate::supervise::process::child::Registry;

/// Maximum time for a trial: claude's first start reads a file of 200 MB.
const TRIAL_MAX: Duration = Duration::from_secs(30);
/// The time after which `up` prints that it waits for a trial.
const SLOW_AFTER: Duration = Duration::from_secs(3);
/// Messages of bubblewrap about a temporary shortage.
const SHORTAGES: [&str; 6] = [
    "No space left on device",
    "Resource temporarily unavailable",
    "Cannot allocate memory",
    "Too many open files",
    "Disk quota exceeded",
    // The kernel ends the largest process where memory is short.
    "(SIGKILL)",
];
/// The exit code of `hive probe` where claude does not run.
const CLAUDE_FAILED: i32 = 3;

/// Why a trial has no result, as a sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// The level does not work on this host, with this claude.
    NotHere(String),
    /// The result is unknown now: the failure may be temporary, and an agent may have caused it.
    NotNow(String),
}

pub(super) async fn run(confined: &Confined, registry: &Registry) -> Result<Found, Failed> {
    let trial = Trial::new(&confined.plan).map_err(|error| Failed::NotNow(error.to_string()))?;
    let Parts { mut args, env, inherited } = confined.parts(&trial.own).map_err(Failed::NotNow)?;
    let claude = confined.claude.canonicalize().unwrap_or_else(|_| confined.claude.clone());
    args.extend(["--chdir".into(), confined.agent.state_dir.clone().into_os_string(), "--".into()]);
    args.extend([
        confined.hive().into_os_string(),
        "probe".into(),
        "--claude".into(),
        claude.into_os_string(),
    ]);
    let mut command = Command::new(&confined.bwrap.program);
    command
        .args(args)
        .env_clear()
        .envs(env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let started = registry.spawn(&mut command, &inherited);
    let (child, _entry) = started
        .map_err(|error| Failed::NotNow(format!("bubblewrap cannot be started: {error}")))?;
    drop(inherited);
    let waits = async {
        tokio::time::sleep(SLOW_AFTER).await;
        note(&format!(
            "claude's first start in a sandbox takes its time; it is waited for {} s at most",
            TRIAL_MAX.as_secs()
        ));
        std::future::pending().await
    };
    let ended = tokio::time::timeout(TRIAL_MAX, child.wait_with_output());
    let ended = tokio::select! {
        ended = ended => ended,
        never = waits => never,
    };
    match ended {
        Err(_) => Err(Failed::NotNow(format!(
            "a trial of the sandbox did not end within {} s",
            TRIAL_MAX.as_secs()
        ))),
        Ok(Err(error)) => Err(Failed::NotNow(format!("a trial of the sandbox was lost: {error}"))),
        Ok(Ok(output)) => read(confined, &output),
    }
}

/// Makes the smallest sandbox that has namespaces.
pub(super) fn minimal(bwrap: &Path) -> Result<(), String> {
    let arguments =
        ["--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--", "true"];
    let tried = std::process::Command::new(bwrap).args(arguments).stdin(Stdio::null()).output();
    match tried {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            Err(not_allowed(&visible_line(String::from_utf8_lossy(&output.stderr).trim())))
        }
        Err(error) => Err(format!("{} cannot be started: {error}", bwrap.display())),
    }
}

fn not_allowed(words: &str) -> String {
    let remedy = remedy::find().map(|remedy| format!("; {remedy}")).unwrap_or_default();
    format!("bubblewrap is not allowed to here: {words}{remedy}")
}

fn read(confined: &Confined, output: &Output) -> Result<Found, Failed> {
    match output.status.code() {
        Some(0) => serde_json::from_slice(&output.stdout).map_err(|error| {
            Failed::NotNow(format!("the probes of the sandbox cannot be read: {error}"))
        }),
        code => {
            let words = visible_line(String::from_utf8_lossy(&output.stderr).trim());
            Err(failed(code, &words, &readable(confined)))
        }
    }
}

/// Returns the meaning of an exit code and the last words; `readable` is a line that shows more of
/// claude.
fn failed(code: Option<i32>, words: &str, readable: &str) -> Failed {
    let is_short = SHORTAGES.into_iter().any(|shortage| words.contains(shortage));
    match code {
        Some(CLAUDE_FAILED) if !is_short => Failed::NotHere(format!("{words}{readable}")),
        Some(_) if words.starts_with("bwrap: ") && !is_short => Failed::NotHere(not_allowed(words)),
        _ => Failed::NotNow(format!("a trial of the sandbox failed: {words}")),
    }
}

/// Returns the line of hive.toml that shows more of claude.
fn readable(confined: &Confined) -> String {
    if confined.level != Level::Sandbox {
        return String::new();
    }
    let claude = confined.claude.canonicalize().unwrap_or_else(|_| confined.claude.clone());
    let dir: OsString = claude.parent().unwrap_or(&claude).as_os_str().to_owned();
    let agent = &confined.agent.name;
    format!(
        "; where it needs more files, add to [agents.{agent}] in hive.toml: readable = [\"{}\"]",
        dir.to_string_lossy()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_host_or_claude_refuses_lowers_a_level() {
        let is_lowered =
            |code: Option<i32>, words: &str| matches!(failed(code, words, ""), Failed::NotHere(_));
        assert!(is_lowered(Some(1), "bwrap: setting up uid map: Permission denied"));
        assert!(is_lowered(Some(CLAUDE_FAILED), "claude does not run: no library"));
        // An agent can cause these.
        assert!(!is_lowered(Some(1), "bwrap: Can't create file at /x: No space left on device"));
        assert!(!is_lowered(
            Some(1),
            "bwrap: Creating new namespace failed: Resource temporarily unavailable"
        ));
        assert!(!is_lowered(Some(CLAUDE_FAILED), "claude does not run: Cannot allocate memory"));
        assert!(!is_lowered(Some(CLAUDE_FAILED), "claude does not run: signal: 9 (SIGKILL)"));
        assert!(!is_lowered(Some(1), "hive probe: the isolation cannot be probed"));
        assert!(!is_lowered(None, ""));
    }
}
