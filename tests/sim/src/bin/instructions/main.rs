//! `instructions [--metrics] [--traces] unary|streamed N`: sends, receives and acks N messages, one
//! after the other, in one process with the broker and on one thread, so that a profiler can count
//! what each costs.
//!
//! `tests/sim/tests/instructions.rs` runs it under callgrind. Invariant: each message has been
//! accepted, received and acked when the program ends, and nothing ran on another thread.

mod one_thread;
mod streamed;
mod unary;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
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
    /// Begins a trace for each message, and makes its spans; no collector takes them.
    #[arg(long)]
    traces: bool,
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
    /// To the operator's socket, which has no rate limit.
    producer: Channel,
    /// To the agent's socket.
    consumer: Channel,
}

fn main() -> anyhow::Result<()> {
    let Cli { way, messages, metrics, traces } = Cli::parse();
    let metrics = if metrics { "[broker.metrics]\nsocket = \"metrics.sock\"\n" } else { "" };
    let traces =
        if traces { "[broker.traces]\notlp = \"http://127.0.0.1:9/v1/traces\"\n" } else { "" };
    let config = format!("[hive]\nname = \"count\"\n[agents.{AGENT}]\n{metrics}{traces}");
    let broker = OneThread::start(&config)?;
    broker.run(async {
        let channels = Channels {
            producer: hive_proto::connect::connect(&broker.operator_socket()).await?,
            consumer: hive_proto::connect::connect(&broker.agent_socket(AGENT)).await?,
        };
        match way {
            Way::Unary => unary::run(channels, messages).await,
            Way::Streamed => streamed::run(channels, messages).await,
        }
    })?;
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    anyhow::ensure!(threads == 1, "there are {threads} threads; counts are of one");
    Ok(())
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
