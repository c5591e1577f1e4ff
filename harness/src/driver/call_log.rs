//! The call log: the reports of this agent's bridges about each tool call, in a file of the
//! harness, and in its log.
//!
//! claude reads the stderr of its servers and stores none of it. Invariants: both files together
//! have at most twice [`FILE_BYTES_MAX`] bytes; a line has the turn and the ids of its call, and
//! neither arguments nor results. The agent's own processes can reach the socket, so a line proves
//! only that it was reported.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::net::UnixDatagram;
use tokio::sync::watch;

use crate::boot::file;
use crate::driver::wall_now;
use crate::wire::rfc3339;

/// The socket in the run directory to which bridges report.
pub const SOCKET: &str = "calls.sock";
/// The file in the run directory.
pub const FILE: &str = "calls.log";
/// The file with the earlier lines.
const OLD_FILE: &str = "calls.log.1";
/// Maximum bytes of one file.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Longest report, in bytes.
const REPORT_BYTES_MAX: usize = 1024;
/// Maximum characters of a word in a line.
const WORD_CHARS_MAX: usize = 128;

/// Writes the log while it is polled; `running` is the turn that runs.
pub async fn keep(run_dir: PathBuf, mut running: watch::Receiver<Option<u64>>) {
    let socket = match bind(&run_dir) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::warn!(%error, dir = %run_dir.display(), "the calls of tools are not logged");
            return;
        }
    };
    let mut log = Log { dir: run_dir, file: None };
    // A report that is read late belongs to the turn that ran last.
    let mut turn = 0;
    let mut bytes = [0; REPORT_BYTES_MAX];
    loop {
        tokio::select! {
            biased;
            changed = running.changed() => match changed {
                Ok(()) => turn = running.borrow_and_update().unwrap_or(turn),
                Err(_) => return,
            },
            received = socket.recv(&mut bytes) => {
                let Some(call) = received.ok().and_then(|length| Report::read(&bytes[..length])) else { continue };
                call.trace(turn);
                if let Err(error) = log.write(&call.line(turn)) {
                    tracing::warn!(%error, "a line of the call log is lost");
                }
            }
        }
    }
}

fn bind(run_dir: &Path) -> io::Result<UnixDatagram> {
    file::private_dir(run_dir)?;
    let path = run_dir.join(SOCKET);
    file::remove(&path)?;
    UnixDatagram::bind(path)
}

/// A report of a bridge. Its texts are words.
struct Report {
    server: String,
    tool: String,
    outcome: String,
    tool_use_id: String,
    request_id: String,
    duration_ms: u64,
}

impl Report {
    /// Reads a report; `None` if it is not one.
    fn read(report: &[u8]) -> Option<Self> {
        let report: Value = serde_json::from_slice(report).ok()?;
        let text = |name: &str| report[name].as_str().map(word);
        Some(Self {
            server: text("server")?,
            tool: text("tool")?,
            outcome: text("outcome")?,
            tool_use_id: text("tool_use_id")?,
            request_id: text("request_id")?,
            duration_ms: report["duration_ms"].as_u64()?,
        })
    }

    /// Logs the call: claude keeps the stderr of the bridge to itself.
    fn trace(&self, turn_id: u64) {
        let Self { server, tool, outcome, tool_use_id, request_id, duration_ms } = self;
        tracing::info!(
            turn_id,
            server,
            tool,
            tool_use_id,
            request_id,
            duration_ms,
            outcome,
            "tool call"
        );
    }

    /// Returns the line of the file.
    fn line(&self, turn: u64) -> String {
        let Self { server, tool, outcome, tool_use_id, request_id, duration_ms } = self;
        let time = rfc3339(wall_now());
        format!(
            "{time} turn={turn} server={server} tool={tool} tool_use_id={tool_use_id} request_id={request_id} \
             duration_ms={duration_ms} outcome={outcome}\n"
        )
    }
}

/// Returns a text as one word: every character but letters, digits and `-_.:` becomes `?`.
fn word(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.:".contains(c) { c } else { '?' };
    text.chars().take(WORD_CHARS_MAX).map(plain).collect()
}

/// The two files of the log.
struct Log {
    dir: PathBuf,
    file: Option<(File, u64)>,
}

impl Log {
    fn write(&mut self, line: &str) -> io::Result<()> {
        let (mut file, size) = match self.file.take() {
            Some(open) => open,
            None => self.open()?,
        };
        file.write_all(line.as_bytes())?;
        let size = size + line.len() as u64;
        if size < FILE_BYTES_MAX - 2 * REPORT_BYTES_MAX as u64 {
            self.file = Some((file, size));
            return Ok(());
        }
        std::fs::rename(self.dir.join(FILE), self.dir.join(OLD_FILE))
    }

    fn open(&self) -> io::Result<(File, u64)> {
        let file =
            OpenOptions::new().append(true).create(true).mode(0o600).open(self.dir.join(FILE))?;
        let size = file.metadata()?.len();
        Ok((file, size))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram as Sender;

    use super::*;

    const REPORT: &str = r#"{"server":"hive","tool":"send","tool_use_id":"toolu_1","request_id":"mcp-1","duration_ms":7,"outcome":"ok"}"#;

    fn line(report: &[u8], turn: u64) -> Option<String> {
        Some(Report::read(report)?.line(turn))
    }

    #[test]
    fn a_line_has_turn_and_ids_and_nothing_can_be_smuggled_into_it() {
        let good = line(REPORT.as_bytes(), 12).expect("a report");
        assert!(
            good.ends_with(" turn=12 server=hive tool=send tool_use_id=toolu_1 request_id=mcp-1 duration_ms=7 outcome=ok\n"),
            "{good}"
        );
        let hostile = REPORT.replace("toolu_1", "x turn=9\\n\\u001b[2J\\u202e");
        let bad = line(hostile.as_bytes(), 12).expect("a report");
        assert!(
            bad.contains("tool_use_id=x?turn?9???2J? request_id") && bad.lines().count() == 1,
            "{bad}"
        );
        assert!(line(b"no report", 1).is_none() && line(br#"{"tool":1}"#, 1).is_none());
    }

    #[test]
    fn the_files_are_bounded_and_private_and_the_newest_lines_are_there() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a directory");
        let mut log = Log { dir: dir.path().to_owned(), file: None };
        let lines = 3 * FILE_BYTES_MAX / 200;
        for number in 0..lines {
            log.write(&format!("{number:0199}\n")).expect("written");
        }
        let read = |name| std::fs::read_to_string(dir.path().join(name)).expect("a file");
        assert!(
            read(FILE).len() as u64 <= FILE_BYTES_MAX
                && read(OLD_FILE).len() as u64 <= FILE_BYTES_MAX
        );
        let kept = read(OLD_FILE) + &read(FILE);
        assert!(
            kept.ends_with(&format!("{:0199}\n", lines - 1))
                && kept.len() as u64 > FILE_BYTES_MAX / 2
        );
        let mode =
            std::fs::metadata(dir.path().join(FILE)).expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode, std::fs::read_dir(dir.path()).expect("a directory").count()), (0o600, 2));
    }

    #[tokio::test]
    async fn reports_of_bridges_are_logged_with_the_running_turn() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join(SOCKET), "of an earlier harness").expect("a file");
        let running = watch::Sender::new(None);
        let kept = tokio::spawn(keep(dir.path().to_owned(), running.subscribe()));
        let (sender, path) = (Sender::unbound().expect("a socket"), dir.path().join(SOCKET));
        running.send_replace(Some(12));
        while sender.send_to(REPORT.as_bytes(), &path).is_err() {
            tokio::task::yield_now().await;
        }
        let text = loop {
            match std::fs::read_to_string(dir.path().join(FILE)) {
                Ok(text) if text.ends_with('\n') => break text,
                _ => tokio::task::yield_now().await,
            }
        };
        assert!(text.contains(" turn=12 ") && text.lines().count() == 1, "{text}");
        drop(running);
        kept.await.expect("it ends with the harness");
    }
}
