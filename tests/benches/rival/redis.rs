//! Redis streams: a `redis-server` that syncs at each write, and a client that speaks RESP.
//!
//! Invariant: an answer is read for each command, in order; an error ends the bench.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::Command;

use super::Tally;
use crate::sample::{Sample, micros};

/// The group of all consumers.
const GROUP: &str = "g";
/// The name of the socket in the directory of the server.
pub(crate) const SOCKET: &str = "redis.sock";

/// Returns whether `redis-server` is installed.
pub(crate) fn is_installed() -> bool {
    std::process::Command::new("redis-server")
        .arg("--version")
        .stdout(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns the command that starts the server: it appends and syncs, saves no snapshots, and does
/// not rewrite its log during a round.
pub(crate) fn command(dir: &Path) -> Command {
    let mut command = Command::new("redis-server");
    command.current_dir(dir);
    command.args(["--port", "0", "--daemonize", "no", "--save", "", "--unixsocket"]);
    command.arg(dir.join(SOCKET)).arg("--dir").arg(dir);
    command.args(["--appendonly", "yes", "--appendfsync", "always"]);
    command.args(["--auto-aof-rewrite-percentage", "0"]);
    command
}

/// An answer.
#[derive(Debug)]
enum Reply {
    Text(Vec<u8>),
    Number,
    Nothing,
    List(Vec<Reply>),
}

impl Reply {
    /// Returns the entry of a list.
    fn at(&self, index: usize) -> anyhow::Result<&Self> {
        match self {
            Self::List(list) => list.get(index),
            Self::Text(_) | Self::Number | Self::Nothing => None,
        }
        .ok_or_else(|| anyhow::anyhow!("Redis answered {self:?}"))
    }
}

/// Reads one answer from the beginning of the bytes; `None`: it is not complete.
fn parse(bytes: &[u8], at: &mut usize) -> anyhow::Result<Option<Reply>> {
    let rest = &bytes[*at..];
    let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    let line = std::str::from_utf8(&rest[..end])?;
    *at += end + 2;
    let (kind, text) = line.split_at_checked(1).unwrap_or_default();
    match kind {
        "+" => Ok(Some(Reply::Text(text.into()))),
        ":" => Ok(Some(Reply::Number)),
        "$" | "*" if text == "-1" => Ok(Some(Reply::Nothing)),
        "$" => {
            let (start, length) = (*at, text.parse::<usize>()?);
            *at += length + 2;
            let is_complete = *at <= bytes.len();
            Ok(is_complete.then(|| Reply::Text(bytes[start..start + length].into())))
        }
        "*" => {
            let mut list = Vec::new();
            for _ in 0..text.parse::<usize>()? {
                let Some(entry) = parse(bytes, at)? else { return Ok(None) };
                list.push(entry);
            }
            Ok(Some(Reply::List(list)))
        }
        _ => anyhow::bail!("Redis answered {line}"),
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: UnixStream,
    out: Vec<u8>,
    read: Vec<u8>,
    /// How much of `read` was used.
    used: usize,
}

impl Client {
    pub(crate) async fn connect(socket: &Path) -> anyhow::Result<Self> {
        Ok(Self::new(UnixStream::connect(socket).await?))
    }

    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, out: Vec::new(), read: Vec::new(), used: 0 }
    }

    /// Adds a command to what is written next.
    fn say(&mut self, words: &[&[u8]]) {
        self.out.extend(format!("*{}\r\n", words.len()).bytes());
        for word in words {
            self.out.extend(format!("${}\r\n", word.len()).bytes());
            self.out.extend_from_slice(word);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    async fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    /// Returns the next answer, if it was read.
    fn heard(&mut self) -> anyhow::Result<Option<Reply>> {
        let mut at = self.used;
        if at == self.read.len() {
            return Ok(None);
        }
        let reply = parse(&self.read, &mut at)?;
        if reply.is_some() {
            self.used = at;
        }
        Ok(reply)
    }

    /// Waits for the next answer.
    async fn hear(&mut self) -> anyhow::Result<Reply> {
        loop {
            if let Some(reply) = self.heard()? {
                return Ok(reply);
            }
            self.read.drain(..self.used);
            self.used = 0;
            let count = self.stream.read_buf(&mut self.read).await?;
            anyhow::ensure!(count > 0, "Redis closed the connection");
        }
    }

    /// Waits until the server answers, also after it has loaded its log.
    pub(crate) async fn ready(&mut self) -> anyhow::Result<()> {
        self.say(&[b"PING"]);
        self.flush().await?;
        loop {
            match self.hear().await {
                Ok(_) => return Ok(()),
                Err(error) if error.to_string().contains("LOADING") => {
                    self.read.clear();
                    self.used = 0;
                    tokio::time::sleep(std::time::Duration::from_micros(200)).await;
                    self.say(&[b"PING"]);
                    self.flush().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the streams of these inboxes, each with its group.
    pub(crate) async fn make_groups(&mut self, inboxes: usize) -> anyhow::Result<()> {
        for inbox in 0..inboxes {
            let key = format!("a{inbox}");
            let make: [&[u8]; 6] =
                [b"XGROUP", b"CREATE", key.as_bytes(), GROUP.as_bytes(), b"$", b"MKSTREAM"];
            self.say(&make);
        }
        self.flush().await?;
        for _ in 0..inboxes {
            self.hear().await?;
        }
        Ok(())
    }

    fn say_add(&mut self, inbox: usize, body: &[u8]) {
        self.say(&[b"XADD", format!("a{inbox}").as_bytes(), b"*", b"b", body]);
    }

    pub(crate) async fn send(&mut self, inbox: usize, body: &[u8]) -> anyhow::Result<()> {
        self.say_add(inbox, body);
        self.flush().await?;
        self.hear().await.map(drop)
    }

    /// Sends to the inboxes that `next` names, with up to `window` sends without an answer.
    pub(crate) async fn load(
        &mut self,
        window: usize,
        mut next: impl FnMut() -> Option<usize>,
        body: &[u8],
    ) -> anyhow::Result<Tally> {
        let (mut open, mut sample, mut sent) = (VecDeque::new(), Sample::default(), 0);
        let mut is_over = false;
        loop {
            while open.len() < window && !is_over {
                match next() {
                    Some(inbox) => {
                        self.say_add(inbox, body);
                        open.push_back(Instant::now());
                    }
                    None => is_over = true,
                }
            }
            self.flush().await?;
            if open.is_empty() {
                return Ok(Tally { sent, sample });
            }
            let mut reply = Some(self.hear().await?);
            while reply.is_some() {
                let start = open.pop_front().unwrap_or_else(Instant::now);
                sample.push(micros(start.elapsed()));
                sent += 1;
                reply = self.heard()?;
            }
        }
    }
}

/// The consumer of an inbox.
#[derive(Debug)]
pub(crate) struct Consumer {
    client: Client,
    key: String,
    max: String,
    /// Ids of what was received and is not acked.
    held: Vec<Vec<u8>>,
}

impl Consumer {
    pub(crate) fn new(client: Client, inbox: usize, max: usize) -> Self {
        Self { client, key: format!("a{inbox}"), max: max.to_string(), held: Vec::new() }
    }

    /// Acks the last page, and waits for the next one; returns its length. Both commands are
    /// written at once.
    pub(crate) async fn receive(&mut self) -> anyhow::Result<usize> {
        let (key, acks) = (self.key.as_bytes(), !self.held.is_empty());
        if acks {
            say_ack(&mut self.client, key, &self.held);
        }
        self.client.say(&[
            b"XREADGROUP",
            b"GROUP",
            GROUP.as_bytes(),
            b"c",
            b"COUNT",
            self.max.as_bytes(),
            b"BLOCK",
            b"0",
            b"STREAMS",
            key,
            b">",
        ]);
        self.client.flush().await?;
        if acks {
            self.client.hear().await?;
        }
        let reply = self.client.hear().await?;
        let Reply::List(entries) = reply.at(0)?.at(1)? else {
            anyhow::bail!("Redis answered {reply:?}")
        };
        let mut held = Vec::with_capacity(entries.len());
        for entry in entries {
            let Reply::Text(id) = entry.at(0)? else { anyhow::bail!("Redis answered {entry:?}") };
            held.push(id.clone());
        }
        self.held = held;
        Ok(self.held.len())
    }

    /// Acks the last page.
    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        say_ack(&mut self.client, self.key.as_bytes(), &self.held);
        self.client.flush().await?;
        self.client.hear().await.map(drop)
    }
}

fn say_ack(client: &mut Client, key: &[u8], ids: &[Vec<u8>]) {
    let mut words: Vec<&[u8]> = vec![b"XACK", key, GROUP.as_bytes()];
    words.extend(ids.iter().map(Vec::as_slice));
    client.say(&words);
}
