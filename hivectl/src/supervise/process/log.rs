//! Logs: bounded files, and the pipe for an agent's output.
//!
//! An agent's harness may repeat text of a peer or a model. So this program reads the output, makes
//! it printable and writes it. The pipe is non-blocking for the writer: while this program is
//! stopped (Ctrl-Z), a full pipe drops lines and no harness waits.
//!
//! Invariant: a log has at most [`LOG_BYTES_MAX`] bytes and, of an agent, no control characters.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use crate::output::text::visible_line;
use crate::spawn::spawn;

/// Longest log, in bytes; a longer one starts again.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Longest line, in bytes; the rest becomes further lines.
const LINE_BYTES_MAX: usize = 8 * 1024;
/// Maximum time that the pipe may stay open after the process has ended.
const END_MAX: Duration = Duration::from_millis(500);

/// Opens a log for its owner only.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    if log.metadata()?.len() > LOG_BYTES_MAX {
        log.set_len(0)?;
    }
    Ok(log)
}

#[derive(Debug)]
pub(crate) struct Log(JoinHandle<()>);

impl Log {
    /// Returns the end that the process writes to.
    pub(crate) fn start(file: File) -> io::Result<(OwnedFd, Self)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let reader = pipe::Receiver::from_owned_fd(reader)?;
        Ok((writer, Self(spawn("log", pump(reader, file)))))
    }

    /// Waits until everything that the process has written is in the file.
    pub(crate) async fn finish(mut self) {
        if tokio::time::timeout(END_MAX, &mut self.0).await.is_err() {
            self.0.abort();
        }
    }
}

async fn pump(mut reader: pipe::Receiver, mut file: File) {
    let mut length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut buffer = vec![0; 16 * 1024];
    let mut line = Vec::new();
    loop {
        let count = reader.read(&mut buffer).await.unwrap_or(0);
        let mut text = String::new();
        for byte in &buffer[..count] {
            if *byte == b'\n' || line.len() == LINE_BYTES_MAX {
                flush_line(&mut line, &mut text);
            }
            if *byte != b'\n' {
                line.push(*byte);
            }
        }
        if count == 0 && !line.is_empty() {
            flush_line(&mut line, &mut text);
        }
        length += text.len() as u64;
        if length > LOG_BYTES_MAX {
            // A log that cannot be written must not end an agent.
            let _ = file.set_len(0);
            length = text.len() as u64;
        }
        let _ = file.write_all(text.as_bytes());
        if count == 0 {
            return;
        }
    }
}

fn flush_line(line: &mut Vec<u8>, text: &mut String) {
    text.push_str(&visible_line(&String::from_utf8_lossy(line)));
    text.push('\n');
    line.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn written(bytes: &[u8]) -> String {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let (writer, log) = Log::start(open(&path).expect("a file")).expect("a pipe");
        File::from(writer).write_all(bytes).expect("written");
        log.finish().await;
        std::fs::read_to_string(path).expect("text")
    }

    #[tokio::test]
    async fn output_is_made_printable_line_by_line() {
        assert_eq!(written(b"a\x1b[2Jb\n\xff\nlast").await, "a\\u{1b}[2Jb\n\u{fffd}\nlast\n");
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        assert_eq!(
            written(long.as_bytes()).await.lines().map(str::len).collect::<Vec<_>>(),
            [LINE_BYTES_MAX, 1]
        );
    }

    #[tokio::test]
    async fn a_full_pipe_drops_lines_and_does_not_block() {
        let dir = tempfile::tempdir().expect("a directory");
        let (writer, log) =
            Log::start(open(&dir.path().join("log")).expect("a file")).expect("a pipe");
        // On this runtime of one thread nothing is read in between.
        let mut writer = File::from(writer);
        let dropped = (0..1000).filter(|_| writer.write_all(&[b'x'; 1024]).is_err()).count();
        assert!(dropped > 0);
        drop(writer);
        log.finish().await;
    }

    #[tokio::test]
    async fn a_log_that_exceeds_its_limit_starts_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let file = open(&path).expect("a file");
        file.set_len(LOG_BYTES_MAX).expect("a length");
        let (writer, log) = Log::start(file).expect("a pipe");
        File::from(writer).write_all(b"new\n").expect("written");
        log.finish().await;
        assert_eq!(std::fs::read_to_string(path).expect("text"), "new\n");
    }
}
