//! Watchers: the time of a send while a hundred clients follow the log of events, and while none
//! does.
//!
//! One message is sent at a time, to an agent that does not wait for it, and the next one 25 ms
//! later, when every watcher has the event of it. So the machine is idle when a send begins, and
//! what is measured is what the broker does for watchers before the sender has the receipt. In a
//! second figure each send begins as soon as the one before is answered: then the broker, the
//! sender and the hundred clients, which are all of this process, share the cores, so it has no
//! bound.
//! Invariant: rounds with and without watchers take turns on one server, and a watcher that misses
//! an event ends the bench.

use std::time::{Duration, Instant};

use hive_proto::v1::WatchEventsRequest;
use hive_proto::v1::event_service_client::EventServiceClient;
use hive_proto::v1::watch_events_response::Step;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::report::{Bounds, Report};
use crate::rival::{Kind, Producer, Server};
use crate::rounds::{number, rounds};
use crate::sample::{Sample, micros};

const WATCHERS: usize = 100;
/// Inboxes, so that none is full at the end.
const INBOXES: usize = 10;
/// Sends of a round.
const MESSAGES: usize = 300;
/// Time from one send to the next, if the machine is idle in between: enough for all watchers.
const INTERVAL: Duration = Duration::from_millis(25);
/// More rounds than elsewhere, because a tenth is less than rounds of the same differ by.
const ROUNDS_FACTOR: usize = 3;

/// The clients that follow the log.
#[derive(Debug)]
struct Watchers {
    tasks: JoinSet<anyhow::Result<()>>,
    /// For each watcher the last event that it has.
    seen: Vec<watch::Receiver<u64>>,
}

impl Watchers {
    /// Connects these watchers, each by a connection of its own, and waits until all follow.
    async fn start(server: &Server, count: usize) -> anyhow::Result<Self> {
        let (mut tasks, mut seen) = (JoinSet::new(), Vec::new());
        for _ in 0..count {
            let mut events = EventServiceClient::new(server.door().operator().await?);
            let request = WatchEventsRequest { after_sequence: None, ..Default::default() };
            let mut stream = events.watch_events(request).await?.into_inner();
            let first = stream.message().await?.and_then(|response| response.step);
            let Some(Step::Snapshot(snapshot)) = first else {
                anyhow::bail!("a watch began with {first:?}")
            };
            let (saw, sees) = watch::channel(snapshot.last_sequence);
            seen.push(sees);
            tasks.spawn(async move {
                loop {
                    match stream.message().await?.and_then(|response| response.step) {
                        Some(Step::Batch(batch)) => {
                            for event in &batch.events {
                                let before = saw.send_replace(event.sequence);
                                anyhow::ensure!(
                                    event.sequence == before + 1,
                                    "an event is missing"
                                );
                            }
                        }
                        Some(Step::Progress(_)) => {}
                        step => anyhow::bail!("a watch went on with {step:?}"),
                    }
                }
            });
        }
        Ok(Self { tasks, seen })
    }
}

/// Sends the messages of a round, and returns the time of each send. `is_idle`: the next send waits
/// until the machine is.
async fn sends(
    producer: &mut Producer,
    watchers: &mut Watchers,
    is_idle: bool,
) -> anyhow::Result<Sample> {
    let mut sample = Sample::default();
    for number in 0..MESSAGES {
        let goals: Vec<u64> = watchers.seen.iter().map(|sees| *sees.borrow() + 1).collect();
        let start = Instant::now();
        producer.send(number % INBOXES).await?;
        sample.push(micros(start.elapsed()));
        if is_idle {
            for (sees, goal) in watchers.seen.iter_mut().zip(goals) {
                sees.wait_for(|seen| *seen >= goal).await?;
            }
            // Also without watchers: what has rested for longer is slower, so both rest alike.
            tokio::time::sleep_until((start + INTERVAL).into()).await;
        }
    }
    Ok(sample)
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let count = number("HIVE_BENCH_WATCHERS").unwrap_or(WATCHERS);
    let server = Server::start(Kind::Unary, INBOXES).await?;
    let mut producer = server.door().producer().await?;
    for is_idle in [true, false] {
        let (mut medians, mut p99s) = <([Sample; 2], [Sample; 2])>::default();
        for round in 0..ROUNDS_FACTOR * rounds() {
            let load = if is_idle { "one at a time" } else { "one after the other" };
            crate::progress(&format!("watchers: round {}, {load}", round + 1));
            for place in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                let mut watchers = Watchers::start(&server, place * count).await?;
                server.rests().await?;
                let sample = sends(&mut producer, &mut watchers, is_idle).await?;
                medians[place].push(sample.median());
                p99s[place].push(sample.quantile(0.99));
                if let Some(ended) = watchers.tasks.try_join_next() {
                    ended??;
                }
                watchers.tasks.shutdown().await;
            }
        }
        let load = if is_idle { "idle" } else { "busy" };
        let [none, watched] = medians;
        let over = watched.over(&none);
        report.figure("watchers", &format!("{load}: send p50, none"), "us", none, None);
        report.figure("watchers", &format!("{load}: send p50, {count}"), "us", watched, None);
        let bounds = is_idle.then(|| Bounds::only_most(10.0));
        report.figure("watchers", &format!("{load}: {count} over none"), "%", over, bounds);
        let [none, watched] = p99s;
        report.figure("watchers", &format!("{load}: send p99, none"), "us", none, None);
        report.figure("watchers", &format!("{load}: send p99, {count}"), "us", watched, None);
    }
    server.stop().await
}
