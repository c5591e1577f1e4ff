//! The surroundings of every command: the global options, the broker, and the output.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::connect::{self, Broker};
use crate::error::Failure;
use crate::interrupt::until_interrupted;
use crate::output::Output;

/// Maximum wait for one answer of the broker, without --timeout.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) const SOCKET_ENV: &str = "HIVE_SOCKET";

const GLOBAL: &str = "Global options";

/// Options of every command.
#[derive(Args, Debug, Default)]
pub(crate) struct Global {
    /// The broker's operator socket [default: hived.sock of $HIVE_RUNTIME_DIR, else
    /// .hive/run/hived.sock, else /run/hive/hived.sock]
    #[arg(long, global = true, help_heading = GLOBAL, env = SOCKET_ENV, hide_env_values = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Print JSON: an object names its schema, a list is an array of such objects, a stream is one
    /// object per line
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,
    /// Maximum wait for one answer of the broker [default: 30]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<f64>,
}

impl Global {
    /// Returns how long to wait for one answer of the broker.
    fn answer_timeout(&self) -> Duration {
        self.timeout.map_or(ANSWER_TIMEOUT, Duration::from_secs_f64)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        let runtime_dir =
            std::env::var_os("HIVE_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        connect::socket(self.socket.as_deref(), runtime_dir, Path::new("."))
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        Ok(_) | Err(_) => Err("give seconds, more than 0 and at most 86400".to_owned()),
    }
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) socket: PathBuf,
    /// Maximum wait for one answer.
    pub(crate) timeout: Duration,
    /// Maximum wait for an agent or a harness; `None`: without a limit.
    pub(crate) patience: Option<Duration>,
    pub(crate) out: Output,
}

impl Context {
    pub(crate) fn new(global: &Global) -> Self {
        let patience = global.timeout.map(Duration::from_secs_f64);
        Self {
            socket: global.socket(),
            timeout: global.answer_timeout(),
            patience,
            out: Output::stdout(global.json),
        }
    }

    /// Waits for a result, as long as the patience lasts and until Ctrl-C.
    pub(crate) async fn wait<T>(
        &self,
        result: impl Future<Output = Result<T, Failure>>,
        timed_out: impl FnOnce(f64) -> Failure,
        interrupted: Failure,
    ) -> Result<T, Failure> {
        let Some(patience) = self.patience else {
            return until_interrupted(result).await.ok_or(interrupted)?;
        };
        match tokio::time::timeout(patience, until_interrupted(result)).await {
            Ok(result) => result.ok_or(interrupted)?,
            Err(_) => Err(timed_out(patience.as_secs_f64())),
        }
    }

    pub(crate) async fn broker(&self) -> Result<Broker, Failure> {
        Broker::connect(&self.socket, self.timeout).await
    }
}
