//! Measures the Rust client, or the generated client alone, for `make bench WORKLOADS=kits`.
//!
//! ```text
//! hive-client-rates kit|generated send|receive SOCKET AGENT COUNT WINDOW
//! ```
//!
//! It sends COUNT messages to the agent, or takes and acks as many of its mail, with at most WINDOW
//! of them under way, and prints the seconds that it took. A tenth of COUNT goes before, and does
//! not count.
//!
//! Invariant: both ways make the same calls, with one connection and the same window.

use std::cell::Cell;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures_util::future::try_join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hive_client::v1::inbox_service_client::InboxServiceClient;
use hive_client::v1::message_service_client::MessageServiceClient;
use hive_client::v1::settlement::{Action, Target};
use hive_client::v1::settlement_result::Result as Outcome;
use hive_client::v1::stream_deliveries_request::Step as Request;
use hive_client::v1::stream_deliveries_response::Step as Response;
use hive_client::v1::{
    Ack, DeliveryState, DeliveryWindow, LeasedDeliveries, OpenDeliveries, SendMessageRequest,
    SettleDeliveriesRequest, Settlement, StreamDeliveriesRequest,
};
use hive_client::{Hive, MailOptions, Options};
use tokio::sync::mpsc::unbounded_channel;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Endpoint;

/// What is to be done.
struct Work {
    socket: PathBuf,
    agent: String,
    count: usize,
    window: u32,
    body: String,
}

/// Notes when the counted part begins and ends.
struct Clock {
    begin: usize,
    end: usize,
    begun: Cell<usize>,
    done: Cell<usize>,
    started: Cell<Instant>,
}

impl Clock {
    fn new(count: usize) -> Self {
        let begin = count / 10;
        let (begun, done) = (Cell::new(0), Cell::new(0));
        Self { begin, end: begin + count, begun, done, started: Cell::new(Instant::now()) }
    }

    /// Takes a turn of a send, while there is one.
    fn begins(&self) -> bool {
        let begun = self.begun.replace(self.begun.get() + 1);
        begun < self.end
    }

    /// Counts one that is done; returns whether it was the last.
    fn tick(&self) -> bool {
        self.done.set(self.done.get() + 1);
        if self.done.get() == self.begin {
            self.started.set(Instant::now());
        }
        self.done.get() == self.end
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [way, what, socket, agent, count, window] = args.as_slice() else {
        bail!("usage: hive-client-rates kit|generated send|receive SOCKET AGENT COUNT WINDOW");
    };
    let work = Work {
        socket: socket.into(),
        agent: agent.clone(),
        count: count.parse().context("COUNT is a number")?,
        window: window.parse().context("WINDOW is a number")?,
        body: "x".repeat(200),
    };
    let took = match (way.as_str(), what.as_str()) {
        ("kit", "send") => work.kit_sends().await?,
        ("kit", "receive") => work.kit_receives().await?,
        ("generated", "send") => work.generated_sends().await?,
        ("generated", "receive") => work.generated_receives().await?,
        _ => bail!("{way} {what}: there is no such way or work"),
    };
    Ok(writeln!(std::io::stdout(), "{}", took.as_secs_f64())?)
}

impl Work {
    fn hive(&self) -> anyhow::Result<Hive> {
        Ok(Hive::connect_with(Options { socket: self.socket.clone(), ..Options::default() })?)
    }

    async fn kit_sends(&self) -> anyhow::Result<Duration> {
        let (hive, clock) = (self.hive()?, Clock::new(self.count));
        try_join_all((0..self.window).map(async |_| {
            while clock.begins() {
                hive.send(self.agent.as_str(), self.body.clone()).await?;
                clock.tick();
            }
            anyhow::Ok(())
        }))
        .await?;
        Ok(clock.started.get().elapsed())
    }

    async fn kit_receives(&self) -> anyhow::Result<Duration> {
        let clock = Clock::new(self.count);
        let mut mail =
            self.hive()?.mail(MailOptions { window: self.window, ..MailOptions::default() });
        let mut acks = FuturesUnordered::new();
        let took = loop {
            tokio::select! {
                delivery = mail.next() => {
                    let delivery = delivery.context("the mail has ended")??;
                    acks.push(delivery.ack());
                }
                Some(acked) = acks.next() => {
                    acked?;
                    if clock.tick() {
                        break clock.started.get().elapsed();
                    }
                }
            }
        };
        mail.close().await;
        Ok(took)
    }

    async fn channel(&self) -> anyhow::Result<tonic::transport::Channel> {
        let endpoint = Endpoint::try_from(format!("unix:{}", self.socket.display()))?;
        Ok(endpoint.connect().await?)
    }

    async fn generated_sends(&self) -> anyhow::Result<Duration> {
        let (messages, clock) =
            (MessageServiceClient::new(self.channel().await?), Clock::new(self.count));
        try_join_all((0..self.window).map(async |worker| {
            let mut messages = messages.clone();
            while clock.begins() {
                let mut request = tonic::Request::new(SendMessageRequest {
                    request_id: format!("{}-{worker}-{}", std::process::id(), clock.begun.get()),
                    to: Some(self.agent.as_str().into()),
                    body: self.body.clone(),
                    ..Default::default()
                });
                request.set_timeout(Duration::from_secs(10));
                messages.send_message(request).await?;
                clock.tick();
            }
            anyhow::Ok(())
        }))
        .await?;
        Ok(clock.started.get().elapsed())
    }

    async fn generated_receives(&self) -> anyhow::Result<Duration> {
        let clock = Clock::new(self.count);
        let (outbox, requests) = unbounded_channel();
        let write = |step| outbox.send(StreamDeliveriesRequest { step: Some(step) });
        write(Request::Open(OpenDeliveries {
            stream_id: "rates".to_owned(),
            window: Some(DeliveryWindow { deliveries: self.window, bytes: 0 }),
            orphan_grace: None,
        }))?;
        let mut inbox = InboxServiceClient::new(self.channel().await?);
        let requests = UnboundedReceiverStream::new(requests);
        let mut stream = inbox.stream_deliveries(requests).await?.into_inner();
        while let Some(response) = stream.message().await? {
            match response.step {
                Some(Response::Leased(leased)) => write(Request::Settle(acks(leased)))?,
                Some(Response::Settled(settled)) => {
                    for result in settled.results {
                        let acked = Some(Outcome::State(DeliveryState::Acked.into()));
                        ensure!(result.result == acked, "not acked: {result:?}");
                        if clock.tick() {
                            return Ok(clock.started.get().elapsed());
                        }
                    }
                }
                _ => {}
            }
        }
        bail!("the stream has ended")
    }
}

/// Returns acks of what the broker has leased.
fn acks(leased: LeasedDeliveries) -> SettleDeliveriesRequest {
    let ack = |token| Settlement {
        target: Some(Target::LeaseToken(token)),
        action: Some(Action::Ack(Ack {})),
    };
    let settlements =
        leased.deliveries.into_iter().map(|delivery| ack(delivery.lease_token)).collect();
    SettleDeliveriesRequest { settlements }
}
