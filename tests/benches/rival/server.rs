//! A running server of a rival, with its files on the disk of the workspace.
//!
//! Invariant: the server ends with this value, and its files are removed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hive_proto::v1::GetServerInfoRequest;
use hive_proto::v1::server_info_service_client::ServerInfoServiceClient;
use hive_tests::rig::Rig;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tokio::process::Command;

use super::process::Process;
use super::{Door, Kind, redis, reference};
use crate::sample::micros;
use crate::servers;

/// A server is at rest if it uses less than this part of one CPU for this long.
const AT_REST: f64 = 0.02;
const REST: Duration = Duration::from_millis(250);
/// Time in which a server comes to rest.
const PATIENCE: Duration = Duration::from_secs(300);

/// The files of a server.
#[derive(Debug)]
enum Files {
    Hive(Box<Rig>),
    Other(TempDir),
}

/// A server with inboxes `a0`, `a1`, ….
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    files: Files,
    process: Process,
    /// Agents with a socket of their own; Hive's always have one.
    agents: usize,
}

impl Server {
    /// Starts a server on an empty directory.
    pub(crate) async fn start(kind: Kind, inboxes: usize) -> anyhow::Result<Self> {
        let (server, _) = Self::boot(kind, inboxes, 0).await?;
        if kind == Kind::Redis {
            redis::Client::connect(&server.door().socket).await?.make_groups(inboxes).await?;
        }
        Ok(server)
    }

    /// Starts a Hive with this addition to its configuration.
    pub(crate) async fn start_hive(
        kind: Kind,
        inboxes: usize,
        section: &str,
    ) -> anyhow::Result<Self> {
        let files = Files::Hive(Box::new(servers::hive(inboxes, section)?));
        Ok(Self::boot_on(kind, files, 0).await?.0)
    }

    /// Starts a server in which each agent has a socket of its own.
    pub(crate) async fn start_with_agents(kind: Kind, agents: usize) -> anyhow::Result<Self> {
        Ok(Self::boot(kind, agents, agents).await?.0)
    }

    /// Starts a server on an empty directory; returns it with the time until its first answer.
    pub(crate) async fn boot(
        kind: Kind,
        inboxes: usize,
        agents: usize,
    ) -> anyhow::Result<(Self, Duration)> {
        let files = match kind {
            Kind::Unary | Kind::Streamed => Files::Hive(Box::new(servers::hive(inboxes, "")?)),
            Kind::Reference | Kind::Redis => Files::Other(servers::disk_dir()?),
        };
        Self::boot_on(kind, files, agents).await
    }

    async fn boot_on(kind: Kind, files: Files, agents: usize) -> anyhow::Result<(Self, Duration)> {
        // It is built before the time counts.
        drop(command(kind, &files, agents));
        let start = Instant::now();
        let process = Process::spawn(command(kind, &files, agents), log(&files))?;
        let mut server = Self { kind, files, process, agents };
        server.answers().await?;
        Ok((server, start.elapsed()))
    }

    /// Ends the server by this signal.
    pub(crate) async fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        self.process.end(signal).await
    }

    /// Starts the server that was ended again, on its files; returns the time until its first
    /// answer.
    pub(crate) async fn restart(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let command = command(self.kind, &self.files, self.agents);
        self.process = Process::spawn(command, log(&self.files))?;
        self.answers().await?;
        Ok(start.elapsed())
    }

    /// Waits until the server answers a request.
    async fn answers(&mut self) -> anyhow::Result<()> {
        let socket = self.door().socket;
        let connection = self.process.listens(&socket).await?;
        match self.kind {
            Kind::Redis => redis::Client::new(connection).ready().await,
            Kind::Reference => reference::Client::connect(&socket).await?.answers().await,
            Kind::Unary | Kind::Streamed => {
                let channel = hive_proto::connect::connect(&socket).await?;
                let mut info = ServerInfoServiceClient::new(channel);
                info.get_server_info(GetServerInfoRequest::default()).await?;
                Ok(())
            }
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the sockets.
    pub(crate) fn door(&self) -> Door {
        self.door_of(self.kind)
    }

    /// Returns the sockets of a Hive for another way of use.
    pub(crate) fn door_of(&self, kind: Kind) -> Door {
        let (socket, agents) = match &self.files {
            Files::Hive(rig) => (rig.operator_socket(), rig.path("run/agents")),
            Files::Other(dir) => {
                let name = if self.kind == Kind::Redis { redis::SOCKET } else { "ref.sock" };
                (dir.path().join(name), dir.path().to_path_buf())
            }
        };
        Door { kind, socket, agents }
    }

    /// Returns the database of a Hive.
    pub(crate) fn database(&self) -> anyhow::Result<PathBuf> {
        match &self.files {
            Files::Hive(rig) => Ok(rig.path("state/hive.db")),
            Files::Other(_) => anyhow::bail!("only a Hive has this database"),
        }
    }

    /// Returns a path beside the configuration file of a Hive.
    pub(crate) fn config_file(&self, name: &str) -> anyhow::Result<PathBuf> {
        match &self.files {
            Files::Hive(rig) => Ok(rig.path(name)),
            Files::Other(_) => anyhow::bail!("only a Hive has this directory"),
        }
    }

    pub(crate) fn pid(&self) -> anyhow::Result<Pid> {
        self.process.pid()
    }

    /// Returns the part of one CPU that the server uses in this time.
    pub(crate) async fn used(&self, span: Duration) -> anyhow::Result<f64> {
        let (pid, start) = (self.pid()?, Instant::now());
        let before = servers::cpu_micros(pid);
        tokio::time::sleep(span).await;
        Ok((servers::cpu_micros(pid) - before) / micros(start.elapsed()))
    }

    /// Waits until the server does nothing: it may have work left that no call waits for, such as
    /// an index of what was sent.
    pub(crate) async fn rests(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.used(REST).await? > AT_REST {
            anyhow::ensure!(start.elapsed() < PATIENCE, "the server does not come to rest");
        }
        Ok(())
    }

    /// Ends the server, and removes its files.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.end(Signal::TERM).await?;
        match self.files {
            Files::Hive(rig) => rig.end().await,
            Files::Other(dir) => dir.close()?,
        }
        Ok(())
    }
}

/// Returns the command that starts a server.
fn command(kind: Kind, files: &Files, agents: usize) -> Command {
    match files {
        Files::Hive(rig) => {
            let mut broker = rig.broker_command();
            // As an operator starts it: the log of the rig has more lines.
            broker.env_remove("HIVE_LOG");
            broker
        }
        Files::Other(dir) if kind == Kind::Redis => redis::command(dir.path()),
        Files::Other(dir) => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_bench-reference"));
            command.arg(dir.path()).arg(agents.to_string());
            command
        }
    }
}

fn log(files: &Files) -> PathBuf {
    let dir: &Path = match files {
        Files::Hive(rig) => &rig.path(""),
        Files::Other(dir) => dir.path(),
    };
    dir.join("log")
}
