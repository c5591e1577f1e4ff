//! The journal of the host, by `journalctl`.
//!
//! Invariant: the name of the unit is one argument together with its option, so that no name is an
//! option; no more bytes are kept than an answer has.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::{BYTES_MAX, End, last_lines};
use crate::supervise::process::child::Registry;

/// Maximum time of journalctl. The broker waits longer, so that the reason is known there.
const READ_MAX: Duration = Duration::from_secs(10);

/// Returns the last lines of the journal about a unit, since a second of the epoch.
pub(super) async fn read(
    registry: Option<&Registry>,
    unit: &str,
    since: Option<i64>,
    lines: u32,
) -> Result<End, String> {
    let mut command = Command::new("journalctl");
    command.args(["--quiet", "--no-pager", "--output=short-iso"]);
    command.arg(format!("--unit={unit}")).arg(format!("--lines={lines}"));
    if let Some(since) = since {
        command.arg(format!("--since=@{since}"));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    match tokio::time::timeout(READ_MAX, run(registry, command, lines)).await {
        Ok(read) => read,
        Err(_) => Err("journalctl has not ended within 10 seconds".to_owned()),
    }
}

async fn run(registry: Option<&Registry>, mut command: Command, lines: u32) -> Result<End, String> {
    let cannot_start = |error| format!("journalctl cannot be started: {error}");
    let (mut child, _entry) = match registry {
        Some(registry) => {
            let (child, entry) = registry.spawn(&mut command, &[]).map_err(cannot_start)?;
            (child, Some(entry))
        }
        None => (command.spawn().map_err(cannot_start)?, None),
    };
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let failed = |error| format!("the output of journalctl cannot be read: {error}");
    let (output, errors) = tokio::try_join!(end_of(output), end_of(errors)).map_err(failed)?;
    let status = child.wait().await.map_err(failed)?;
    if status.success() {
        return Ok(last_lines(&output.0, output.1, lines));
    }
    let said = String::from_utf8_lossy(&errors.0);
    Err(format!("journalctl failed: {}", said.lines().next().unwrap_or("it says nothing")))
}

/// Returns the last bytes of an output, and whether they are all of it.
async fn end_of(output: Option<impl AsyncRead + Unpin>) -> std::io::Result<(Vec<u8>, bool)> {
    let Some(mut output) = output else { return Ok((Vec::new(), true)) };
    let (mut end, mut is_whole) = (Vec::new(), true);
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = output.read(&mut buffer).await?;
        if count == 0 {
            return Ok((end, is_whole));
        }
        end.extend_from_slice(&buffer[..count]);
        if end.len() > BYTES_MAX {
            end.drain(..end.len() - BYTES_MAX);
            is_whole = false;
        }
    }
}
