//! A running server of a rival, with its files on the disk of the workspace.
//!
//! Invariant: the server ends with this value, and its files are removed.

use std::path::PathBuf;

use hive_tests::rig::Rig;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tokio::process::Command;

use super::process::Process;
use super::{Door, Kind, redis};
use crate::servers;

/// What runs.
#[derive(Debug)]
enum Running {
    Hive(Box<Rig>),
    Other { process: Box<Process>, dir: TempDir },
}

/// A server with inboxes `a0`, `a1`, ….
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    running: Running,
}

impl Server {
    pub(crate) async fn start(kind: Kind, inboxes: usize) -> anyhow::Result<Self> {
        if matches!(kind, Kind::Unary | Kind::Streamed) {
            let mut rig = servers::hive(inboxes)?;
            servers::start_by_default(&mut rig).await;
            return Ok(Self { kind, running: Running::Hive(Box::new(rig)) });
        }
        let dir = servers::disk_dir()?;
        let process = Self::launch(kind, &dir)?;
        let mut server = Self { kind, running: Running::Other { process: Box::new(process), dir } };
        server.answers().await?;
        if kind == Kind::Redis {
            redis::Client::connect(&server.door().socket).await?.make_groups(inboxes).await?;
        }
        Ok(server)
    }

    fn launch(kind: Kind, dir: &TempDir) -> anyhow::Result<Process> {
        let command = match kind {
            Kind::Redis => redis::command(dir.path()),
            Kind::Reference | Kind::Unary | Kind::Streamed => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_bench-reference"));
                command.arg(dir.path());
                command
            }
        };
        Process::spawn(command, dir.path().join("log"))
    }

    /// Waits until the server answers.
    async fn answers(&mut self) -> anyhow::Result<()> {
        let socket = self.door().socket;
        match &mut self.running {
            Running::Hive(_) => Ok(()),
            Running::Other { process, .. } => {
                let connection = process.listens(&socket).await?;
                match self.kind {
                    Kind::Redis => redis::Client::new(connection).ready().await,
                    Kind::Reference | Kind::Unary | Kind::Streamed => Ok(()),
                }
            }
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the sockets.
    pub(crate) fn door(&self) -> Door {
        let (socket, agents) = match &self.running {
            Running::Hive(rig) => (rig.operator_socket(), rig.path("run/agents")),
            Running::Other { dir, .. } => {
                let name = if self.kind == Kind::Redis { redis::SOCKET } else { "ref.sock" };
                (dir.path().join(name), PathBuf::new())
            }
        };
        Door { kind: self.kind, socket, agents }
    }

    pub(crate) fn pid(&mut self) -> anyhow::Result<Pid> {
        match &mut self.running {
            Running::Hive(rig) => Ok(rig.broker().pid()),
            Running::Other { process, .. } => process.pid(),
        }
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        match self.running {
            Running::Hive(mut rig) => {
                rig.stop_broker().await;
                rig.end().await;
            }
            Running::Other { mut process, dir } => {
                process.end(Signal::TERM).await?;
                dir.close()?;
            }
        }
        Ok(())
    }
}
