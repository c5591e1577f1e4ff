//! The call log: one line to the harness for each ended tool call.
//!
//! Why: claude reads the stderr of its servers and keeps none of it. Invariant: a line has no
//! arguments and no result, and no call waits for the harness: a line that its socket does not
//! accept at once is lost.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::call::Call;

/// The environment variable with the harness's socket for these lines.
pub const CALL_LOG_ENV: &str = "HIVE_CALL_LOG";

/// The socket that gets the lines.
#[derive(Debug, Default)]
pub struct CallLog {
    to: Option<(UnixDatagram, PathBuf)>,
}

impl CallLog {
    /// Returns the log of the harness that started this bridge; an empty one without a harness.
    #[must_use]
    pub fn from_environment() -> Self {
        Self { to: std::env::var_os(CALL_LOG_ENV).and_then(|path| open(path.into())) }
    }

    /// Logs the end of a call.
    pub fn note(&self, server: &str, tool: &str, call: &Call, took: Duration, outcome: &str) {
        let Some((socket, path)) = &self.to else { return };
        let Call { request_id, tool_use_id, .. } = call;
        let line = json!({
            "server": server, "tool": tool, "tool_use_id": tool_use_id, "request_id": request_id,
            "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX), "outcome": outcome,
        });
        // If the harness is away or busy, the line is lost.
        drop(socket.send_to(line.to_string().as_bytes(), path));
    }
}

fn open(path: PathBuf) -> Option<(UnixDatagram, PathBuf)> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    Some((socket, path))
}
