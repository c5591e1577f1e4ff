//! Flood: the p99 of a neighbour while one agent calls as often and as much at once as it can, and
//! while it does not.
//!
//! The flooder has the default limits. Over streams it has as many calls of `StreamMessages` as an
//! agent may have, each with as many messages as may be unanswered, and begins the next as soon as
//! one has ended; most of its messages are refused for its rate. It runs on a thread that uses only
//! the processor time that the broker and the neighbours leave, so what counts is the broker's work
//! for it. A neighbour sends one message after the other to another one, which waits for it.
//! Invariant: rounds with and without the flood take turns on one broker, and a ratio is of two
//! rounds that follow each other.

#[path = "../tests/attacks/floods/flood.rs"]
#[allow(dead_code, reason = "a test uses the rest of it")]
mod flooder;
#[path = "../tests/attacks/floods/kinds.rs"]
#[allow(dead_code, reason = "a test uses the rest of it")]
mod kinds;

use std::time::Instant;

use hive_proto::v1::ReceiveMessagesRequest;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_tests::rig::{Rig, fresh_id, request};
use tonic::transport::Channel;

use self::flooder::{ALL_AT_ONCE, Flood, NICE};
use self::kinds::{Kind, LISTS, WRITES};
use crate::report::{Bounds, Report};
use crate::rival::ack;
use crate::rounds::rounds;
use crate::sample::{Sample, micros};

/// Messages of a round.
const MESSAGES: usize = 300;
/// Pairs of rounds, for each round of other workloads: a p99 differs more than a median.
const PAIRS: usize = 3;
/// Answers of the broker to the flooder before a round begins.
const ANSWERED: u64 = 2;
/// Messages between two rounds that no figure has: the broker ends its work for the flooder.
const BETWEEN: usize = 10;

/// A flooder, the recipient of its messages, and two neighbours, who have no rate.
const HIVE: &str = "[hive]\nname = \"bench\"\n[agents.mallory]\n[agents.erin]\n\
     [agents.carol]\nlimits = { sends_per_minute_max = 100000000 }\n[agents.dave]\n";

/// The times of a round.
#[derive(Debug, Default)]
struct Round {
    /// From the start of each send to its receipt, in microseconds.
    sent: Sample,
    /// From there to the message in the hand of the recipient.
    in_hand: Sample,
}

/// Two neighbours of the flooder.
#[derive(Debug)]
struct Neighbours {
    carol: MessageServiceClient<Channel>,
    dave: InboxServiceClient<Channel>,
    /// The lease of the last message.
    held: Option<String>,
}

impl Neighbours {
    /// Sends a message and receives it.
    async fn message(&mut self, round: &mut Round) -> anyhow::Result<()> {
        let receive = ReceiveMessagesRequest {
            request_id: fresh_id(),
            max_deliveries: 1,
            settlements: self.held.take().map(ack).into_iter().collect(),
            ..request::receive_waiting()
        };
        let start = Instant::now();
        let (received, sent) = tokio::join!(
            async { anyhow::Ok((self.dave.receive_messages(receive).await?, start.elapsed())) },
            async {
                self.carol.send_message(request::send("dave", "x".repeat(200))).await?;
                anyhow::Ok(start.elapsed())
            }
        );
        let (received, in_hand) = received?;
        round.sent.push(micros(sent?));
        round.in_hand.push(micros(in_hand));
        let leased = received.into_inner().deliveries.into_iter().next();
        self.held = leased.map(|leased| leased.lease_token);
        anyhow::ensure!(self.held.is_some(), "a receive that waits has a message");
        Ok(())
    }

    async fn round(&mut self) -> anyhow::Result<Round> {
        for _ in 0..BETWEEN {
            self.message(&mut Round::default()).await?;
        }
        let mut round = Round::default();
        for _ in 0..MESSAGES {
            self.message(&mut round).await?;
        }
        Ok(round)
    }
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let messages = [Kind::StreamMessages("erin")];
    let floods: [(&str, &[Kind]); 3] =
        [("over StreamMessages", &messages), ("of lists", &LISTS), ("of unary writes", &WRITES)];
    for (name, calls) in floods {
        let mut rig = Rig::new_in(HIVE, &hive_tests::binary::workspace().join("target"));
        let mut command = rig.broker_command();
        command.env_remove("HIVE_LOG");
        rig.start_broker_by(command).await;
        measure(report, &rig, name, calls).await?;
        rig.end().await;
    }
    Ok(())
}

async fn measure(report: &mut Report, rig: &Rig, name: &str, calls: &[Kind]) -> anyhow::Result<()> {
    let connect = async |agent| hive_proto::connect::connect(&rig.agent_socket(agent)).await;
    let carol = MessageServiceClient::new(connect("carol").await?);
    let dave = InboxServiceClient::new(connect("dave").await?);
    let mut neighbours = Neighbours { carol, dave, held: None };
    let mut flood = Flood::new(rig.agent_socket("mallory"), calls, ALL_AT_ONCE, NICE);
    neighbours.round().await?;
    let (mut quiet, mut flooded) = <([Sample; 2], [Sample; 2])>::default();
    for pair in 0..PAIRS * rounds() {
        crate::progress(&format!("flood {name}: pair {}", pair + 1));
        for is_flooded in if pair % 2 == 0 { [false, true] } else { [true, false] } {
            if is_flooded {
                flood.go();
                flood.answered(ANSWERED).await;
            }
            let round = neighbours.round().await?;
            if is_flooded {
                flood.cut().await;
            }
            let to = if is_flooded { &mut flooded } else { &mut quiet };
            to[0].push(round.sent.quantile(0.99));
            to[1].push(round.in_hand.quantile(0.99));
        }
    }
    let tally = flood.tally();
    let refused: u64 = tally.refused.values().map(|(count, _)| count).sum();
    crate::progress(&format!("flood {name}: {} calls served, {refused} refused", tally.served));
    anyhow::ensure!(
        tally.odd.is_empty(),
        "the flooder was refused without a reason: {:?}",
        tally.odd
    );
    for (what, quiet, flooded) in
        [("send", &quiet[0], &flooded[0]), ("send to hand", &quiet[1], &flooded[1])]
    {
        let figure = |text: &str| format!("{what} p99, {text}");
        report.figure(
            "flood",
            &figure(&format!("before a flood {name}")),
            "us",
            quiet.clone(),
            None,
        );
        report.figure("flood", &figure(&format!("in a flood {name}")), "us", flooded.clone(), None);
        let bounds = Some(Bounds::only_most(2.0));
        report.figure("flood", &figure(&format!("{name}: ratio")), "", flooded.per(quiet), bounds);
    }
    Ok(())
}
