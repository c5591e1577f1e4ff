//! `search`: how long a search takes in a large hive, and what keeping the index up to date costs
//! those who send.
//!
//! The mail is written into the database directly, because sending a million messages takes long;
//! the broker itself then makes the index. `HIVE_BENCH_SEARCH_MESSAGES` sets the number of
//! messages. The cost is measured against a broker that cannot have an index, because a directory
//! blocks the path of its file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::{AckDeliveryRequest, ReceiveMessagesRequest, SearchMessagesRequest};
use hive_tests::rig::{Client, Rig, request};
use rusqlite::Connection;

use crate::report::{Bounds, Report};
use crate::sample::{Sample, micros};
use crate::{ROUNDS, servers};

const MESSAGES_DEFAULT: u64 = 100_000;
const SEARCHES: u64 = 300;
const WORDS: u64 = 20_000;
const BODY_WORDS: u64 = 30;
const INBOXES: u64 = 100;
/// The inbox with few messages in a hive with many.
const QUIET: u64 = 99;
const QUIET_MESSAGES: u64 = 100;
const SENDERS: u64 = 128;
const SPAN: Duration = Duration::from_secs(3);
/// Longest way of an index to its end.
const PATIENCE: Duration = Duration::from_secs(400);

/// Text as people write it: a few words stand nearly everywhere, most hardly anywhere.
struct Writer {
    /// A small generator of its own, so that the text is the same in every run.
    state: u64,
}

impl Writer {
    fn new(seed: u64) -> Self {
        Self { state: 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed + 1) }
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 11
    }

    /// A rank from 0: the logarithm of ranks is evenly spread, which is Zipf's law.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank"
    )]
    fn rank(&mut self) -> u64 {
        let part = (self.random() % 1_000_000) as f64 / 1e6;
        ((WORDS as f64).powf(part) as u64 - 1).min(WORDS - 1)
    }

    fn body(&mut self) -> String {
        let words: Vec<String> = (0..BODY_WORDS).map(|_| word(self.rank())).collect();
        words.join(" ")
    }
}

/// Makes up the word with this rank in the vocabulary.
fn word(rank: u64) -> String {
    let mut rest = rank.wrapping_mul(7919) % WORDS + WORDS;
    let mut text = String::new();
    while rest > 0 {
        for (letters, many) in [("bdfghklmnprstvwz", 16), ("aeiou", 5)] {
            let index = usize::try_from(rest % many).unwrap_or(0);
            text.push_str(&letters[index..=index]);
            rest /= many;
        }
    }
    text
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let messages = match std::env::var("HIVE_BENCH_SEARCH_MESSAGES") {
        Ok(text) => text.parse()?,
        Err(_) => MESSAGES_DEFAULT,
    };
    searches(report, messages).await?;
    upkeep(report).await
}

async fn searches(report: &mut Report, messages: u64) -> anyhow::Result<()> {
    let inboxes = usize::try_from(INBOXES)?;
    let mut rig = servers::broker(inboxes).await?;
    rig.stop_broker().await;
    fill(&rig.path("state/hive.db"), messages)?;
    let start = Instant::now();
    rig.start_broker().await;
    let (operator, quiet) = (rig.operator().await, rig.agent(&format!("a{QUIET}")).await);
    until_found(&operator, &word(0)).await?;
    #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
    let per_message = micros(start.elapsed()) / messages as f64;
    report.add(
        "S",
        &format!("making the index of {messages} messages, each"),
        "us",
        [per_message].into_iter().collect(),
        None,
    );
    #[expect(clippy::cast_precision_loss, reason = "a size")]
    let bytes = std::fs::metadata(rig.path("state/search.sqlite3"))?.len() as f64 / messages as f64;
    report.add(
        "S",
        "size of the index per message of 200 bytes",
        "B",
        [bytes].into_iter().collect(),
        None,
    );
    let common = |_: u64| word(0);
    let rare = |number: u64| word(WORDS - 1 - number);
    let phrase = |number: u64| {
        let body = Writer::new(number).body();
        let words: Vec<&str> = body.split(' ').skip(3).take(3).collect();
        format!("\"{}\"", words.join(" "))
    };
    let beginning = |number: u64| format!("{}*", &word(number)[..3]);
    for (what, client, query) in [
        ("common word, operator", &operator, &common as &dyn Fn(u64) -> String),
        ("common word, agent with 100 messages", &quiet, &common),
        ("rare word, operator", &operator, &rare),
        ("phrase of three words, operator", &operator, &phrase),
        ("beginning of a word, operator", &operator, &beginning),
        ("beginning of a word, agent with 100 messages", &quiet, &beginning),
    ] {
        let mut sample = Sample::default();
        for number in 0..SEARCHES {
            let query = query(number);
            let start = Instant::now();
            found(client, &query).await?;
            sample.push(micros(start.elapsed()) / 1e3);
        }
        let p95 = sample.quantile(0.95);
        report.add("S", &format!("{what}: p50"), "ms", sample, None);
        report.add("S", &format!("{what}: p95"), "ms", [p95].into_iter().collect(), Some("50"));
    }
    rig.stop_broker().await;
    Ok(())
}

/// Returns the number of hits on a page of a search.
async fn found(client: &Client, query: &str) -> Result<usize, tonic::Status> {
    let request =
        SearchMessagesRequest { query: query.to_owned(), ..SearchMessagesRequest::default() };
    let found =
        MessageServiceClient::new(client.channel()).search_messages(client.request(request)).await;
    Ok(found?.into_inner().hits.len())
}

/// Waits until the index has come so far.
async fn until_found(client: &Client, query: &str) -> anyhow::Result<()> {
    let start = Instant::now();
    // An index that is being made answers with an error that is worth a retry.
    while found(client, query).await.unwrap_or(0) == 0 {
        anyhow::ensure!(start.elapsed() < PATIENCE, "the index did not come to its end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Writes settled mail to random inboxes into the database of a broker that does not run.
fn fill(database: &Path, messages: u64) -> anyhow::Result<()> {
    let mut conn = Connection::open(database)?;
    let keys: Vec<i64> = conn
        .prepare("SELECT id FROM agent WHERE name GLOB 'a[0-9]*' ORDER BY CAST(substr(name, 2) AS INTEGER)")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let tx = conn.transaction()?;
    {
        let mut message = tx.prepare(
            "INSERT INTO message (id, origin_kind, origin_id, origin_name, to_id, body, accept_time) \
             VALUES (?1, 2, 1, 'bench', ?2, ?3, 1700000000000 + ?1)",
        )?;
        let mut delivery = tx.prepare(
            "INSERT INTO settled_delivery (agent_id, message_id, lane, state, state_time, body_bytes) VALUES (?1, ?2, 2, 5, 1700000000000, 200)",
        )?;
        for number in 0..messages {
            let mut writer = Writer::new(number);
            let body = writer.body();
            let quiet = number % (messages / QUIET_MESSAGES).max(1) == 0;
            let inbox = if quiet { QUIET } else { writer.random() % QUIET };
            let (id, key) = (i64::try_from(number)? + 1, keys[usize::try_from(inbox)?]);
            message.execute((id, key, body))?;
            delivery.execute((key, id))?;
        }
    }
    Ok(tx.commit()?)
}

struct Round {
    accepted_per_second: f64,
    cpu_per_message: f64,
}

fn accepted(round: &Round) -> f64 {
    round.accepted_per_second
}

fn cpu(round: &Round) -> f64 {
    round.cpu_per_message
}

async fn upkeep(report: &mut Report) -> anyhow::Result<()> {
    let inboxes = usize::try_from(INBOXES)?;
    let mut with = servers::broker(inboxes).await?;
    let mut without = servers::broker(inboxes).await?;
    without.stop_broker().await;
    drop(std::fs::remove_file(without.path("state/search.sqlite3")));
    std::fs::create_dir(without.path("state/search.sqlite3"))?;
    without.start_broker().await;
    let received = Arc::new(AtomicU64::new(0));
    let mut consumers = Vec::new();
    for rig in [&with, &without] {
        for inbox in 0..inboxes {
            consumers.push(tokio::spawn(consume(
                rig.agent(&format!("a{inbox}")).await,
                Arc::clone(&received),
            )));
        }
    }
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS as u64 {
        // The first run has the cooler machine, so the order alternates.
        for indexed in if round % 2 == 0 { [true, false] } else { [false, true] } {
            let rig = if indexed { &mut with } else { &mut without };
            let measured = send(rig, round, indexed, &received).await?;
            if indexed { on.push(measured) } else { off.push(measured) }
        }
    }
    for consumer in consumers {
        consumer.abort();
    }
    with.stop_broker().await;
    without.stop_broker().await;
    let figures =
        |rounds: &[Round], figure: fn(&Round) -> f64| rounds.iter().map(figure).collect::<Sample>();
    let ratios = |figure: fn(&Round) -> f64| {
        on.iter().zip(&off).map(|(on, off)| figure(on) / figure(off)).collect::<Sample>()
    };
    report.add(
        "S",
        "accepted with the index, 128 outstanding",
        "1/s",
        figures(&on, accepted),
        None,
    );
    report.add("S", "accepted without it", "1/s", figures(&off, accepted), None);
    let bound = Some(Bounds::only_least(0.85));
    report.figure("S", "accepted with / without", "", ratios(accepted), bound);
    report.add("S", "server CPU per message with the index", "us", figures(&on, cpu), None);
    report.add("S", "server CPU per message without it", "us", figures(&off, cpu), None);
    Ok(())
}

async fn consume(client: Client, count: Arc<AtomicU64>) {
    let mut inbox = InboxServiceClient::new(client.channel());
    for number in 0_u64.. {
        let request = ReceiveMessagesRequest {
            request_id: format!("receive-{number}"),
            max_deliveries: 32,
            ..request::receive_waiting()
        };
        let Ok(received) = inbox.receive_messages(request).await else { return };
        for leased in received.into_inner().deliveries {
            let request =
                AckDeliveryRequest { target: Some(Target::LeaseToken(leased.lease_token)) };
            if inbox.ack_delivery(request).await.is_err() {
                return;
            }
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn send(
    rig: &mut Rig,
    round: u64,
    indexed: bool,
    received: &Arc<AtomicU64>,
) -> anyhow::Result<Round> {
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(rig.operator().await);
    }
    let pid = rig.broker().pid();
    let over = Arc::new(AtomicBool::new(false));
    let (received_before, cpu_before, start) =
        (received.load(Ordering::Relaxed), servers::cpu_micros(pid), Instant::now());
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (client, over) =
                (clients[usize::try_from(sender % 8).unwrap_or(0)].clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let mut writer = Writer::new(round * SENDERS + sender);
                let mut sent = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    let to = format!("a{}", writer.random() % INBOXES);
                    client.send(&to, &writer.body()).await;
                    sent += 1;
                }
                sent
            })
        })
        .collect();
    tokio::time::sleep(SPAN).await;
    over.store(true, Ordering::Relaxed);
    let mut sent = 0;
    for sender in senders {
        sent += sender.await?;
    }
    let span = start.elapsed();
    // Accepted messages must be delivered and, with an index, be searchable; that CPU time counts
    // as well.
    while received.load(Ordering::Relaxed) - received_before < sent {
        anyhow::ensure!(start.elapsed() < PATIENCE, "what was accepted did not arrive");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if indexed {
        let last = format!("last{round}");
        clients[0].send("a0", &last).await;
        until_found(&clients[0], &last).await?;
        while received.load(Ordering::Relaxed) - received_before <= sent {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let cpu = servers::cpu_micros(pid) - cpu_before;
    #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
    let sent = sent as f64;
    Ok(Round { accepted_per_second: sent / span.as_secs_f64(), cpu_per_message: cpu / sent })
}
