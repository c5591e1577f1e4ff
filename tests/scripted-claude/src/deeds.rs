//! The steps of a script that need no conversation: actions of a process on itself and on the host.

use std::io;
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpid, kill_process};

use super::script::Step;

/// Runs a step; returns the exit code if it ends the process.
pub(super) async fn step(step: &Step) -> io::Result<Option<u8>> {
    match step {
        Step::Exit { exit } => return Ok(Some(*exit)),
        Step::Die { die } => {
            let signal = Signal::from_named_raw(*die)
                .ok_or_else(|| io::Error::other(format!("no signal has the number {die}")))?;
            kill_process(getpid(), signal)?;
        }
        Step::Hang { hang: true } => std::future::pending().await,
        Step::Hang { hang: false } => {}
        Step::WaitFile { wait_file } => super::appear::wait(wait_file).await?,
        Step::Touch { touch } => std::fs::write(touch, b"")?,
        Step::Spawn { spawn, setsid } => start(spawn, *setsid)?,
        Step::Daemon { daemon } => detach(daemon)?,
        Step::Stderr { stderr } => super::run::complain(stderr),
        Step::Raw { raw } => super::events::raw(raw)?,
        Step::Tool { .. }
        | Step::Call { .. }
        | Step::Text { .. }
        | Step::Duo { .. }
        | Step::Result { .. }
        | Step::Fail { .. }
        | Step::CompactError { .. }
        | Step::First { .. }
        | Step::IgnoreSigterm { .. }
        | Step::IgnoreSigint { .. }
        | Step::Usage { .. } => {
            return Err(io::Error::other(format!("this step is for turns: {step:?}")));
        }
    }
    Ok(None)
}

/// Starts a process and does not wait for it.
fn start(command: &[String], setsid: bool) -> io::Result<()> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    // Without its own session it stays in claude's process group, as any child of a tool does.
    let mut child = if setsid { Command::new("setsid") } else { Command::new(program) };
    if setsid {
        child.arg(program);
    }
    child
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
}

/// Starts a process whose parent has ended when this returns.
fn detach(command: &[String]) -> io::Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "setsid \"$@\" &", "sh"]).args(command);
    let status = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("sh ended with {status}"))) }
}
