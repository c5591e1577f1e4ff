//! A collector of traces on the thread of the broker: it counts the spans that it takes.
//!
//! Invariant: a span counts once the post that has it was read whole.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// The answer to a post: all is taken.
const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[derive(Debug)]
pub(crate) struct Collector {
    listener: TcpListener,
}

impl Collector {
    pub(crate) fn bind() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// Returns the section of the configuration that names it.
    pub(crate) fn config(&self) -> anyhow::Result<String> {
        let address = self.listener.local_addr()?;
        Ok(format!("[broker.traces]\notlp = \"http://{address}/v1/traces\"\n"))
    }

    /// Takes posts until so many spans of a trace have come; returns the number of all spans.
    pub(crate) async fn take(self, trace: [u8; 16], wanted: u64) -> anyhow::Result<u64> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let (mut taken, mut of_trace, mut body) = (0, 0, Vec::new());
        // hived writes the trace of a span first.
        let begin = [&[0x0a, 16], &trace[..]].concat();
        while of_trace < wanted {
            let (connection, _) = listener.accept().await?;
            let mut connection = BufReader::new(connection);
            while of_trace < wanted && post(&mut connection, &mut body).await? {
                let count = |span: &[u8]| {
                    taken += 1;
                    of_trace += u64::from(span.starts_with(&begin));
                };
                each_span(&body, count).context("the post is not OTLP")?;
            }
        }
        Ok(taken)
    }
}

/// Reads a post into `body` and answers it; returns false at the end of the connection.
async fn post(connection: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> anyhow::Result<bool> {
    let (mut line, mut bytes) = (String::new(), 0);
    loop {
        line.clear();
        if connection.read_line(&mut line).await? == 0 {
            return Ok(false);
        }
        let header = line.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(length) = header.strip_prefix("content-length:") {
            bytes = length.trim().parse()?;
        }
    }
    body.resize(bytes, 0);
    connection.read_exact(body).await?;
    connection.write_all(TAKEN).await?;
    Ok(true)
}

/// Passes the spans in an `ExportTraceServiceRequest` to `work`.
fn each_span(request: &[u8], mut work: impl FnMut(&[u8])) -> Option<()> {
    each(request, |_, resource_spans| {
        each(resource_spans, |field, scope_spans| {
            if field != 2 {
                return Some(());
            }
            each(scope_spans, |field, span| {
                if field == 2 {
                    work(span);
                }
                Some(())
            })
        })
    })
}

/// Passes the fields of a message that has only messages to `work`, by their numbers.
fn each<'m>(
    mut message: &'m [u8],
    mut work: impl FnMut(u64, &'m [u8]) -> Option<()>,
) -> Option<()> {
    while !message.is_empty() {
        let field = varint(&mut message)? >> 3;
        let length = usize::try_from(varint(&mut message)?).ok()?;
        let (value, rest) = message.split_at_checked(length)?;
        work(field, value)?;
        message = rest;
    }
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
