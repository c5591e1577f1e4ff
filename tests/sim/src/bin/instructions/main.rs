//! `instructions [--metrics] [--traces|--traced] unary|streamed N`: sends, receives and acks N
//! messages, one after the other, in one process with the broker and on one thread, so that a
//! profiler can count what each costs.
//!
//! `tests/sim/tests/instructions.rs` runs it under callgrind. Invariant: each message has been
//! accepted, received and acked when the program ends, and nothing ran on another thread.

mod collector;
mod one_thread;
mod streamed;
mod unary;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use collector::Collector;
use hive_broker::clock::ManualClock;
use hive_proto::v1::recipient::To;
use hive_proto::v1::settlement::{Action, Target};
use hive_proto::v1::{
    Ack, LeasedDelivery, Recipient, SendMessageRequest, Settlement, SettlementResult,
    settlement_result,
};
use one_thread::OneThread;
use tonic::transport::Channel;

/// The same allocator as in `hived`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of a message, as in the benches.
const BODY_BYTES: usize = 200;

/// The span of the producer.
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The trace of the last message: all is exported once its spans are.
const LAST_TRACE: [u8; 16] = *b"the last message";
const LAST_TRACEPARENT: &str = "00-746865206c617374206d657373616765-b7ad6b7169203331-01";

/// Most traces that begin at once.
const BURST: u64 = 100;

/// So many messages are sent in this time by the broker's clock: 2500 a second.
const PACE: (u64, Duration) = (5, Duration::from_millis(2));

/// Spans of a message: its send and its delivery.
const SPANS: u64 = 2;

/// The agent whose inbox is used.
const AGENT: &str = "a0";

/// Sends, receives and acks messages in one process with the broker, on one thread.
#[derive(Debug, Parser)]
struct Cli {
    /// How messages are sent and received.
    way: Way,
    /// Number of messages.
    messages: u64,
    /// Offers metrics.
    #[arg(long)]
    metrics: bool,
    /// Exports traces, while 2500 messages a second are sent: the broker begins a trace for some.
    #[arg(long)]
    traces: bool,
    /// Exports traces, and states one in each call of the producer.
    #[arg(long, conflicts_with = "traces")]
    traced: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    /// By `SendMessage`, and `ReceiveMessages` that acks the message before.
    Unary,
    /// By `StreamMessages` and `StreamDeliveries`.
    Streamed,
}

/// The two connections of a run.
#[derive(Debug)]
struct Channels {
    tracing: Tracing,
    /// To the operator's socket, which has no rate limit.
    producer: Channel,
    /// To the agent's socket.
    consumer: Channel,
}

fn main() -> anyhow::Result<()> {
    let Cli { way, messages, metrics, traces, traced } = Cli::parse();
    let metrics = if metrics { "[broker.metrics]\nsocket = \"metrics.sock\"\n" } else { "" };
    let collector = (traces || traced).then(Collector::bind).transpose()?;
    let section = collector.as_ref().map(Collector::config).transpose()?.unwrap_or_default();
    let config = format!("[hive]\nname = \"count\"\n[agents.{AGENT}]\n{metrics}{section}");
    let broker = OneThread::start(&config)?;
    let clients = async {
        let channels = Channels {
            tracing: Tracing {
                clock: traces.then(|| broker.clock()),
                all: traced.then_some(TRACEPARENT),
                last: (traces || traced).then_some(LAST_TRACEPARENT),
            },
            producer: hive_proto::connect::connect(&broker.operator_socket()).await?,
            consumer: hive_proto::connect::connect(&broker.agent_socket(AGENT)).await?,
        };
        match way {
            Way::Unary => unary::run(channels, messages).await,
            Way::Streamed => streamed::run(channels, messages).await,
        }
    };
    let collected = async {
        match collector {
            Some(collector) => collector.take(LAST_TRACE, SPANS).await,
            None => Ok(0),
        }
    };
    let ((), spans) = broker.run(async { tokio::try_join!(clients, collected) })?;
    // The last one is in a trace of its own.
    let (least, most) = match (traces, traced) {
        (_, true) => (messages, messages),
        (true, _) => (messages / 25, BURST + messages / 25 + 2),
        (false, false) => (0, 0),
    };
    anyhow::ensure!(
        (SPANS * least..=SPANS * most).contains(&spans),
        "{spans} spans of {messages} messages were exported"
    );
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    anyhow::ensure!(threads == 1, "there are {threads} threads; counts are of one");
    Ok(())
}

/// The traces of the producer's calls.
#[derive(Debug)]
struct Tracing {
    /// The clock of a broker that begins traces.
    clock: Option<Arc<ManualClock>>,
    /// The span of all calls but the last.
    all: Option<&'static str>,
    /// The span of the last call.
    last: Option<&'static str>,
}

impl Tracing {
    /// Returns the span of the call that sends this message, for which time passes.
    fn next(&self, number: u64, messages: u64) -> Option<&'static str> {
        if let Some(clock) = &self.clock
            && number.is_multiple_of(PACE.0)
        {
            clock.advance(PACE.1);
        }
        if number + 1 == messages { self.last } else { self.all }
    }
}

/// Returns a call of the producer.
fn call<T>(message: T, traceparent: Option<&str>) -> tonic::Request<T> {
    let request = tonic::Request::new(message);
    match traceparent {
        Some(traceparent) => hive_proto::in_trace(request, traceparent),
        None => request,
    }
}

/// Returns a message to the agent. Ids count up, as those of most clients.
fn message(number: u64) -> SendMessageRequest {
    SendMessageRequest {
        request_id: format!("send-{number}"),
        to: Some(Recipient { to: Some(To::Agent(AGENT.to_owned())) }),
        body: "x".repeat(BODY_BYTES),
        ..SendMessageRequest::default()
    }
}

/// Returns the ack of the one delivery that was received.
fn ack(deliveries: Vec<LeasedDelivery>) -> anyhow::Result<Settlement> {
    let count = deliveries.len();
    let [leased] =
        <[_; 1]>::try_from(deliveries).ok().with_context(|| format!("{count} deliveries came"))?;
    let (target, action) = (Target::LeaseToken(leased.lease_token), Action::Ack(Ack {}));
    Ok(Settlement { target: Some(target), action: Some(action) })
}

/// Fails unless there are this many settlements, all with effect.
fn check(results: &[SettlementResult], count: usize) -> anyhow::Result<()> {
    let is_done = |result: &SettlementResult| {
        matches!(result.result, Some(settlement_result::Result::State(_)))
    };
    let is_right = results.len() == count && results.iter().all(is_done);
    anyhow::ensure!(is_right, "{count} acks were sent, and these are their results: {results:?}");
    Ok(())
}
