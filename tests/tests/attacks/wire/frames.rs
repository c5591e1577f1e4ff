//! HTTP/2 by hand: frames as bytes, and a connection that sends any bytes and records what it
//! receives.
//!
//! What it is not: a client that follows the protocol. Invariant: nothing is checked, completed or
//! reordered before it is sent.

use std::collections::BTreeMap;
use std::path::Path;

use hive_tests::rig::soon;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// The first bytes of every connection.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;

pub(crate) const SETTING_INITIAL_WINDOW: u16 = 4;
pub(crate) const SETTING_MAX_FRAME: u16 = 5;

/// A code of HTTP/2 that ends a connection or a stream.
pub(crate) type Code = u32;
pub(crate) const PROTOCOL_ERROR: Code = 1;
pub(crate) const FLOW_CONTROL_ERROR: Code = 3;
pub(crate) const STREAM_CLOSED: Code = 5;
pub(crate) const FRAME_SIZE_ERROR: Code = 6;
pub(crate) const REFUSED_STREAM: Code = 7;
pub(crate) const CANCEL: Code = 8;
pub(crate) const COMPRESSION_ERROR: Code = 9;
pub(crate) const ENHANCE_YOUR_CALM: Code = 11;

/// Returns a frame with its right length.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    claiming(payload.len(), kind, flags, stream, payload)
}

/// Returns a frame that claims to have `length` bytes.
pub(crate) fn claiming(length: usize, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(length).expect("a frame's length").to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Appends a number of a header block, with a prefix of this many bits.
fn number(out: &mut Vec<u8>, first: u8, bits: u8, value: usize) {
    let full = (1_usize << bits) - 1;
    if value < full {
        out.push(first | u8::try_from(value).expect("below the prefix"));
        return;
    }
    out.push(first | u8::try_from(full).expect("a prefix"));
    let mut rest = value - full;
    while rest >= 128 {
        out.push(u8::try_from(rest % 128).expect("seven bits") | 128);
        rest /= 128;
    }
    out.push(u8::try_from(rest).expect("seven bits"));
}

/// Returns a header with plain name and value; `indexed` puts it into the peer's table.
pub(crate) fn header(name: &str, value: &str, indexed: bool) -> Vec<u8> {
    let mut out = vec![if indexed { 0x40 } else { 0 }];
    for text in [name, value] {
        number(&mut out, 0, 7, text.len());
        out.extend(text.as_bytes());
    }
    out
}

/// Returns a request to resize the table of headers.
pub(crate) fn table_size(bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    number(&mut out, 0x20, 5, bytes);
    out
}

pub(crate) fn call_headers(path: &str) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    fields.iter().flat_map(|(name, value)| header(name, value, false)).collect()
}

/// Returns a message as encoded in a body, with its right length.
pub(crate) fn message(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend(u32::try_from(bytes.len()).expect("a message's length").to_be_bytes());
    out.extend(bytes);
    out
}

/// Returns a whole call: headers, and one message that ends the stream.
pub(crate) fn call(stream: u32, path: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = frame(HEADERS, END_HEADERS, stream, &call_headers(path));
    out.extend(frame(DATA, END_STREAM, stream, &message(bytes)));
    out
}

pub(crate) fn setting(id: u16, value: u32) -> Vec<u8> {
    let mut payload = id.to_be_bytes().to_vec();
    payload.extend(value.to_be_bytes());
    frame(SETTINGS, 0, 0, &payload)
}

/// Returns a frame that opens the window by this many further bytes.
pub(crate) fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// The data that a connection has received.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) goaway: Option<Code>,
    /// The codes of streams that were reset.
    pub(crate) reset: BTreeMap<u32, Code>,
    /// Streams that were answered with headers.
    pub(crate) answered: Vec<u32>,
    /// The number of bytes of answers.
    pub(crate) bytes: usize,
    /// The number of acknowledged pings and settings.
    pub(crate) acks: usize,
    /// The number of updates of the connection's window.
    pub(crate) windows: usize,
}

/// A connection that ignores the protocol's rules.
#[derive(Debug)]
pub(crate) struct Raw {
    stream: UnixStream,
    buffer: Vec<u8>,
    pub(crate) heard: Heard,
}

impl Raw {
    /// Connects and sends nothing.
    pub(crate) async fn mute(socket: &Path) -> std::io::Result<Self> {
        Ok(Self {
            stream: UnixStream::connect(socket).await?,
            buffer: Vec::new(),
            heard: Heard::default(),
        })
    }

    /// Connects and sends a preface with these settings. The broker's settings are accepted unread,
    /// so that its windows are open.
    pub(crate) async fn greet(socket: &Path, settings: &[u8]) -> std::io::Result<Self> {
        let mut raw = Self::mute(socket).await?;
        raw.stream.write_all(PREFACE).await?;
        raw.stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
        raw.stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await?;
        raw.stream.write_all(settings).await?;
        Ok(raw)
    }

    /// Sends bytes; a peer that hangs up during it has received enough.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let Self { stream, buffer, heard } = self;
        let (mut from, mut to) = stream.split();
        let writing = to.write_all(bytes);
        tokio::pin!(writing);
        let mut chunk = [0; 16 * 1024];
        // Both ways at once, so that a peer that answers each frame need not wait for a read.
        loop {
            tokio::select! {
                written = &mut writing => return written,
                read = from.read(&mut chunk) => {
                    let count = read?;
                    if count == 0 {
                        return Err(std::io::ErrorKind::UnexpectedEof.into());
                    }
                    buffer.extend_from_slice(&chunk[..count]);
                    heard.take(buffer);
                }
            }
        }
    }

    /// Sends bytes and does not read.
    pub(crate) async fn send_deaf(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads until this holds, or the peer has hung up; returns whether it holds.
    pub(crate) async fn until(&mut self, what: &str, holds: impl Fn(&Heard) -> bool) -> bool {
        let mut chunk = vec![0; 64 * 1024];
        while !holds(&self.heard) {
            match soon(what, self.stream.read(&mut chunk)).await {
                Ok(count) if count > 0 => self.buffer.extend_from_slice(&chunk[..count]),
                Ok(_) | Err(_) => return false,
            }
            self.heard.take(&mut self.buffer);
        }
        true
    }

    /// Reads until the peer hangs up; returns the code with which it ended the connection.
    pub(crate) async fn end(&mut self) -> Option<Code> {
        self.until("the broker hangs up", |_| false).await;
        self.heard.goaway
    }
}

impl Heard {
    /// Takes whole frames from the beginning of the buffer.
    fn take(&mut self, buffer: &mut Vec<u8>) {
        let mut at = 0;
        while let Some(head) = buffer.get(at..at + 9) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let (kind, flags) = (head[3], head[4]);
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let Some(payload) = buffer.get(at + 9..at + 9 + length) else { break };
            let code = |from: usize| {
                let bytes = payload.get(from..from + 4).and_then(|bytes| bytes.try_into().ok());
                u32::from_be_bytes(bytes.unwrap_or_default())
            };
            match kind {
                DATA => self.bytes += length,
                HEADERS => self.answered.push(stream),
                // The first is the answer to the call; later frames for it get another.
                RST_STREAM => _ = self.reset.entry(stream).or_insert(code(0)),
                // The first says that no more is accepted, the last why; the worse one counts.
                GOAWAY => self.goaway = self.goaway.max(Some(code(4))),
                PING | SETTINGS if flags & ACK != 0 => self.acks += 1,
                WINDOW_UPDATE if stream == 0 => self.windows += 1,
                _ => {}
            }
            at += 9 + length;
        }
        buffer.drain(..at);
    }
}
