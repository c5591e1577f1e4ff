//! A program that is tied to this one: it gets SIGTERM when this one has ended, however that ends.
//!
//! ```text
//!   up ──► hivectl tied-to PID PROGRAM ──► asks the kernel for the signal
//!                                      ──► sees that PID is its parent still ──► PROGRAM
//! ```
//!
//! The kernel reports no death from before it was asked, so a child that is only asked for could be
//! left behind by a kill between its fork and that. Invariant: PROGRAM never begins without a
//! parent.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::ExitCode;

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use tokio::process::Command;

use crate::exit::Exit;
use crate::output::note;

/// The first argument of a child that becomes its program. It is no command of a person, so the
/// command line does not have it.
const WORD: &str = "tied-to";
/// This program, even if its file was replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Returns a command that becomes a program, which gets SIGTERM when the present process ends.
pub(super) fn command(program: &Path) -> Command {
    let mut command = Command::new(OWN_PROGRAM);
    command.arg0("hivectl").arg(WORD).arg(getpid().as_raw_nonzero().to_string()).arg(program);
    command
}

/// Becomes the program of [`command`], if this process was started by it. Returns only if it was
/// not, or if that fails.
pub(crate) fn become_program(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != WORD {
        return None;
    }
    let parent = arguments.next()?.to_str()?.parse().ok().and_then(Pid::from_raw)?;
    let program = arguments.next()?;
    let name = program.to_string_lossy().into_owned();
    if let Err(errno) = set_parent_process_death_signal(Some(Signal::TERM)) {
        note(&format!("{name} is not started: the kernel refuses its death signal: {errno}"));
        return Some(Exit::Failure.into());
    }
    if getppid() != Some(parent) {
        note(&format!("{name} is not started, because `hivectl up` has ended"));
        return Some(Exit::Failure.into());
    }
    let error = std::process::Command::new(program).args(arguments).exec();
    note(&format!("{name} cannot be started: {error}"));
    Some(Exit::Failure.into())
}
