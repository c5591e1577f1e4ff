//! The scene of an attack: a hive with a hostile agent and two neighbours, and the broker as the
//! neighbours and the host observe it.
//!
//! Invariant: the neighbours exchange messages throughout an attack, each from send to ack. The
//! verdict compares the time of a round with quiet rounds of the same run, never with wall clock
//! times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{AckDeliveryRequest, ReceiveMessagesRequest, ack_delivery_request::Target};
use hive_tests::rig::{Client, Rig, request, soon};
use tokio::task::JoinHandle;

/// Maximum median of a neighbour's round as a multiple of its quiet value, while an attack shares
/// two cores with it.
const ROUND_RATIO_MAX: f64 = 20.0;
/// Minimum value of a quiet round, so that a lucky one is not the yardstick.
const ROUND_FLOOR: Duration = Duration::from_millis(1);
/// The number of rounds of a quiet hive.
const QUIET_ROUNDS: usize = 40;
/// Minimum number of neighbours' rounds before an attack is over.
const ROUNDS_MIN: usize = 20;

/// Maximum number of the test's own sockets opened since the quiet hive was measured.
const OWN_SOCKETS_MAX: usize = 4;

/// The host's figures of the broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// The broker's memory, in bytes.
    pub(crate) memory: u64,
    /// The broker's open sockets. It may keep other files open, for its idle connections to the
    /// database.
    pub(crate) sockets: usize,
}

/// A hive of the attacker `mallory`, and the neighbours `carol` and `dave`.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) rig: Rig,
    carol: Client,
    dave: Client,
    quiet: Duration,
    before: Figures,
}

#[derive(Debug)]
pub(crate) struct Talk {
    over: Arc<AtomicBool>,
    rounds: JoinHandle<Vec<Duration>>,
}

impl Scene {
    /// Creates a quiet hive, warmed up and measured.
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// Creates the same with further lines of `[broker.limits]`.
    pub(crate) async fn with(limits: &str) -> Self {
        let config = format!(
            "[agents.mallory]\n[agents.carol]\n[agents.dave]\n[broker.limits]\nsends_per_minute_max = 1000000\n{limits}"
        );
        let mut rig = Rig::new(&config);
        // Without the debug lines of the other tests: the amount of logging is judged, too.
        let mut command = rig.broker_command();
        command.env("HIVE_LOG", "info");
        rig.start_broker_by(command).await;
        Self::on(rig).await
    }

    /// Creates the scene on a running hive.
    pub(crate) async fn on(mut rig: Rig) -> Self {
        let (carol, dave) = (rig.agent("carol").await, rig.agent("dave").await);
        let mut quiet = Vec::new();
        for _ in 0..QUIET_ROUNDS {
            quiet.push(round(&carol, &dave).await);
        }
        let before = figures(&mut rig);
        Self { rig, carol, dave, quiet: median(&mut quiet).max(ROUND_FLOOR), before }
    }

    /// Starts the neighbours' rounds, which continue until their result is requested.
    pub(crate) fn talk(&self) -> Talk {
        let (over, carol, dave) =
            (Arc::new(AtomicBool::new(false)), self.carol.clone(), self.dave.clone());
        let told = Arc::clone(&over);
        let rounds = tokio::spawn(async move {
            let mut rounds = Vec::new();
            while rounds.len() < ROUNDS_MIN || !told.load(Ordering::Relaxed) {
                rounds.push(round(&carol, &dave).await);
            }
            rounds
        });
        Talk { over, rounds }
    }

    /// Ends the rounds and judges them.
    pub(crate) async fn served(&self, talk: Talk, during: &str) {
        talk.over.store(true, Ordering::Relaxed);
        let mut rounds =
            soon("the neighbours have talked", talk.rounds).await.expect("every round goes well");
        let middle = median(&mut rounds);
        let ratio = middle.as_secs_f64() / self.quiet.as_secs_f64();
        assert!(
            ratio <= ROUND_RATIO_MAX,
            "{during}: a neighbour's round took {middle:?} in the median of {}, {ratio:.1} times its quiet value",
            rounds.len()
        );
    }

    /// Returns how much the broker has grown since it was quiet, in bytes.
    pub(crate) fn grown(&mut self) -> u64 {
        figures(&mut self.rig).memory.saturating_sub(self.before.memory)
    }

    /// Waits until the broker has recovered: its sockets are closed, it has kept at most `kept_max`
    /// bytes, has not panicked and not filled its log, and serves all its clients.
    pub(crate) async fn recovered(&mut self, after: &str, kept_max: u64) {
        // There is no signal when another process closes a socket or frees memory.
        let sockets_max = self.before.sockets + OWN_SOCKETS_MAX;
        let back = async {
            while figures(&mut self.rig).sockets > sockets_max {
                tokio::task::yield_now().await;
            }
        };
        soon(&format!("{after}: the broker closes its sockets"), back).await;
        let back = async {
            while self.grown() > kept_max {
                tokio::task::yield_now().await;
            }
        };
        soon(&format!("{after}: the broker keeps no more than {kept_max} bytes"), back).await;
        let log = self.rig.broker().log();
        assert!(!log.contains("panicked"), "{after}: {}", self.rig.logs());
        assert!(
            log.len() < 64 * 1024,
            "{after}: the log has {} bytes: {}",
            log.len(),
            self.rig.logs()
        );
        soon("mallory is served", self.rig.agent("mallory"))
            .await
            .send("operator", "still here")
            .await;
        round(&self.carol, &self.dave).await;
        let strays = self.rig.operator().await.deliveries("dave", &[]).await;
        assert!(strays.is_empty(), "{after}: {strays:?}");
    }
}

/// Sends one message and acks it; returns the time from the send to the receive.
pub(crate) async fn round(from: &Client, to: &Client) -> Duration {
    let start = Instant::now();
    from.send("dave", "a word among neighbours").await;
    let request = ReceiveMessagesRequest { max_deliveries: 1, ..request::receive_waiting() };
    let mut inbox = InboxServiceClient::new(to.channel());
    let received = soon("the message is received", inbox.receive_messages(request))
        .await
        .expect("the receiver is served");
    let taken = start.elapsed();
    let delivery =
        received.into_inner().deliveries.into_iter().next().expect("the message is there");
    let ack = AckDeliveryRequest { target: Some(Target::LeaseToken(delivery.lease_token)) };
    soon("the message is acked", inbox.ack_delivery(ack)).await.expect("the receiver is served");
    taken
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns the host's current figures of the broker.
pub(crate) fn figures(rig: &mut Rig) -> Figures {
    let proc = format!("/proc/{}", rig.broker().pid().as_raw_nonzero());
    let rollup = std::fs::read_to_string(format!("{proc}/smaps_rollup")).expect("the broker runs");
    let kilobytes = rollup.lines().find_map(|line| {
        line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    let files = std::fs::read_dir(format!("{proc}/fd")).expect("the broker runs").flatten();
    let is_socket = |path: std::path::PathBuf| {
        std::fs::read_link(path).is_ok_and(|file| file.to_string_lossy().starts_with("socket:"))
    };
    let sockets = files.filter(|file| is_socket(file.path())).count();
    Figures { memory: kilobytes.expect("the kernel counts memory") * 1024, sockets }
}
