//! What every command gets: how to reach the broker, and where its output goes.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::Global;
use crate::connect::Broker;
use crate::error::Failure;
use crate::output::Output;

/// The surroundings of a command.
#[derive(Debug)]
pub(crate) struct Context {
    /// The operator socket.
    pub(crate) socket: PathBuf,
    /// How long to wait for one answer.
    pub(crate) timeout: Duration,
    /// How long to wait for somebody else; `None`: as long as it takes.
    pub(crate) patience: Option<Duration>,
    /// Where data goes.
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

    /// Connects to the broker.
    pub(crate) async fn broker(&self) -> Result<Broker, Failure> {
        Broker::connect(&self.socket, self.timeout).await
    }
}
