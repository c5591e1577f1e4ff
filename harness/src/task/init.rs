//! `hive task-init`: the first process of a shell task's sandbox.
//!
//! bubblewrap would end all of a task at once with its first process, and would report a signal as
//! an exit code. So this is process 1 of the sandbox: it starts the command inside the fence and
//! reports how it ended. It stays until the last process of the sandbox has ended, or until the
//! harness ends them. Its standard input is the pipe of the report. Invariant: no process that it
//! starts has the pipe.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use clap::Args;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::task::record::How;
use crate::{boot, fence};

/// The exit code if the command cannot be started.
pub const NOT_STARTED: u8 = 125;

/// Arguments of `hive task-init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Let the command create user namespaces
    #[arg(long)]
    pub user_namespaces: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// Runs the command to its end, and the sandbox to its own; returns the exit code.
pub fn run(args: &InitArgs) -> Result<u8, Box<dyn std::error::Error>> {
    // The copy is closed on exec. The command's standard input is another file.
    let mut report = io::PipeWriter::from(io::stdin().as_fd().try_clone_to_owned()?);
    let command = Command::new(boot::own_program()?)
        .args(fence::arguments(args.user_namespaces))
        .args(&args.command)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()?;
    let first = i32::try_from(command.id()).ok().and_then(Pid::from_raw);
    let mut code = NOT_STARTED;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == first => {
                let how = how(status);
                code = exit_code(how);
                // A harness that is gone reads nothing.
                let _ = report.write_all(line(how).as_bytes());
            }
            Ok(_) | Err(Errno::INTR) => {}
            // The last process has ended.
            Err(_) => return Ok(code),
        }
    }
}

fn how(status: WaitStatus) -> How {
    status
        .terminating_signal()
        .map_or_else(|| How::Exited(status.exit_status().unwrap_or(0)), How::Signaled)
}

/// Returns the exit code of a shell for this end.
fn exit_code(how: How) -> u8 {
    let code = match how {
        How::Exited(code) => code,
        How::Signaled(signal) => 128 + signal,
        How::TimedOut | How::Lost => i32::from(NOT_STARTED),
    };
    u8::try_from(code).unwrap_or(NOT_STARTED)
}

fn line(how: How) -> String {
    match how {
        How::Signaled(signal) => format!("signal {signal}\n"),
        How::Exited(code) => format!("exit {code}\n"),
        How::TimedOut | How::Lost => String::new(),
    }
}

/// Parses the line of the report.
pub fn parse(report: &[u8]) -> Option<How> {
    let (word, number) = std::str::from_utf8(report).ok()?.strip_suffix('\n')?.split_once(' ')?;
    let number = number.parse().ok()?;
    match word {
        "exit" => Some(How::Exited(number)),
        "signal" => Some(How::Signaled(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_read_as_it_is_written() {
        for (how, code) in [(How::Exited(0), 0), (How::Exited(255), 255), (How::Signaled(9), 137)] {
            assert_eq!((parse(line(how).as_bytes()), exit_code(how)), (Some(how), code));
        }
        for other in ["", "exit", "exit 1", "exit x\n", "stop 1\n"] {
            assert_eq!(parse(other.as_bytes()), None);
        }
    }
}
