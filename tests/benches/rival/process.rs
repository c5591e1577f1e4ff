//! A server that the benches start: its log, its readiness and its end.
//!
//! Invariant: only this process is ended, by its id, and it ends with its owner.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

/// A wait for a server that lasts longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn spawn(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let file = std::fs::File::options().create(true).append(true).open(&log)?;
        command.stdin(std::process::Stdio::null()).stdout(file.try_clone()?).stderr(file);
        Ok(Self { child: command.kill_on_drop(true).spawn()?, log })
    }

    /// Returns the id of the process, which lives.
    pub(crate) fn pid(&self) -> anyhow::Result<Pid> {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        id.ok_or_else(|| anyhow::anyhow!("the server has ended: {}", self.log()))
    }

    /// Waits until its socket takes a connection. The thread does nothing else, because the time of
    /// the first moment is measured.
    pub(crate) async fn listens(&mut self, socket: &Path) -> anyhow::Result<UnixStream> {
        let start = Instant::now();
        loop {
            match UnixStream::connect(socket).await {
                Ok(connection) => return Ok(connection),
                Err(_) if self.child.try_wait()?.is_none() && start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                Err(error) => anyhow::bail!("{}: {error}: {}", socket.display(), self.log()),
            }
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it by this signal, and waits for the end.
    pub(crate) async fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        kill_process(self.pid()?, signal)?;
        self.child.wait().await?;
        Ok(())
    }
}
