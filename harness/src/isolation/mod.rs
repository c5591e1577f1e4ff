//! The isolation of this agent as its harness finds it: the level at start, the results of the
//! probes, and the consequences for claude and its tasks.
//!
//! `hive serve` and `hive probe` run the probes before the first claude starts, and report
//! [`Found`]. `hivectl up` then accepts the report, or ends the program. A mount of a file that
//! `up` did not check ends it at once. Invariants: a probe changes nothing, and the reach of a
//! fenced program is probed from inside the fence.

pub mod fenced;
pub mod files;
pub mod raw;
pub mod sockets;
pub mod surroundings;

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;
use hive_core::isolation::{
    EXPECTED_ENV, Expected, Finding, Found, Level, REPORT_FD_ENV, Severity,
};

use crate::boot::{self, WriteError};
use crate::claude::program::Program;
use crate::fence;
use crate::task::sandbox::{self, Confinement, Sandbox};

/// The exit code of `hive probe` if claude does not run inside the fence.
pub const CLAUDE_FAILS: u8 = 3;
/// Longest error of claude that is shown, in characters.
const WORDS_CHARS_MAX: usize = 2000;

/// Arguments of `hive probe`.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// First run `PATH --version` inside the fence; exit code 3 if that fails
    #[arg(long, value_name = "PATH")]
    pub claude: Option<PathBuf>,
}

/// The isolation of this agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// The expectations at its start.
    pub expected: Expected,
    pub tasks: Confinement,
}

/// Directories of an agent that its tasks' sandboxes need.
#[derive(Clone, Debug)]
pub struct Dirs {
    pub home: PathBuf,
    pub run: PathBuf,
    pub state: PathBuf,
}

/// Reasons why the probes cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum IsolationError {
    #[error("cannot read {}, which {EXPECTED_ENV} names: {source}; start the agent with `hivectl up`", .path.display())]
    Expected { path: PathBuf, source: io::Error },
    #[error("{EXPECTED_ENV} is not set; `hivectl up` sets it for an isolated agent")]
    NotSet,
    #[error(
        "cannot report over the descriptor `{number}` of {REPORT_FD_ENV}: {source}; start the agent with `hivectl up`"
    )]
    Report { number: String, source: io::Error },
    #[error("{} is not what `hivectl up` checked before it made the sandbox: something below a `writable` was replaced; remove the link there, and start the agent again", .0.display())]
    Replaced(PathBuf),
    #[error("`hivectl up` rejects what this agent can reach, and ends it; read its output")]
    NotAccepted,
    #[error(transparent)]
    OwnProgram(#[from] WriteError),
}

/// The inherited descriptor of the report. Programs that start from now on do not get it.
#[derive(Debug)]
pub struct Report {
    number: String,
    fd: OwnedFd,
}

impl Report {
    /// Takes the descriptor; `None` if there is none. Call it before any other code opens a
    /// descriptor.
    pub fn inherit() -> Result<Option<Self>, IsolationError> {
        let Some(number) = std::env::var_os(REPORT_FD_ENV) else { return Ok(None) };
        let number = number.to_string_lossy().into_owned();
        let parsed =
            number.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error));
        match parsed.and_then(raw::inherited) {
            Ok(fd) => Ok(Some(Self { number, fd })),
            Err(source) => Err(IsolationError::Report { number, source }),
        }
    }

    /// Writes the findings as one line, and waits until they are accepted. Claude must not run if
    /// the configuration states a level that is not reached.
    pub fn send(self, found: &Found) -> Result<(), IsolationError> {
        let Self { number, fd } = self;
        let mut stream = UnixStream::from(fd);
        let sent = line(found)
            .and_then(|line| stream.write_all(line.as_bytes()))
            .and_then(|()| stream.shutdown(Shutdown::Write));
        sent.map_err(|source| IsolationError::Report { number, source })?;
        stream.read_exact(&mut [0]).map_err(|_| IsolationError::NotAccepted)
    }
}

fn line(found: &Found) -> io::Result<String> {
    Ok(format!("{}\n", serde_json::to_string(found)?))
}

/// Reads the expectations of this harness; `None` if it is not isolated.
pub fn expected() -> Result<Option<Expected>, IsolationError> {
    let Some(path) = std::env::var_os(EXPECTED_ENV).map(PathBuf::from) else { return Ok(None) };
    let read = std::fs::read(&path).and_then(|text| Ok(serde_json::from_slice(&text)?));
    read.map(Some).map_err(|source| IsolationError::Expected { path, source })
}

/// Runs all probes. Call it before any code opens a descriptor; that of the report is not a
/// finding.
pub fn probe(
    expected: Expected,
    dirs: Dirs,
    report: Option<&Report>,
) -> Result<(Isolation, Found), IsolationError> {
    let Dirs { home, run, state } = dirs;
    // This comes before any descriptor is opened.
    let mut findings = surroundings::descriptors(report.map(|report| &report.fd));
    if let Some(path) = files::replaced(&expected.mounted) {
        return Err(IsolationError::Replaced(path.to_path_buf()));
    }
    findings.extend(surroundings::processes());
    findings.extend(files::hidden(&expected.hidden));
    match expected.level {
        Level::Sandbox => {
            findings.extend(files::read_only(&expected.read_only));
            findings.extend(surroundings::devices(&expected.devices));
            findings.extend(sockets::session_sockets());
        }
        Level::SharedFiles | Level::None => {
            findings.push(partly("shares the files of its user".to_owned()));
        }
    }
    findings.extend(fenced::probe(expected.user_namespaces, expected.level == Level::Sandbox));
    let sandbox = Sandbox {
        bwrap: expected.bwrap.clone(),
        hive: boot::own_program()?,
        user_namespaces: expected.user_namespaces,
        can_disable: true,
        home_dir: home,
        run_dir: run,
        state_dir: state,
        private_dir: expected.private.clone(),
    };
    let (tasks, why) = sandbox::choose(sandbox);
    if let Some(why) = why {
        let sentence = format!(
            "shell tasks and the agent's own MCP servers share the processes and the home of claude, because a sandbox inside this one fails: {}",
            one_line(&why)
        );
        findings.push(partly(sentence));
    }
    Ok((Isolation { expected, tasks }, Found { findings }))
}

/// Runs `hive probe`; returns the exit code.
pub fn run(args: &ProbeArgs) -> Result<u8, IsolationError> {
    let report = Report::inherit()?;
    let expected = expected()?.ok_or(IsolationError::NotSet)?;
    if let Some(claude) = &args.claude
        && let Err(why) = version(claude, expected.user_namespaces)
    {
        let _ = writeln!(io::stderr(), "{why}");
        return Ok(CLAUDE_FAILS);
    }
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = path("HIVE_HOME_DIR").or_else(|| path("HOME")).unwrap_or_else(|| "/".into());
    let state = path("HIVE_STATE_DIR").unwrap_or_else(|| home.clone());
    let dirs =
        Dirs { run: path("HIVE_RUN_DIR").unwrap_or_else(|| home.join(".hive")), home, state };
    let (_, found) = probe(expected, dirs, report.as_ref())?;
    match report {
        Some(report) => report.send(&found)?,
        None => {
            let text = line(&found).unwrap_or_default();
            let _ = io::stdout().write_all(text.as_bytes());
        }
    }
    Ok(crate::exit::OK)
}

/// Runs `PATH --version` inside the fence.
fn version(claude: &Path, user_namespaces: bool) -> Result<(), String> {
    let fails = |why: &str| {
        let why: String = why.trim().chars().take(WORDS_CHARS_MAX).collect();
        format!(
            "claude does not run inside the sandbox: `{} --version` failed: {why}",
            claude.display()
        )
    };
    let hive = boot::own_program().map_err(|error| fails(&error.to_string()))?;
    let output = Program::through(hive, fence::arguments(user_namespaces), claude)
        .command()
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| fails(&error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(fails(&if stderr.trim().is_empty() {
        output.status.to_string()
    } else {
        stderr.into_owned()
    }))
}

/// Returns the command that starts claude: inside the fence, if the agent is isolated.
pub fn program(isolation: Option<&Isolation>, claude: PathBuf) -> Result<Program, WriteError> {
    Ok(match isolation {
        None => Program::plain(claude),
        Some(isolation) => Program::through(
            boot::own_program()?,
            fence::arguments(isolation.expected.user_namespaces),
            &claude,
        ),
    })
}

fn partly(sentence: String) -> Finding {
    Finding { severity: Severity::Partly, sentence }
}

fn broken(sentence: String) -> Finding {
    Finding { severity: Severity::Broken, sentence }
}

/// Returns a program's text or a name without characters that would start another line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").escape_debug().take(300).collect()
}
