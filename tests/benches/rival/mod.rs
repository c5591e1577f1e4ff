//! The rivals of a bench: the reference server, Redis streams, and Hive by unary calls and by
//! streams, each behind the same producer and the same consumer.
//!
//! Invariant: all do the same work. A send has ended when its message is synced; a consumer acks
//! each page before it waits for the next one; bodies have 200 bytes.

mod harness;
mod process;
pub(crate) mod redis;
mod reference;
#[path = "../reference/wire.rs"]
mod reference_wire;
mod server;
mod streamed;
mod unary;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use harness::Harness;
use prost::bytes::Bytes;
use tokio::task::JoinSet;

use crate::sample::{Sample, micros};
pub(crate) use server::Server;
pub(crate) use unary::ack;

/// Bytes of a message.
const BODY: &str = match std::str::from_utf8(&[b'x'; 200]) {
    Ok(body) => body,
    Err(_) => "",
};

/// A system, and the way in which it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Reference,
    Redis,
    Unary,
    Streamed,
}

impl Kind {
    /// Returns those that `HIVE_BENCH_RIVALS` names, or all; without Redis if it is missing.
    pub(crate) fn available() -> Vec<Self> {
        let names = std::env::var("HIVE_BENCH_RIVALS").ok();
        let is_named = |kind: &Self| {
            names.as_ref().is_none_or(|names| {
                names.split(',').any(|name| name.eq_ignore_ascii_case(kind.name()))
            })
        };
        let all = [Self::Reference, Self::Redis, Self::Unary, Self::Streamed];
        let mut kinds: Vec<Self> = all.into_iter().filter(is_named).collect();
        if kinds.contains(&Self::Redis) && !redis::is_installed() {
            crate::progress("redis-server is not installed: there are no figures of Redis");
            kinds.retain(|kind| *kind != Self::Redis);
        }
        kinds
    }

    pub(crate) fn is_hive(self) -> bool {
        matches!(self, Self::Unary | Self::Streamed)
    }

    /// Returns the name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reference => "ref",
            Self::Redis => "Redis",
            Self::Unary => "unary",
            Self::Streamed => "streamed",
        }
    }
}

/// The sockets of a server.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    kind: Kind,
    /// The socket of producers.
    socket: PathBuf,
    /// The directory of the sockets of agents, if they have their own.
    agents: PathBuf,
}

/// The sends of a producer.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    /// From the start of each send to its end, in microseconds.
    pub(crate) sample: Sample,
}

impl Door {
    async fn channel(&self, agent: Option<usize>) -> anyhow::Result<tonic::transport::Channel> {
        let socket = match agent {
            Some(agent) => self.agents.join(format!("a{agent}/hive.sock")),
            None => self.socket.clone(),
        };
        Ok(hive_proto::connect::connect(&socket).await?)
    }

    /// Connects to the operator's socket of a Hive.
    pub(crate) async fn operator(&self) -> anyhow::Result<tonic::transport::Channel> {
        self.channel(None).await
    }

    /// Connects a producer.
    pub(crate) async fn producer(&self) -> anyhow::Result<Producer> {
        Ok(match self.kind {
            Kind::Reference => Producer::Reference(reference::Client::connect(&self.socket).await?),
            Kind::Redis => Producer::Redis(redis::Client::connect(&self.socket).await?),
            Kind::Unary => {
                let client = unary::Client(self.channel(None).await?);
                Producer::Unary { client, ids: Arc::new(unary::Ids::new()) }
            }
            Kind::Streamed => {
                Producer::Streamed(Box::new(streamed::Producer::new(self.channel(None).await?)))
            }
        })
    }

    /// Connects an agent of its own socket, and parks it.
    pub(crate) async fn park(&self, agent: usize) -> anyhow::Result<Parked> {
        Ok(match self.kind {
            Kind::Reference | Kind::Redis => {
                let socket = self.agents.join(format!("a{agent}.sock"));
                let client = reference::Client::connect(&socket).await?;
                Parked::Reference(reference::Consumer::new(client, agent, 1))
            }
            Kind::Unary | Kind::Streamed => {
                Parked::Hive(Harness::attach(self.channel(Some(agent)).await?).await?)
            }
        })
    }

    /// Connects the consumer of an inbox, which takes up to `max` messages at once.
    pub(crate) async fn consumer(&self, inbox: usize, max: usize) -> anyhow::Result<Consumer> {
        let most = u32::try_from(max)?;
        Ok(match self.kind {
            Kind::Reference => {
                let client = reference::Client::connect(&self.socket).await?;
                Consumer::Reference(reference::Consumer::new(client, inbox, max))
            }
            Kind::Redis => {
                let client = redis::Client::connect(&self.socket).await?;
                Consumer::Redis(redis::Consumer::new(client, inbox, max))
            }
            Kind::Unary => {
                Consumer::Unary(unary::Consumer::new(self.channel(Some(inbox)).await?, most))
            }
            Kind::Streamed => {
                let channel = self.channel(Some(inbox)).await?;
                Consumer::Streamed(streamed::Consumer::new(channel, most))
            }
        })
    }
}

/// An agent that waits for work.
#[derive(Debug)]
pub(crate) enum Parked {
    Reference(reference::Consumer),
    Hive(Harness),
}

impl Parked {
    /// Waits until the agent has a message: a long poll, or the turn of a harness.
    pub(crate) async fn message(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Reference(consumer) => consumer.receive().await.map(drop),
            Self::Hive(harness) => harness.begun().await,
        }
    }
}

/// A connection that sends.
#[derive(Debug)]
pub(crate) enum Producer {
    Reference(reference::Client),
    Redis(redis::Client),
    Unary { client: unary::Client, ids: Arc<unary::Ids> },
    Streamed(Box<streamed::Producer>),
}

impl Producer {
    /// Sends a message of Hive to all agents by a unary call, and waits until it is accepted.
    pub(crate) async fn send_to_everyone(&self) -> anyhow::Result<()> {
        match self {
            Self::Unary { client, ids } => {
                Ok(client.send(unary::message_to_everyone(ids, BODY)).await?)
            }
            Self::Reference(_) | Self::Redis(_) | Self::Streamed(_) => {
                anyhow::bail!("only a unary producer of Hive sends to everyone")
            }
        }
    }

    /// Sends a message, and waits until it is accepted.
    pub(crate) async fn send(&mut self, inbox: usize) -> anyhow::Result<()> {
        match self {
            Self::Reference(client) => {
                Ok(client.send(inbox, &Bytes::from_static(BODY.as_bytes())).await?)
            }
            Self::Redis(client) => client.send(inbox, BODY.as_bytes()).await,
            Self::Unary { client, ids } => {
                Ok(client.send(unary::message(ids, inbox, BODY)).await?)
            }
            Self::Streamed(producer) => producer.send(inbox, BODY).await,
        }
    }

    /// Sends to the inboxes that `next` names, with up to `window` sends without an answer.
    pub(crate) async fn load(
        self,
        window: usize,
        next: impl FnMut() -> Option<usize> + Send + 'static,
    ) -> anyhow::Result<Tally> {
        match self {
            Self::Redis(mut client) => client.load(window, next, BODY.as_bytes()).await,
            Self::Streamed(mut producer) => producer.load(window, next, BODY).await,
            Self::Reference(client) => {
                calls(window, next, move || Self::Reference(client.clone())).await
            }
            Self::Unary { client, ids } => {
                let one = move || Self::Unary { client: client.clone(), ids: Arc::clone(&ids) };
                calls(window, next, one).await
            }
        }
    }
}

/// Sends by `window` concurrent calls on one connection, one after the other each.
async fn calls(
    window: usize,
    next: impl FnMut() -> Option<usize> + Send + 'static,
    producer: impl Fn() -> Producer,
) -> anyhow::Result<Tally> {
    let next = Arc::new(Mutex::new(next));
    let mut tasks = JoinSet::new();
    for _ in 0..window {
        let (mut producer, next) = (producer(), Arc::clone(&next));
        tasks.spawn(async move {
            let mut tally = Tally::default();
            loop {
                let inbox = next.lock().unwrap_or_else(PoisonError::into_inner)();
                let Some(inbox) = inbox else { return anyhow::Ok(tally) };
                let start = Instant::now();
                producer.send(inbox).await?;
                tally.sample.push(micros(start.elapsed()));
                tally.sent += 1;
            }
        });
    }
    let mut sum = Tally::default();
    while let Some(tally) = tasks.join_next().await {
        let tally = tally??;
        sum.sent += tally.sent;
        sum.sample.append(tally.sample);
    }
    Ok(sum)
}

/// A connection that receives the mail of one inbox.
#[derive(Debug)]
pub(crate) enum Consumer {
    Reference(reference::Consumer),
    Redis(redis::Consumer),
    Unary(unary::Consumer),
    Streamed(streamed::Consumer),
}

impl Consumer {
    /// Acks what was received last, and waits for more; returns the number of its messages.
    pub(crate) async fn receive(&mut self) -> anyhow::Result<usize> {
        match self {
            Self::Reference(consumer) => consumer.receive().await,
            Self::Redis(consumer) => consumer.receive().await,
            Self::Unary(consumer) => consumer.receive().await,
            Self::Streamed(consumer) => consumer.receive().await,
        }
    }

    /// Acks what was received last, and ends.
    pub(crate) async fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Reference(consumer) => consumer.finish().await,
            Self::Redis(consumer) => consumer.finish().await,
            Self::Unary(consumer) => consumer.finish().await,
            Self::Streamed(consumer) => consumer.finish().await,
        }
    }
}
