//! The output of a task: stored in a file up to a limit, its end in memory, all of it counted.
//!
//! Invariant: the pipe is read even if the file fails, so a command never waits for the harness.

use std::collections::VecDeque;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::Receiver;

/// Maximum bytes of the end that is stored in memory.
pub const TAIL_BYTES_MAX: usize = 16 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;

/// The output of a running task so far.
#[derive(Debug, Default)]
pub struct Output(Mutex<Received>);

#[derive(Debug, Default)]
struct Received {
    bytes: u64,
    kept_bytes: u64,
    tail: VecDeque<u8>,
}

/// A snapshot of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bytes that were written.
    pub bytes: u64,
    /// Bytes that are kept in the file.
    pub kept_bytes: u64,
    /// The end of the output, at most [`TAIL_BYTES_MAX`] bytes.
    pub tail: String,
}

impl Output {
    /// Returns the output so far.
    pub fn summary(&self) -> Summary {
        let received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = received.tail.iter().copied().collect();
        let is_whole = u64::try_from(bytes.len()).is_ok_and(|length| length == received.bytes);
        Summary {
            bytes: received.bytes,
            kept_bytes: received.kept_bytes,
            tail: text(&bytes, is_whole),
        }
    }

    fn receive(&self, chunk: &[u8]) {
        let mut received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        received.bytes += chunk.len() as u64;
        let chunk = &chunk[chunk.len().saturating_sub(TAIL_BYTES_MAX)..];
        let too_many = (received.tail.len() + chunk.len()).saturating_sub(TAIL_BYTES_MAX);
        received.tail.drain(..too_many);
        received.tail.extend(chunk);
    }

    fn kept(&self, count: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).kept_bytes += count;
    }
}

/// Returns the output in the file of a task whose harness died.
pub fn read_back(path: &Path) -> Summary {
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_MAX as u64)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES_MAX as u64).read_to_end(&mut bytes)?;
        let tail = text(&bytes, length <= TAIL_BYTES_MAX as u64);
        Ok::<_, std::io::Error>(Summary { bytes: length, kept_bytes: length, tail })
    };
    read().unwrap_or_default()
}

/// Reads the pipe to its end.
pub async fn pump(mut pipe: Receiver, mut file: File, output: Arc<Output>, bytes_max: u64) {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut room = bytes_max;
    // An error other than the end leaves nothing to read either.
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let chunk = &buffer[..count];
        output.receive(chunk);
        let kept = chunk.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if kept == 0 {
            continue;
        }
        match write(&mut file, &chunk[..kept]).await {
            Ok(()) => {
                output.kept(kept as u64);
                room -= kept as u64;
            }
            Err(error) => {
                tracing::warn!(%error, "the output of a task cannot be kept any further");
                room = 0;
            }
        }
    }
}

async fn write(file: &mut File, chunk: &[u8]) -> std::io::Result<()> {
    file.write_all(chunk).await?;
    file.flush().await
}

/// Converts bytes to text. The beginning may be the rest of a character that was cut.
fn text(bytes: &[u8], is_whole: bool) -> String {
    let cut = if is_whole {
        0
    } else {
        bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count()
    };
    let text = String::from_utf8_lossy(&bytes[cut..]).into_owned();
    // The replacement of an invalid byte is longer than the byte.
    let start = text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES_MAX));
    text[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_end_in_whole_characters() {
        let output = Output::default();
        output.receive(&[b'x'; 10]);
        assert_eq!(output.summary().tail, "xxxxxxxxxx");
        for _ in 0..3 {
            output.receive("ü".repeat(TAIL_BYTES_MAX / 2).as_bytes());
        }
        output.receive(b"y");
        let Summary { bytes, tail, .. } = output.summary();
        assert_eq!(bytes, 10 + 3 * TAIL_BYTES_MAX as u64 + 1);
        assert_eq!(tail, format!("{}y", "ü".repeat(TAIL_BYTES_MAX / 2 - 1)));
    }

    #[test]
    fn wrong_bytes_are_shown_and_do_not_make_it_longer() {
        let output = Output::default();
        output.receive(b"a\xffb\x80");
        assert_eq!(output.summary().tail, "a\u{fffd}b\u{fffd}");
        output.receive(&[0xff; TAIL_BYTES_MAX]);
        let tail = output.summary().tail;
        assert!(tail.len() <= TAIL_BYTES_MAX && tail.chars().all(|c| c == '\u{fffd}'));
    }
}
