//! `hive fence`: becomes another program that can reach less of the system and of the processes
//! around it.
//!
//! claude and each shell task of an isolated agent are started through this. It is one `execve`:
//! the process keeps its number, its group, its descriptors and its parent. The fence has three
//! parts: limits ([`limits`]), a Landlock domain ([`domain`]) and a filter of system calls
//! ([`system_calls`]). All that the program starts is inside the same fence. Invariant: a part that
//! the kernel supports is applied, or the program is not started.

pub mod domain;
pub mod limits;
pub mod system_calls;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;

use self::domain::Domain;
pub use crate::scrub::{NOT_FOUND, NOT_RUNNABLE};

/// Prefix of requested variables on their way to the fence.
const REQUESTED: &str = "HIVE_REQUESTED_";

/// Arguments of `hive fence`.
#[derive(Debug, Args)]
pub struct FenceArgs {
    /// Let the program create user namespaces
    #[arg(long)]
    pub user_namespaces: bool,
    /// Give the program only the variables whose names begin with this, without it
    #[arg(long, value_name = "PREFIX")]
    pub environment: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// Why the program does not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    #[error(
        "hive fence does not start `{program}`: {source}; check what the host allows, or set `isolation = \"none\"` for this agent"
    )]
    Fence { program: String, source: FenceError },
    #[error(
        "hive fence cannot run `{program}`: {source}; check that the program exists and that this user may run it"
    )]
    Program { program: String, source: io::Error },
}

/// A part of the fence that the kernel supports and that cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    #[error("cannot set the limit of {what}: {source}")]
    Limit { what: &'static str, source: io::Error },
    #[error("cannot apply Landlock: {0}")]
    Domain(#[from] landlock::RulesetError),
    #[error("cannot open the root directory for Landlock: {0}")]
    Root(#[from] landlock::PathFdError),
    #[error("cannot filter system calls: {0}")]
    SystemCalls(#[from] seccompiler::Error),
}

impl NotRun {
    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
            Self::Program { .. } | Self::Fence { .. } => NOT_RUNNABLE,
        }
    }
}

/// Becomes the program, inside the fence. Returns only if that fails.
#[must_use]
pub fn run(args: FenceArgs) -> NotRun {
    let FenceArgs { user_namespaces, environment, command } = args;
    let mut words = command.into_iter();
    let program = words.next().unwrap_or_default();
    let shown = program.to_string_lossy().into_owned();
    if let Err(source) = limits::apply().and_then(|()| apply(user_namespaces).map(drop)) {
        return NotRun::Fence { program: shown, source };
    }
    let mut command = Command::new(&program);
    command.args(words);
    if let Some(prefix) = environment {
        command.env_clear().envs(unwrapped(std::env::vars_os(), &prefix));
    }
    let source = command.exec();
    NotRun::Program { program: shown, source }
}

/// Renames the variables of a requested environment so that neither a loader nor a program before
/// the fence obeys them.
pub fn wrapped(
    environment: Vec<(OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    environment.into_iter().map(|(name, value)| {
        let mut wrapped = OsString::from(REQUESTED);
        wrapped.push(name);
        (wrapped, value)
    })
}

fn unwrapped(
    all: impl Iterator<Item = (OsString, OsString)>,
    prefix: &str,
) -> Vec<(OsString, OsString)> {
    let unwrap = |(name, value): (OsString, OsString)| {
        let name =
            name.as_bytes().strip_prefix(prefix.as_bytes()).filter(|name| !name.is_empty())?;
        Some((OsStr::from_bytes(name).to_owned(), value))
    };
    all.filter_map(unwrap).collect()
}

/// Applies the fence, without its limits, to the calling thread and all that it starts.
pub fn apply(user_namespaces: bool) -> Result<Domain, FenceError> {
    // Landlock first: the filter may refuse its system calls in a later version. Both set
    // no_new_privs before they begin.
    let domain = domain::apply(user_namespaces)?;
    system_calls::apply(user_namespaces)?;
    Ok(domain)
}

/// Returns the arguments with which `hive` becomes a program with a requested environment
/// ([`wrapped`]) inside the fence.
pub fn arguments_for_requested(user_namespaces: bool) -> Vec<OsString> {
    let mut words = vec!["fence".into(), format!("--environment={REQUESTED}").into()];
    words.extend(arguments(user_namespaces).into_iter().skip(1));
    words
}

/// Returns the arguments with which `hive` becomes a program inside the fence; the program and its
/// arguments follow them.
pub fn arguments(user_namespaces: bool) -> Vec<OsString> {
    let lifted = user_namespaces.then_some("--user-namespaces");
    ["fence"].into_iter().chain(lifted).chain(["--"]).map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command as Asked};

    #[test]
    fn the_arguments_are_read_as_they_are_written() {
        for user_namespaces in [false, true] {
            let mut words: Vec<OsString> = vec!["hive".into()];
            words.extend(arguments(user_namespaces));
            words.extend(["claude", "--user-namespaces", "--", ""].map(OsString::from));
            let Asked::Fence(read) = Cli::try_parse_from(words).expect("parses").command else {
                unreachable!("fence")
            };
            assert_eq!((read.user_namespaces, read.environment), (user_namespaces, None));
            assert_eq!(read.command, ["claude", "--user-namespaces", "--", ""]);
        }
    }
    #[test]
    fn a_requested_environment_is_obeyed_by_the_program_alone() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let requested =
            pairs(&[("LD_PRELOAD", "/x.so"), ("HIVE_REQUESTED_A", "1"), ("PATH", "/bin")]);
        let on_the_way: Vec<_> = wrapped(requested.clone()).collect();
        assert!(
            on_the_way.iter().all(|(name, _)| name.as_bytes().starts_with(REQUESTED.as_bytes()))
        );
        let all = [on_the_way, pairs(&[("LD_AUDIT", "/y.so"), ("HIVE_REQUESTED_", "z")])].concat();
        let as_map =
            |pairs: Vec<(OsString, OsString)>| pairs.into_iter().collect::<BTreeMap<_, _>>();
        assert_eq!(as_map(unwrapped(all.into_iter(), REQUESTED)), as_map(requested));
        let mut words: Vec<OsString> = vec!["hive".into()];
        words.extend(arguments_for_requested(true));
        words.extend(["server", "-v"].map(OsString::from));
        let Asked::Fence(read) = Cli::try_parse_from(words).expect("parses").command else {
            unreachable!("fence")
        };
        assert_eq!((read.environment.as_deref(), read.user_namespaces), (Some(REQUESTED), true));
        assert_eq!(read.command, ["server", "-v"]);
    }
}
