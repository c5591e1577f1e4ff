//! `hive confine`: requests that the harness runs a program in a sandbox, with the standard streams
//! of this process.
//!
//! It starts the MCP servers of an isolated agent. A process that claude starts itself can read
//! claude's key, the MCP configuration and the login. A server loads code from the agent's home,
//! which shell tasks write. claude runs inside the fence, so only the harness can make a sandbox.
//!
//! ```text
//!   claude ── hive scrub ── hive confine ──(command, environment, three descriptors)──► hive serve ── bwrap ── hive fence ── server
//! ```
//!
//! Invariant: the program lives no longer than the process that requested it.

pub mod request;
pub mod service;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use clap::Args;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::request::Request;

/// The socket in the run directory.
pub const SOCKET: &str = "confine.sock";
/// The exit code if the program was not started, or if its end is unknown.
pub const NOT_STARTED: u8 = 125;
/// Signals that are forwarded to the program. claude ends its servers by the first two.
const FORWARDED: [rustix::process::Signal; 3] =
    [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP];

/// Arguments of `hive confine`.
#[derive(Debug, Args)]
pub struct ConfineArgs {
    /// The harness's socket
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// Reasons why the exit code of the program is not known.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    #[error("cannot ask the harness at {} to start `{program}`: {source}; start the agent again", .socket.display())]
    Request { socket: PathBuf, program: String, source: io::Error },
    #[error("the harness ended while `{program}` ran; start the agent again")]
    Lost { program: String },
}

/// Runs the program to its end; returns its exit code.
pub async fn run(args: ConfineArgs) -> Result<u8, ConfineError> {
    let ConfineArgs { socket, command } = args;
    let program =
        command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    let request = Request { command, environment: std::env::vars_os().collect() };
    let (mut signals, mut stream) = ask(&socket, &request)
        .await
        .map_err(|source| ConfineError::Request { socket, program: program.clone(), source })?;
    let (mut reader, mut writer) = stream.split();
    let [interrupt, terminate, hang_up] = &mut signals;
    loop {
        let received = tokio::select! {
            code = reader.read_u8() => return code.map_err(|_| ConfineError::Lost { program }),
            _ = interrupt.recv() => 0,
            _ = terminate.recv() => 1,
            _ = hang_up.recv() => 2,
        };
        // The reader notices a closed connection.
        let _ = writer.write_u8(received).await;
    }
}

async fn ask(socket: &Path, request: &Request) -> io::Result<([Signal; 3], UnixStream)> {
    // A signal before this point ends the process, and with it the connection.
    let [first, second, third] =
        FORWARDED.map(|forwarded| signal(SignalKind::from_raw(forwarded.as_raw())));
    let signals = [first?, second?, third?];
    let mut stream = UnixStream::connect(socket).await?;
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    request.send(&mut stream, [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]).await?;
    Ok((signals, stream))
}

/// Returns the arguments with which `hive` has the harness run `program`.
pub fn arguments(socket: &Path, program: &str, args: &[String]) -> Vec<String> {
    // One word: a path that begins with `-` stays a path.
    let mut words = vec![
        "confine".to_owned(),
        format!("--socket={}", socket.display()),
        "--".to_owned(),
        program.to_owned(),
    ];
    words.extend_from_slice(args);
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command as Asked};

    #[test]
    fn the_arguments_are_read_as_they_are_written() {
        let args = ["--socket=x".to_owned(), "--".to_owned(), String::new()];
        let words = arguments(Path::new("-h/confine.sock"), "x y", &args);
        let cli =
            Cli::try_parse_from(["hive".to_owned()].into_iter().chain(words)).expect("parses");
        let Asked::Confine(read) = cli.command else { unreachable!("confine") };
        assert_eq!(read.socket, Path::new("-h/confine.sock"));
        assert_eq!(read.command, ["x y", "--socket=x", "--", ""]);
    }
}
