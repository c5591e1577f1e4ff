//! The harness's side of `hive confine`: starts programs in sandboxes, and ends each with the
//! process that requested it.
//!
//! Invariant: without a sandbox, a program has at least the fence. It is no child of claude's, and
//! nothing that a request names is obeyed before the fence.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::request::Request;
use super::{FORWARDED, NOT_STARTED, SOCKET};
use crate::config::Config;
use crate::fence;
use crate::process::family::servers::{Entered, Servers};
use crate::process::family::table::snapshot;
use crate::process::family::{self, Family, Process};
use crate::task::{Confinement, service};

/// Maximum concurrent programs. An agent has a handful of servers.
const PROGRAMS_MAX: usize = 64;
/// Longest time in which a request must arrive.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Starts the service of an isolated agent; it ends when the set is dropped.
#[must_use]
pub fn start(config: &Config, family: &Family) -> JoinSet<()> {
    let mut service = JoinSet::new();
    let Some(isolation) = &config.isolation else { return service };
    let path = config.run_dir.join(SOCKET);
    let bound =
        crate::boot::file::private_dir(&config.run_dir).and_then(|()| service::listen(&path));
    match bound {
        Ok(listener) => {
            let host =
                Host::new(isolation.tasks.clone(), config.state_dir.clone(), family.servers());
            service.spawn(host.serve(listener));
        }
        Err(error) => {
            tracing::error!(%error, path = %path.display(), "the agent's own MCP servers cannot be started");
        }
    }
    service
}

/// The environment in which programs start.
#[derive(Debug)]
pub struct Host {
    confinement: Confinement,
    dir: PathBuf,
    servers: Servers,
}

impl Host {
    /// Creates a host that starts programs in this directory.
    pub fn new(confinement: Confinement, dir: PathBuf, servers: Servers) -> Self {
        Self { confinement, dir, servers }
    }

    /// Serves while it is polled; when it is dropped, all programs end.
    pub async fn serve(self, listener: UnixListener) {
        let host = Arc::new(self);
        let mut programs = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) if programs.len() < PROGRAMS_MAX => {
                        programs.spawn(Arc::clone(&host).run_to_end(stream));
                    }
                    Ok(_) => tracing::warn!(max = PROGRAMS_MAX, "too many MCP servers run at a time; one is not started"),
                    Err(error) => {
                        tracing::warn!(%error, "a request for an MCP server is lost");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = programs.join_next() => {}
            }
        }
    }

    /// Runs the program of one connection to its end.
    async fn run_to_end(self: Arc<Self>, mut stream: UnixStream) {
        let client = stream.peer_cred().ok().and_then(|client| client.pid()).and_then(family::find);
        let request = timeout(REQUEST_PATIENCE, Request::receive(&mut stream)).await;
        let (Some(client), Ok(Ok((request, streams)))) = (client, request) else {
            tracing::warn!("a request for an MCP server is incomplete");
            return;
        };
        let program = request.command.first().map(|program| program.to_string_lossy().into_owned());
        let code = match self.start(client, request, streams) {
            Ok((child, entered)) => match self.to_end(child, &entered, &mut stream).await {
                Some(code) => code,
                None => return,
            },
            Err(error) => {
                tracing::warn!(%error, program, "an MCP server is not started");
                NOT_STARTED
            }
        };
        // A client that has ended needs no code.
        let _ = stream.write_u8(code).await;
    }

    fn start(
        &self,
        client: Process,
        request: Request,
        streams: [OwnedFd; 3],
    ) -> io::Result<(Child, Entered)> {
        let Request { command, environment } = request;
        let mut words = self.confinement.program(command).into_iter();
        let [stdin, stdout, stderr] = streams.map(Stdio::from);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).env_clear().current_dir(&self.dir);
        match self.confinement {
            // No process before the program could obey it.
            Confinement::None => command.envs(environment),
            Confinement::Fence { .. } | Confinement::Sandbox(_) => {
                command.envs(fence::wrapped(environment))
            }
        };
        command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0).kill_on_drop(true);
        self.servers.enter(client, || {
            let child = command.spawn()?;
            let root = child.id().and_then(|pid| family::find(i32::try_from(pid).ok()?));
            Ok((child, root.ok_or_else(|| io::Error::other("its process cannot be found"))?))
        })
    }

    /// Returns the exit code; `None` if the client ended first.
    async fn to_end(
        &self,
        mut child: Child,
        entered: &Entered,
        stream: &mut UnixStream,
    ) -> Option<u8> {
        loop {
            tokio::select! {
                status = child.wait() => return Some(status.map_or(NOT_STARTED, code)),
                received = stream.read_u8() => match received {
                    Ok(number) => self.signal(entered.root(), number),
                    Err(_) => {
                        // A program that has ended by itself needs no signal.
                        let _ = child.start_kill();
                        let _ = child.wait().await;
                        return None;
                    }
                },
            }
        }
    }

    /// Sends the program a signal, by its index in the list of forwarded signals.
    fn signal(&self, root: Process, number: u8) {
        let Some(signal) = FORWARDED.get(usize::from(number)) else { return };
        let entries = snapshot();
        let children = |pid: i32| {
            entries.iter().filter(move |entry| entry.parent == pid).map(|entry| entry.process.pid)
        };
        let receivers: Vec<i32> = if self.confinement.is_sandbox() {
            // The sandbox has a process outside and one inside. A signal to either would end
            // everything at once.
            children(root.pid).flat_map(children).collect()
        } else {
            vec![root.pid]
        };
        for pid in receivers.into_iter().filter_map(Pid::from_raw) {
            // The process may have ended by now.
            let _ = kill_process(pid, *signal);
        }
    }
}

/// Returns the exit code of a shell for this status.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(NOT_STARTED)
}
