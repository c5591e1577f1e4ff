//! The calls of systemd, by `systemctl` and `journalctl`.
//!
//! Invariants: an order names one unit of an agent, exactly, behind `--`. Its job is put into
//! systemd's queue and not waited for, so the caller looks at the state of the unit afterwards.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use hive_core::name::AgentName;
use tokio::process::Command;

use crate::supervise::process::child::last_lines;
use crate::supervise::setup::binaries::on_path;
use crate::supervise::units::error::UnitsError;
use crate::supervise::units::state::{self, State};

/// Maximum time of a call. systemctl itself gives up after 25 s.
const CALL_MAX: Duration = Duration::from_secs(40);
/// Maximum time of deleting the directories of an agent.
const CLEAN_MAX: Duration = Duration::from_secs(3600);
/// Most lines of a journal that are last words.
const LAST_LINES: &str = "5";
/// Longest name of a user, in characters.
const USER_CHARS_MAX: usize = 31;

/// The unit of an agent. All characters of a name of an agent stand for themselves in a unit's.
#[derive(Clone, Debug)]
pub(crate) struct Unit(AgentName);

impl Unit {
    pub(crate) fn of(name: &AgentName) -> Self {
        Self(name.clone())
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "hive@{}.service", self.0)
    }
}

/// An order about a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    Start,
    Stop,
    /// To forget that the unit has failed.
    ResetFailed,
    /// To delete the directories of a unit that is inactive.
    Clean,
}

/// The programs of systemd.
#[derive(Clone, Debug)]
pub(crate) struct Systemctl {
    systemctl: PathBuf,
    /// `None`: no crash has last words.
    journalctl: Option<PathBuf>,
}

impl Systemctl {
    pub(crate) fn find() -> Result<Self, UnitsError> {
        let systemctl = on_path("systemctl").ok_or(UnitsError::NoSystemctl)?;
        Ok(Self { systemctl, journalctl: on_path("journalctl") })
    }

    /// Returns the states of the units of agents that systemd has in its memory.
    pub(crate) async fn states(&self) -> Result<BTreeMap<AgentName, State>, String> {
        let args = ["show", "--property", state::PROPERTIES, "--", "hive@*.service"];
        Ok(state::parse(&run(self.call(&args), CALL_MAX).await?))
    }

    /// Gives an order.
    pub(crate) async fn order(&self, verb: Verb, unit: &Unit) -> Result<(), String> {
        let unit = unit.to_string();
        let (words, time): (&[&str], _) = match verb {
            Verb::Start => (&["start", "--no-block"], CALL_MAX),
            Verb::Stop => (&["stop", "--no-block"], CALL_MAX),
            Verb::ResetFailed => (&["reset-failed"], CALL_MAX),
            // This one waits, because nothing is left to look at afterwards.
            Verb::Clean => (&["clean", "--what=state"], CLEAN_MAX),
        };
        let call = self.call(&[words, &["--", &unit]].concat());
        run(call, time).await.map(drop)
    }

    /// Returns why a unit cannot be started, if that is known before.
    pub(crate) async fn check(&self, unit: &Unit) -> Result<(), String> {
        let name = unit.to_string();
        let args = ["show", "--property", "LoadState,User", "--", &name];
        let shown = run(self.call(&args), CALL_MAX).await?;
        let value = |key: &str| shown.lines().find_map(|line| line.strip_prefix(key));
        if value("LoadState=") == Some("masked") {
            return Err(format!(
                "{name} is masked, so the agent is left to another program; if it is to run here, `systemctl unmask {name}`"
            ));
        }
        match value("User=") {
            Some(user) if user.chars().count() > USER_CHARS_MAX => Err(format!(
                "the name of its user, {user}, is longer than the {USER_CHARS_MAX} characters that systemd allows; set another one with \
                 `User=` by `systemctl edit {name}`"
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the last lines that a start of a unit has written, to follow a colon; empty if the
    /// journal cannot be read.
    pub(crate) async fn last_words(&self, unit: &Unit, invocation: Option<&str>) -> String {
        let (Some(journalctl), Some(invocation)) = (&self.journalctl, invocation) else {
            return String::new();
        };
        let mut call = command(journalctl);
        call.args(["--quiet", "--no-pager", "--output=cat", "--lines", LAST_LINES]);
        call.arg(format!("_SYSTEMD_UNIT={unit}"))
            .arg(format!("_SYSTEMD_INVOCATION_ID={invocation}"));
        run(call, CALL_MAX).await.map_or_else(|_| String::new(), |text| last_lines(&text))
    }

    fn call(&self, args: &[&str]) -> Command {
        let mut call = command(&self.systemctl);
        call.args(["--no-pager", "--no-ask-password"]).args(args);
        call
    }
}

fn command(program: &PathBuf) -> Command {
    let mut command = Command::new(program);
    // Its messages are part of sentences, and its output is parsed.
    command.env("LC_ALL", "C.UTF-8").env("SYSTEMD_COLORS", "0").env_remove("SYSTEMD_LOG_LEVEL");
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a program to its end; returns its output, or why there is none.
async fn run(mut command: Command, time: Duration) -> Result<String, String> {
    let words: Vec<_> = {
        let command = command.as_std();
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    };
    let failed = |why: &str| format!("`{}` failed: {why}", words.join(" "));
    let ended = tokio::time::timeout(time, command.output()).await;
    let output = ended
        .map_err(|_| failed(&format!("it did not end within {} s", time.as_secs())))?
        .map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default().trim();
    Err(failed(if said.is_empty() { "it said nothing" } else { said }))
}
