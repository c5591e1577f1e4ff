//! The scene of an attack: a hive with a hostile agent and two neighbours, and what the neighbours
//! and the host see of the broker.
//!
//! Invariant: the neighbours talk all through an attack, each message all the way from send to ack,
//! and what they find is what is judged: how long a round took in relation to quiet rounds of the
//! same run, never a time of a clock on the wall.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{AckDeliveryRequest, ReceiveMessagesRequest, ack_delivery_request::Target};
use hive_tests::rig::{Client, Rig, fresh_id, soon};
use tokio::task::JoinHandle;

/// So many times its quiet value a neighbour's round may take in the median, while an attack shares
/// two cores with it.
const ROUND_RATIO_MAX: f64 = 20.0;
/// Below this no round counts as quicker, so that a lucky quiet one does not make a yardstick.
const ROUND_FLOOR: Duration = Duration::from_millis(1);
/// Rounds of a quiet hive.
const QUIET_ROUNDS: usize = 40;
/// The least that neighbours must have done before an attack is over.
const ROUNDS_MIN: usize = 20;

/// Sockets of the test's own clients that came since the quiet hive was measured.
const OWN_SOCKETS_MAX: usize = 4;

/// What the host sees of the broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// Its memory, in bytes.
    pub(crate) memory: u64,
    /// Its open sockets. Other files it may keep open, for its idle connections to the database.
    pub(crate) sockets: usize,
}

/// A hive of `mallory`, who attacks, and `carol` and `dave`, who do not.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) rig: Rig,
    carol: Client,
    dave: Client,
    quiet: Duration,
    before: Figures,
}

/// The neighbours, talking.
#[derive(Debug)]
pub(crate) struct Talk {
    over: Arc<AtomicBool>,
    rounds: JoinHandle<Vec<Duration>>,
}

impl Scene {
    /// A quiet hive, warmed up and measured.
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// The same with further lines of `[broker.limits]`.
    pub(crate) async fn with(limits: &str) -> Self {
        let config = format!(
            "[agents.mallory]\n[agents.carol]\n[agents.dave]\n[broker.limits]\nsends_per_minute_max = 1000000\n{limits}"
        );
        let mut rig = Rig::new(&config);
        // Without the debug lines of the other tests: how much is logged is judged, too.
        let mut command = rig.broker_command();
        command.env("HIVE_LOG", "info");
        rig.start_broker_by(command).await;
        Self::on(rig).await
    }

    /// On a hive that runs.
    pub(crate) async fn on(mut rig: Rig) -> Self {
        let (carol, dave) = (rig.agent("carol").await, rig.agent("dave").await);
        let mut quiet = Vec::new();
        for _ in 0..QUIET_ROUNDS {
            quiet.push(round(&carol, &dave).await);
        }
        let before = figures(&mut rig);
        Self { rig, carol, dave, quiet: median(&mut quiet).max(ROUND_FLOOR), before }
    }

    /// The neighbours begin to talk, and go on until they are asked for what they found.
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

    /// Ends the talk and judges it.
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

    /// How much the broker has grown since it was quiet, in bytes.
    pub(crate) fn grown(&mut self) -> u64 {
        figures(&mut self.rig).memory.saturating_sub(self.before.memory)
    }

    /// The broker has done with the attack: its sockets are closed, it has kept no more than
    /// `kept_max` bytes, has not panicked and not filled its log, and serves everybody.
    pub(crate) async fn recovered(&mut self, after: &str, kept_max: u64) {
        // There is no signal when somebody else closes a socket or gives memory back.
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

/// One message from send to ack; the time from the send to the receiver's hand.
pub(crate) async fn round(from: &Client, to: &Client) -> Duration {
    let start = Instant::now();
    from.send("dave", "a word among neighbours").await;
    let request = ReceiveMessagesRequest {
        request_id: fresh_id(),
        max_deliveries: 1,
        wait: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        ..ReceiveMessagesRequest::default()
    };
    let mut inbox = InboxServiceClient::new(to.channel());
    let received = soon("the message is received", inbox.receive_messages(request))
        .await
        .expect("the receiver is served");
    let taken = start.elapsed();
    let delivery =
        received.into_inner().deliveries.into_iter().next().expect("the message is there");
    let ack = AckDeliveryRequest {
        request_id: fresh_id(),
        target: Some(Target::LeaseToken(delivery.lease_token)),
    };
    soon("the message is acked", inbox.ack_delivery(ack)).await.expect("the receiver is served");
    taken
}

/// The middle of some times.
pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// What the host sees of the broker now.
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
