//! A run with the real broker: strace answers instead of the kernel for the database's files, and
//! is then detached. In between the broker is killed.
//!
//! Invariant: an answer later than the rig's patience is a violation like any other.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::SendMessageRequest;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_tests::rig::failing_disk::{FailingDisk, Failure};
use hive_tests::rig::{Client, Rig, request, soon};
use rand::{RngExt as _, SeedableRng as _};
use rand_xorshift::XorShiftRng;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::Outcome;
use super::books::Books;

const FAILURES: [Failure; 4] =
    [Failure::Syncs, Failure::Writes, Failure::Full, Failure::EveryOtherWrite];

pub(super) async fn run(seed: u64) -> Outcome {
    let mut rng = XorShiftRng::seed_from_u64(seed);
    let mut outcome = Outcome::default();
    outcome.count("runs with hived", 1);
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    let mut mail = Mail {
        operator: rig.operator().await,
        books: Books::default(),
        open: Vec::new(),
        number: 0,
    };
    let files = ["state/hive.db", "state/hive.db-wal"].map(|name| rig.path(name));
    for _ in 0..3 {
        mail.say(rng.random_range(1..6), &mut outcome).await;
        let failure = FAILURES[rng.random_range(0..FAILURES.len())];
        // If the host has no strace, that was already reported.
        let Some(disk) = FailingDisk::under(rig.broker().pid(), &files, failure).await else {
            return outcome;
        };
        outcome.count(&format!("hived: {failure:?}"), 1);
        mail.say(rng.random_range(1..4), &mut outcome).await;
        if rng.random_range(0..2) == 0 {
            rig.kill_broker().await;
            outcome.count("kills of hived", 1);
            disk.heal().await;
            rig.start_broker().await;
            mail.operator = rig.operator().await;
        } else {
            disk.heal().await;
        }
        mail.again(&mut outcome).await;
    }
    rig.kill_broker().await;
    rig.start_broker().await;
    mail.operator = rig.operator().await;
    rig.stop_broker().await;
    let found = mail.books.audit(&rig.path("state/hive.db")).unwrap_or_else(|broken| vec![broken]);
    outcome.count("receipts", mail.books.told.len() as u64);
    outcome.found.extend(found.into_iter().map(|found| format!("seed {seed}: {found}")));
    outcome
}

struct Mail {
    operator: Client,
    books: Books,
    /// Sends to retry with the same request ids.
    open: Vec<SendMessageRequest>,
    number: u64,
}

impl Mail {
    async fn say(&mut self, count: u64, outcome: &mut Outcome) {
        for _ in 0..count {
            self.number += 1;
            let body = format!(
                "message {} {}",
                self.number,
                "x".repeat(usize::try_from(self.number * 997 % 20_000).unwrap_or(0))
            );
            let request = request::send("ada", body);
            if !self.send(&request, outcome).await {
                self.open.push(request);
            }
        }
    }

    /// Sends a message; returns whether it was accepted.
    async fn send(&mut self, request: &SendMessageRequest, outcome: &mut Outcome) -> bool {
        let mut sender = MessageServiceClient::new(self.operator.channel());
        match soon("an answer", sender.send_message(request.clone())).await {
            Ok(receipt) => {
                let told = self.books.tell(receipt.into_inner().message_id, &request.body);
                outcome.found.extend(told.err());
                true
            }
            Err(refusal) => {
                let unavailable = status::reason(&refusal) == Some(Reason::StorageUnavailable);
                if !unavailable || status::retry_after(&refusal).is_none() {
                    outcome.found.push(format!("a send was refused so: {refusal:?}"));
                }
                outcome.count("sends answered unknown", 1);
                false
            }
        }
    }

    /// Waits until the broker reports that it is ready.
    async fn serves(&self) {
        let mut health = HealthClient::new(self.operator.channel());
        let watched = health.watch(HealthCheckRequest::default()).await.expect("it says how it is");
        let mut words = watched.into_inner();
        let serves = async {
            while words.message().await.expect("told").expect("told").status()
                != ServingStatus::Serving
            {}
        };
        soon("the broker serves again", serves).await;
    }

    /// Retries refused sends until they are accepted.
    async fn again(&mut self, outcome: &mut Outcome) {
        for request in std::mem::take(&mut self.open) {
            while !self.send(&request, outcome).await {
                self.serves().await;
            }
        }
    }
}
