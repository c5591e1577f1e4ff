//! The call log: one line to the harness for each tool call that has ended.
//!
//! Why: claude reads the stderr of its servers and keeps none of it. Invariant: a line has no
//! arguments and no result, and no call waits for the harness: what its socket does not take at
//! once is lost.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::call::Call;

/// The environment variable with the harness's socket for these lines.
pub const CALL_LOG_ENV: &str = "HIVE_CALL_LOG";

/// Where the lines go.
#[derive(Debug, Default)]
pub struct CallLog {
    to: Option<(UnixDatagram, PathBuf)>,
}

impl CallLog {
    /// The log of the harness that started this bridge; none without one.
    #[must_use]
    pub fn from_environment() -> Self {
        Self { to: std::env::var_os(CALL_LOG_ENV).and_then(|path| open(path.into())) }
    }

    /// Notes the end of a call.
    pub fn note(&self, server: &str, tool: &str, call: &Call, took: Duration, outcome: &str) {
        let Some((socket, path)) = &self.to else { return };
        let Call { request_id, tool_use_id, .. } = call;
        let line = json!({
            "server": server, "tool": tool, "tool_use_id": tool_use_id, "request_id": request_id,
            "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX), "outcome": outcome,
        });
        // A harness that is away, or behind, does without the line.
        drop(socket.send_to(line.to_string().as_bytes(), path));
    }
}

fn open(path: PathBuf) -> Option<(UnixDatagram, PathBuf)> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    Some((socket, path))
}
