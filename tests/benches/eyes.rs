//! Eyes: W1, W2 and the memory of an idle server without metrics and traces, with metrics that are
//! scraped once a second, and with traces that a collector takes.
//!
//! And the time of a page when many agents have mail.
//!
//! The scraper and the collector are of this process, so what they use is taken from the servers as
//! well. Invariant: the three servers take turns in each round, and each is read or posts in its
//! own rounds as in a working hive.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::task::JoinSet;

use crate::report::{Bounds, Report};
use crate::rival::{Kind, Server};
use crate::rounds::{number, rounds};
use crate::sample::{Sample, micros};
use crate::w1::Pair;
use crate::w2::Loaded;
use crate::{progress, servers};

/// Time between two scrapes. Most are further apart.
const SCRAPE: Duration = Duration::from_secs(1);
/// Agents of the page, if `HIVE_BENCH_AGENTS` does not set their number.
const AGENTS: usize = 1000;
/// Pages of a round.
const PAGES: usize = 5;
/// A page is as old at most, so after it a new one is made.
const PAGE_AGE: Duration = Duration::from_millis(1100);
/// More rounds than elsewhere, because a twentieth is less than rounds of the same differ by.
const ROUNDS_FACTOR: usize = 3;

const METRICS: &str = "[broker.metrics]\nsocket = \"metrics.sock\"\n";

/// What is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Eyes {
    Off,
    Metrics,
    Traces,
}

impl Eyes {
    const ALL: [Self; 3] = [Self::Off, Self::Metrics, Self::Traces];

    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Metrics => "metrics",
            Self::Traces => "traces",
        }
    }
}

/// What reads the servers: a scraper for each that has metrics, and one collector.
#[derive(Debug)]
struct Readers {
    tasks: JoinSet<anyhow::Result<()>>,
    collector: String,
}

impl Readers {
    async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let collector = format!("http://{}/v1/traces", listener.local_addr()?);
        // Posts have up to a megabyte, and some more.
        let take = post(|_: Bytes| async {}).layer(DefaultBodyLimit::max(2 << 20));
        let app = Router::new().route("/v1/traces", take);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { Ok(axum::serve(listener, app).await?) });
        Ok(Self { tasks, collector })
    }

    /// Starts a server with an empty database, and what reads it.
    async fn server(&mut self, kind: Kind, inboxes: usize, eyes: Eyes) -> anyhow::Result<Server> {
        let section = match eyes {
            Eyes::Off => String::new(),
            Eyes::Metrics => METRICS.to_owned(),
            Eyes::Traces => format!("[broker.traces]\notlp = \"{}\"\n", self.collector),
        };
        let server = Server::start_hive(kind, inboxes, &section).await?;
        if eyes == Eyes::Metrics {
            self.tasks.spawn(scrape(server.config_file("metrics.sock")?));
        }
        Ok(server)
    }

    /// Fails if one of them has ended.
    fn check(&mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.tasks.try_join_next() {
            ended??;
        }
        Ok(())
    }
}

/// Scrapes the metrics of a server that runs, until it has ended.
async fn scrape(socket: PathBuf) -> anyhow::Result<()> {
    page(UnixStream::connect(&socket).await?).await?;
    loop {
        tokio::time::sleep(SCRAPE).await;
        let Ok(stream) = UnixStream::connect(&socket).await else { return Ok(()) };
        page(stream).await?;
    }
}

/// Reads the page.
async fn page(mut stream: UnixStream) -> anyhow::Result<()> {
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await?;
    let mut page = Vec::new();
    stream.read_to_end(&mut page).await?;
    anyhow::ensure!(page.starts_with(b"HTTP/1.1 200"), "a scrape failed");
    Ok(())
}

/// The time of a page when each of many agents has a message.
async fn pages(report: &mut Report) -> anyhow::Result<()> {
    let agents = number("HIVE_BENCH_AGENTS").unwrap_or(AGENTS);
    let mut times = Sample::default();
    for round in 0..rounds() {
        progress(&format!("eyes: round {}, pages of {agents} agents", round + 1));
        let server = Server::start_hive(Kind::Unary, agents, METRICS).await?;
        server.door().producer().await?.send_to_everyone().await?;
        server.rests().await?;
        let mut sample = Sample::default();
        for _ in 0..PAGES {
            tokio::time::sleep(PAGE_AGE).await;
            let start = Instant::now();
            page(UnixStream::connect(server.config_file("metrics.sock")?).await?).await?;
            sample.push(micros(start.elapsed()) / 1e3);
        }
        times.push(sample.median());
        server.stop().await?;
    }
    let what = format!("scrape, {agents} agents with mail");
    report.figure("eyes", &what, "ms", times, Some(Bounds::only_most(50.0)));
    Ok(())
}

/// Figures of one kind of use, for each of what is on.
#[derive(Debug, Default)]
struct Figures(BTreeMap<Eyes, Sample>);

impl Figures {
    fn push(&mut self, eyes: Eyes, value: f64) {
        self.0.entry(eyes).or_default().push(value);
    }

    /// Adds the figures, and their ratios to that of the server with nothing on.
    fn add(&self, report: &mut Report, what: &str, unit: &'static str, bounds: Bounds) {
        for (eyes, sample) in &self.0 {
            report.figure("eyes", &format!("{what}, {}", eyes.name()), unit, sample.clone(), None);
        }
        let Some(off) = self.0.get(&Eyes::Off) else { return };
        for (eyes, sample) in self.0.iter().filter(|(eyes, _)| **eyes != Eyes::Off) {
            let what = format!("{what}, {} / off", eyes.name());
            report.figure("eyes", &what, "", sample.per(off), Some(bounds));
        }
    }
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let mut readers = Readers::start().await?;
    for kind in Kind::available().into_iter().filter(|kind| kind.is_hive()) {
        let (mut pairs, mut loaded) = (Vec::new(), Vec::new());
        let (mut times, mut accepted, mut memory) = <(Figures, Figures, Figures)>::default();
        for eyes in Eyes::ALL {
            let server = readers.server(kind, 1, eyes).await?;
            pairs.push((eyes, Pair::on(server, 0).await?));
            let server = readers.server(kind, crate::w2::INBOXES, eyes).await?;
            loaded.push((eyes, Loaded::on(server).await?));
        }
        for round in 0..ROUNDS_FACTOR * rounds() {
            progress(&format!("eyes: round {}, {}", round + 1, kind.name()));
            for place in 0..Eyes::ALL.len() {
                let at = (place + round) % Eyes::ALL.len();
                let (eyes, pair) = pairs.get_mut(at).context("a pair for each")?;
                times.push(*eyes, pair.round().await?.median());
                let (eyes, loaded) = loaded.get_mut(at).context("a server for each")?;
                accepted.push(*eyes, loaded.round(1).await?.accepted_per_second);
                // Of a server that has just started: load grows the caches of each alike.
                if round < rounds() {
                    let server = readers.server(kind, 1, *eyes).await?;
                    server.rests().await?;
                    memory.push(*eyes, servers::pss_mib(server.pid()?));
                    server.stop().await?;
                }
                readers.check()?;
            }
        }
        for (_, pair) in pairs {
            pair.stop().await?;
        }
        for (_, loaded) in loaded {
            loaded.stop().await?;
        }
        let way = kind.name();
        times.add(report, &format!("{way}: W1 p50"), "us", Bounds::only_most(1.05));
        accepted.add(report, &format!("{way}: W2 accepted"), "1/s", Bounds::only_least(0.95));
        memory.add(report, &format!("{way}: idle memory"), "MiB", Bounds::only_most(1.05));
    }
    pages(report).await
}
