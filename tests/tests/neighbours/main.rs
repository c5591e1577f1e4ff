//! The effect of a flood on a neighbour: how long a message takes to a waiting recipient.
//!
//! Rounds without and with the flood take turns, each of many messages; for each pair the p99 with
//! the flood is divided by the one without, and the median of these ratios is judged. So a slow
//! machine, or a slow minute of it, is in both and drops out. Calls of the flood that are under way
//! at the end of its round are given up. What is over the bound is measured on, up to three times
//! as long, before it is judged. An order of service that lets the flood go first is seen:
//! `without_limits_it_is_noticed` takes the limits away and has to exceed the bound by far.
//!
//! A target of its own, so that nothing else runs beside it.

#[path = "../attacks/floods/flood.rs"]
#[allow(dead_code, reason = "another target uses the rest of it")]
mod flood;
#[path = "../attacks/floods/kinds.rs"]
mod kinds;
mod strangers;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use hive_core::limits::AGENT_CALLS_AT_WORK_MAX;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{AckDeliveryRequest, ReceiveMessagesRequest, ack_delivery_request::Target};
use hive_tests::rig::{Client, Rig, host, request, soon};

use flood::{ALL_AT_ONCE, Flood, NICE};
use kinds::{Kind, LISTS, POLLS, READS, STREAMS, WRITES};
use strangers::Strangers;
use tokio::sync::Mutex;

/// Held by the test that measures: what runs beside it would be in its figures.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Maximum ratio of a neighbour's p99 during a flood to its quiet p99.
const RATIO_MAX: f64 = 2.0;
/// Pairs of rounds, where their median is within the bound.
const PAIRS: usize = 9;
/// Pairs of rounds, where it is not.
const PAIRS_MAX: usize = 3 * PAIRS;
/// Messages of a round: the second largest of them is their p99.
const MESSAGES: usize = 120;
/// Messages before those of a round, in which the last round ends.
const BETWEEN: usize = 10;

/// The limits of a flooder without any bound.
const UNBOUNDED: &str =
    "limits = { sends_per_minute_max = 4000000000, sender_stored_bytes_max = 1000000000000 }\n";

/// Starts a hive with a flooder, the recipient of the flood, and two neighbours. The neighbours'
/// sends are not limited, so that they can be measured.
async fn hive(limits: &str, mallorys: &str, daves: &str) -> Rig {
    let unbounded = "limits = { sends_per_minute_max = 100000000 }\n";
    let config = format!(
        "[agents.mallory]\n{mallorys}[agents.erin]\n[agents.carol]\n{unbounded}[agents.dave]\n{daves}{unbounded}[broker.limits]\n{limits}"
    );
    let mut rig = Rig::new(&config);
    let mut command = rig.broker_command();
    command.env("HIVE_LOG", "info");
    rig.start_broker_by(command).await;
    rig
}

/// Measures the time from the send to the waiting recipient.
async fn wake(carol: &Client, dave: &Client) -> Duration {
    let request = ReceiveMessagesRequest { max_deliveries: 1, ..request::receive_waiting() };
    let mut inbox = InboxServiceClient::new(dave.channel());
    let start = Instant::now();
    let waiting = async {
        let received = inbox.receive_messages(request).await.expect("the neighbour is served");
        (
            received.into_inner().deliveries.into_iter().next().expect("the message is there"),
            start.elapsed(),
        )
    };
    let ((delivery, taken), _) = soon("the message is in hand", async {
        tokio::join!(waiting, carol.send("dave", "a word"))
    })
    .await;
    let ack = AckDeliveryRequest { target: Some(Target::LeaseToken(delivery.lease_token)) };
    soon("it is acked", InboxServiceClient::new(dave.channel()).ack_delivery(ack))
        .await
        .expect("the neighbour is served");
    taken
}

async fn p99(carol: &Client, dave: &Client) -> Duration {
    for _ in 0..BETWEEN {
        wake(carol, dave).await;
    }
    let mut times = Vec::new();
    for _ in 0..MESSAGES {
        times.push(wake(carol, dave).await);
    }
    times.sort_unstable();
    times[MESSAGES - 2]
}

/// What runs in every second round.
trait Load {
    /// Starts it, and waits until it is under way.
    async fn start(&mut self);
    /// Ends it.
    async fn end(&mut self);
    /// Returns what it has done so far.
    fn done(&self) -> String;
}

impl Load for Flood {
    async fn start(&mut self) {
        self.go();
        self.answered(2).await;
    }

    async fn end(&mut self) {
        self.cut().await;
    }

    fn done(&self) -> String {
        format!("{:?}", self.tally())
    }
}

impl Load for Strangers {
    async fn start(&mut self) {
        self.go();
        self.run().await;
    }

    async fn end(&mut self) {
        self.cut().await;
    }

    fn done(&self) -> String {
        format!("{} connections", self.made())
    }
}

/// The median of the ratios, and what they were made of.
async fn ratio(rig: &Rig, load: &mut impl Load, pairs_max: usize) -> (f64, String) {
    let (carol, dave) = (rig.agent("carol").await, rig.agent("dave").await);
    let (mut ratios, mut pairs) = (Vec::new(), Vec::new());
    while ratios.len() < PAIRS
        || (ratios.len() < pairs_max && (ratios.len() > PAIRS || median(&ratios) > RATIO_MAX))
    {
        let quiet = p99(&carol, &dave).await;
        load.start().await;
        let loaded = p99(&carol, &dave).await;
        load.end().await;
        ratios.push(loaded.as_secs_f64() / quiet.as_secs_f64());
        pairs.push(format!("{loaded:.1?}/{quiet:.1?}"));
    }
    (median(&ratios), format!("{} of {}", pairs.join(" "), load.done()))
}

fn median(ratios: &[f64]) -> f64 {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

async fn hardly_noticed(kinds: &[Kind]) {
    let _alone = ALONE.lock().await;
    let rig = hive("", "", "").await;
    let mut flood = Flood::new(rig.agent_socket("mallory"), kinds, ALL_AT_ONCE, NICE);
    let (ratio, made_of) = ratio(&rig, &mut flood, PAIRS_MAX).await;
    assert!(ratio <= RATIO_MAX, "{ratio:.2} times the quiet p99: {made_of}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_writes_is_hardly_noticed() {
    hardly_noticed(&WRITES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_reads_is_hardly_noticed() {
    hardly_noticed(&READS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_polls_is_hardly_noticed() {
    hardly_noticed(&POLLS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_lists_is_hardly_noticed() {
    hardly_noticed(&LISTS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_over_streams_is_hardly_noticed() {
    hardly_noticed(&STREAMS).await;
}

/// Users who may not use an agent's socket connect to it without end, and all their places are
/// taken. Its own user is served as before. Only where the file cannot keep them out: its access
/// control list is gone here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_at_its_own_socket_are_hardly_noticed() {
    if !host::allows("being another user (tests do not run as root)", host::is_root()) {
        return;
    }
    let _alone = ALONE.lock().await;
    let rig = hive("", "", "users = [\"root\"]\n").await;
    for (path, mode) in [(rig.dir().to_path_buf(), 0o711), (rig.agent_socket("dave"), 0o666)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    }
    let mut strangers = Strangers::new(rig.agent_socket("dave"), NICE);
    let (ratio, made_of) = ratio(&rig, &mut strangers, PAIRS_MAX).await;
    assert!(ratio <= RATIO_MAX, "{ratio:.2} times the quiet p99: {made_of}");

    // Those who connect only now wait in the same queue, and come in.
    strangers.start().await;
    for _ in 0..5 {
        rig.agent("dave").await.send("carol", "I came in").await;
    }
    strangers.end().await;
}

/// Counted and not timed: ids follow the order in which messages are served. The difference of two
/// of a neighbour's consecutive ids is what was served in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_waits_for_few_calls_of_a_flood_of_any_size() {
    let _alone = ALONE.lock().await;
    let rig = hive("inbox_depth_max = 4000000000\n", UNBOUNDED, "").await;
    let carol = rig.agent("carol").await;
    let mut flood =
        Flood::new(rig.agent_socket("mallory"), &[Kind::Send("erin")], ALL_AT_ONCE, NICE);
    flood.go();
    let (mut between, mut tried) = (Vec::new(), 0);
    while between.len() < MESSAGES / 2 {
        assert!(tried < 5 * MESSAGES, "there is no flood to stand behind: {between:?}");
        tried += 1;
        // The flood runs, with all its calls under way.
        flood.answered(8).await;
        let first = carol.send("dave", "a word").await;
        let others = carol.send("dave", "and another").await - first - 1;
        // On a busy host the flood may do nothing for a while, and is no flood then.
        if others > 0 {
            between.push(others);
        }
    }
    flood.stop().await;
    between.sort_unstable();
    let median = between[between.len() / 2];
    // The calls in the commit under way, those in its own, and those of the time until it was
    // answered and called again.
    let most = 5 * AGENT_CALLS_AT_WORK_MAX as u64;
    assert!(most < ALL_AT_ONCE as u64, "the bound would notice nothing");
    assert!(
        median <= most,
        "{median} of the flood's calls go before one of a neighbour's: {between:?}"
    );
}

/// The negative control: the same in a hive with nothing to bound it, where each of its sends is
/// one to sixty others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_limits_it_is_noticed() {
    let _alone = ALONE.lock().await;
    let mut mallorys = UNBOUNDED.to_owned();
    for number in 0..60 {
        mallorys.push_str(&format!("[agents.x{number}]\n"));
    }
    let rig = hive("inbox_depth_max = 4000000000\n", &mallorys, "").await;
    let mut flood = Flood::new(rig.agent_socket("mallory"), &[Kind::Large("*")], ALL_AT_ONCE, NICE);
    let (ratio, made_of) = ratio(&rig, &mut flood, PAIRS).await;
    assert!(
        ratio > RATIO_MAX,
        "the measure notices nothing: {ratio:.2} times the quiet p99: {made_of}"
    );
}
