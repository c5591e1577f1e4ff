//! `hive scrub`: becomes another program, with an environment from an allow-list.
//!
//! claude passes its whole environment to every MCP server, API key included, so each of them is
//! started through this program. It is one `execve`: the process keeps its number, its pipes and
//! its parent. Invariant: only variables that are on the list or named pass.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;

/// Variables that every program needs, or that set the user's language. Proxies are not included:
/// their addresses may contain passwords.
const PASSED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR"];
/// Prefix of the variables of the locale.
const PASSED_BEGINNING: &str = "LC_";

/// The exit code if the program does not exist, as a shell's.
pub const NOT_FOUND: u8 = 127;
/// The exit code if it exists and does not run, as a shell's.
pub const NOT_RUNNABLE: u8 = 126;

/// Arguments of `hive scrub`.
#[derive(Debug, Args)]
pub struct ScrubArgs {
    /// A variable that passes besides the usual ones
    #[arg(long = "keep", value_name = "NAME")]
    pub keep: Vec<OsString>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// Why the program does not run.
#[derive(Debug, thiserror::Error)]
#[error("hive scrub cannot run `{program}`: {source}; {next}", next = self.next())]
pub struct NotRun {
    program: String,
    source: io::Error,
}

impl NotRun {
    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        if self.source.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE }
    }

    fn next(&self) -> &'static str {
        match self.code() {
            NOT_FOUND => {
                "check `command` of the MCP server, and that the file and the interpreter in its first line are there"
            }
            _ => "check that the file is a program and that this user may run it",
        }
    }
}

/// Becomes the program. Returns only if that fails.
#[must_use]
pub fn run(args: ScrubArgs) -> NotRun {
    let ScrubArgs { keep, command } = args;
    let mut words = command.into_iter();
    let program = words.next().unwrap_or_default();
    let environment = std::env::vars_os().filter(|(name, _)| passes(name, &keep));
    let source = Command::new(&program).args(words).env_clear().envs(environment).exec();
    NotRun { program: program.to_string_lossy().into_owned(), source }
}

fn passes(name: &OsStr, keep: &[OsString]) -> bool {
    let usual = PASSED.iter().any(|passed| name == *passed)
        || name.as_bytes().starts_with(PASSED_BEGINNING.as_bytes());
    usual || keep.iter().any(|kept| kept == name)
}

/// Returns the arguments with which `hive` becomes `program`, with these variables passing.
pub fn arguments<'a>(
    keep: impl IntoIterator<Item = &'a str>,
    program: &str,
    args: &[String],
) -> Vec<String> {
    let mut words = vec!["scrub".to_owned()];
    for name in keep {
        // One word: a name that begins with `-` stays a name.
        words.push(format!("--keep={name}"));
    }
    words.extend(["--".to_owned(), program.to_owned()]);
    words.extend_from_slice(args);
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command as Asked};

    #[test]
    fn only_usual_and_named_variables_pass() {
        let keep = ["HIVE_SOCKET".into(), "-x".into()];
        for (name, wanted) in [
            ("PATH", true),
            ("LC_TIME", true),
            ("HIVE_SOCKET", true),
            ("-x", true),
            ("HIVE_SOCKETS", false),
            ("ANTHROPIC_API_KEY", false),
            ("CLAUDE_CODE_MESSAGING_TOKEN", false),
            ("HTTPS_PROXY", false),
            ("LD_PRELOAD", false),
        ] {
            assert_eq!(passes(OsStr::new(name), &keep), wanted, "{name}");
        }
    }

    #[test]
    fn arguments_are_read_as_they_are_written() {
        let args = ["--keep=PATH".to_owned(), "--".to_owned(), String::new()];
        let words = arguments(["A", "-b"], "x y", &args);
        let cli =
            Cli::try_parse_from(["hive".to_owned()].into_iter().chain(words)).expect("parses");
        let Asked::Scrub(read) = cli.command else { unreachable!("scrub was asked for") };
        assert_eq!(read.keep, ["A", "-b"]);
        assert_eq!(read.command, ["x y", "--keep=PATH", "--", ""]);
    }
}
