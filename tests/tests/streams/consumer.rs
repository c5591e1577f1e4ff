//! A consumer on a stream of deliveries: it sends the steps that a test names, and reads what the
//! broker answers.
//!
//! Invariant: each wait is for one kind of step, and another kind fails the test. Leases and
//! results come in no fixed order, so the ones that are not waited for are kept; pings are
//! answered, except by [`Consumer::step`].

use std::collections::VecDeque;
use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::convert::FromWire as _;
use hive_proto::status;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::settlement::{Action, Target};
use hive_proto::v1::stream_deliveries_request::Step as Say;
use hive_proto::v1::stream_deliveries_response::Step as Heard;
use hive_proto::v1::{
    Ack, Delivery, DeliveryState, DeliveryWindow, LeasedDelivery, Nack, OpenDeliveries, Pong,
    RedeliveryCause, Release, SettleDeliveriesRequest, Settlement, SettlementResult,
    StreamDeliveriesRequest, StreamDeliveriesResponse, settlement_result,
};
use hive_tests::rig::{Client, call, soon};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

/// A lease, as its client got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) message: u64,
    pub(crate) token: String,
    pub(crate) attempt: u32,
    pub(crate) cause: Option<RedeliveryCause>,
}

impl From<LeasedDelivery> for Lease {
    fn from(leased: LeasedDelivery) -> Self {
        assert_eq!(leased.lease_remaining, None, "a lease of a stream has no end of its own");
        let delivery = leased.delivery.expect("a lease has its delivery");
        assert_eq!(delivery.state(), DeliveryState::Leased);
        let (attempt, cause) = (delivery.attempt, cause_of(&delivery));
        let message = delivery.message.expect("a delivery has its message").id;
        Self { message, token: leased.lease_token, attempt, cause }
    }
}

fn cause_of(delivery: &Delivery) -> Option<RedeliveryCause> {
    delivery.redelivery_cause.map(|_| delivery.redelivery_cause())
}

/// Returns the messages of leases, in order.
pub(crate) fn messages(leases: &[Lease]) -> Vec<u64> {
    leases.iter().map(|lease| lease.message).collect()
}

/// The result of a settlement: the state of the delivery, or the reason of a refusal.
pub(crate) type Settled = Result<DeliveryState, Reason>;

/// The result of an ack.
pub(crate) const ACKED: Settled = Ok(DeliveryState::Acked);
/// The result of a settlement by a lease that is lost.
pub(crate) const LOST: Settled = Err(Reason::LeaseLost);

fn settled(result: SettlementResult) -> Settled {
    match result.result.expect("a result is set") {
        settlement_result::Result::State(state) => {
            Ok(DeliveryState::try_from(state).expect("a state of the contract"))
        }
        settlement_result::Result::LeaseRemaining(time) => panic!("an extension by {time}"),
        settlement_result::Result::Refusal(refusal) => {
            Err(Reason::from_wire(refusal.reason()).expect("a reason of the contract"))
        }
    }
}

fn settlement(token: &str, action: Action) -> Settlement {
    Settlement { target: Some(Target::LeaseToken(token.to_owned())), action: Some(action) }
}

pub(crate) fn ack(lease: &Lease) -> Settlement {
    settlement(&lease.token, Action::Ack(Ack {}))
}

pub(crate) fn nack(lease: &Lease, error: &str) -> Settlement {
    let nack = Nack { error: error.to_owned(), permanent: false };
    settlement(&lease.token, Action::Nack(nack))
}

pub(crate) fn release(lease: &Lease) -> Settlement {
    settlement(&lease.token, Action::Release(Release {}))
}

/// Settles by a call of its own, on any connection of the agent.
pub(crate) async fn settle(channel: &Channel, settlements: Vec<Settlement>) -> Vec<Settled> {
    let request = SettleDeliveriesRequest { settlements };
    let response: hive_proto::v1::SettleDeliveriesResponse = call::done(channel, &request).await;
    response.results.into_iter().map(settled).collect()
}

/// Returns a window of this many deliveries of any size.
pub(crate) fn window(deliveries: u32) -> DeliveryWindow {
    DeliveryWindow { deliveries, bytes: 0 }
}

/// Returns the first message of a stream, with the default grace.
pub(crate) fn opening(id: &str, window: DeliveryWindow) -> OpenDeliveries {
    OpenDeliveries { stream_id: id.to_owned(), window: Some(window), orphan_grace: None }
}

/// Returns the same with this grace.
pub(crate) fn with_grace(grace: Duration, open: OpenDeliveries) -> OpenDeliveries {
    let orphan_grace = prost_types::Duration::try_from(grace).expect("a short time");
    OpenDeliveries { orphan_grace: Some(orphan_grace), ..open }
}

/// Returns the state of a delivery, its attempt, and the cause of its last requeue.
pub(crate) async fn state(
    operator: &Client,
    agent: &str,
    message: u64,
) -> (DeliveryState, u32, Option<RedeliveryCause>) {
    let delivery = operator.delivery(agent, message).await;
    (delivery.state(), delivery.attempt, cause_of(&delivery))
}

/// Asserts that a status has this reason, with its code and the id of the stream if it names one.
#[track_caller]
pub(crate) fn assert_refused(status: &Status, reason: Reason, id: &str) {
    assert_eq!(status::reason(status), Some(reason), "{status:?}");
    assert_eq!(status.code(), status::code(reason), "{status:?}");
    let named = status::metadata(status).remove("stream_id");
    assert!(named.is_none_or(|named| named == id), "{status:?}");
}

/// An open stream.
#[derive(Debug)]
pub(crate) struct Consumer {
    say: mpsc::UnboundedSender<StreamDeliveriesRequest>,
    hear: Streaming<StreamDeliveriesResponse>,
    /// Leases that came before they were waited for.
    leases: VecDeque<Lease>,
    /// Results that came before they were waited for.
    results: VecDeque<Vec<Settled>>,
}

impl Consumer {
    /// Begins a stream whose first answer is not read yet.
    pub(crate) async fn begin(channel: &Channel, open: OpenDeliveries) -> Result<Self, Status> {
        let (say, said) = mpsc::unbounded_channel();
        say.send(StreamDeliveriesRequest { step: Some(Say::Open(open)) }).expect("it is open");
        let said = UnboundedReceiverStream::new(said);
        let mut client = InboxServiceClient::new(channel.clone());
        let begun = soon("the stream is answered", client.stream_deliveries(said)).await?;
        let (leases, results) = (VecDeque::new(), VecDeque::new());
        Ok(Self { say, hear: begun.into_inner(), leases, results })
    }

    /// Opens a stream; returns it with the leases that a stream of this id held before.
    pub(crate) async fn try_open(
        channel: &Channel,
        open: OpenDeliveries,
    ) -> Result<(Self, Vec<Lease>), Status> {
        let mut consumer = Self::begin(channel, open).await?;
        let mut held = Vec::new();
        loop {
            match consumer.step().await? {
                Some(Heard::Opened(part)) => {
                    held.extend(part.deliveries.into_iter().map(Lease::from));
                    if part.complete {
                        return Ok((consumer, held));
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Opens a stream that may be opened.
    pub(crate) async fn open(channel: &Channel, open: OpenDeliveries) -> (Self, Vec<Lease>) {
        Self::try_open(channel, open).await.expect("the stream opens")
    }

    /// Opens a stream whose id held nothing.
    pub(crate) async fn fresh(channel: &Channel, open: OpenDeliveries) -> Self {
        let (consumer, held) = Self::open(channel, open).await;
        assert_eq!(held, []);
        consumer
    }

    /// Sends a step.
    pub(crate) fn say(&self, step: Say) {
        self.say.send(StreamDeliveriesRequest { step: Some(step) }).expect("the stream is open");
    }

    /// Sends settlements, without waiting for their results.
    pub(crate) fn say_settle(&self, settlements: Vec<Settlement>) {
        self.say(Say::Settle(SettleDeliveriesRequest { settlements }));
    }

    /// Waits for the next step, also a ping; `None` if the stream ends with OK.
    pub(crate) async fn step(&mut self) -> Result<Option<Heard>, Status> {
        let message = soon("the broker sends a step, or the end", self.hear.message()).await?;
        Ok(message.map(|message| message.step.expect("a step is set")))
    }

    /// Keeps the leases or the results of the next step.
    async fn take_step(&mut self, wanted: &str) {
        match self.step().await {
            Ok(Some(Heard::Leased(leased))) => {
                self.leases.extend(leased.deliveries.into_iter().map(Lease::from));
            }
            Ok(Some(Heard::Settled(response))) => {
                self.results.push_back(response.results.into_iter().map(settled).collect());
            }
            Ok(Some(Heard::Ping(_))) => self.say(Say::Pong(Pong {})),
            other => panic!("{wanted} did not come, but {other:?}"),
        }
    }

    /// Waits for this many new leases.
    pub(crate) async fn leased(&mut self, count: usize) -> Vec<Lease> {
        while self.leases.len() < count {
            self.take_step("a lease").await;
        }
        self.leases.drain(..count).collect()
    }

    /// Waits for a new lease.
    pub(crate) async fn lease(&mut self) -> Lease {
        self.leased(1).await.remove(0)
    }

    /// Waits for the results of the oldest settlements without results.
    pub(crate) async fn results(&mut self) -> Vec<Settled> {
        while self.results.is_empty() {
            self.take_step("a result").await;
        }
        self.results.pop_front().expect("it was waited for")
    }

    /// Settles, and waits for the results.
    pub(crate) async fn settle(&mut self, settlements: Vec<Settlement>) -> Vec<Settled> {
        self.say_settle(settlements);
        self.results().await
    }

    /// Acks a delivery.
    pub(crate) async fn ack(&mut self, lease: &Lease) {
        assert_eq!(self.settle(vec![ack(lease)]).await, [ACKED], "{lease:?}");
    }

    /// Waits until the broker has read all steps so far, and asserts that no lease came that was
    /// not waited for.
    pub(crate) async fn assert_nothing_came(&mut self) {
        assert_eq!(self.settle(Vec::new()).await, []);
        assert_eq!(self.leases, []);
    }

    /// Closes the client's side; returns the results and the leases that still came. The stream
    /// ends with OK.
    pub(crate) async fn close(self) -> (Vec<Vec<Settled>>, Vec<Lease>) {
        let Self { say, mut hear, mut leases, mut results } = self;
        drop(say);
        loop {
            let next = soon("the stream ends", hear.message()).await.expect("it ends with OK");
            match next.map(|next| next.step.expect("a step is set")) {
                Some(Heard::Settled(response)) => {
                    results.push_back(response.results.into_iter().map(settled).collect());
                }
                Some(Heard::Leased(leased)) => {
                    leases.extend(leased.deliveries.into_iter().map(Lease::from));
                }
                Some(Heard::Ping(_)) => {}
                Some(Heard::Opened(opened)) => panic!("{opened:?}"),
                None => return (results.into(), leases.into()),
            }
        }
    }

    /// Waits for the end of the stream, before which no lease and no result comes.
    pub(crate) async fn broken(mut self) -> Status {
        loop {
            match self.step().await {
                Ok(Some(Heard::Ping(_))) => self.say(Say::Pong(Pong {})),
                Ok(step) => panic!("the stream goes on, or ends with OK: {step:?}"),
                Err(status) => return status,
            }
        }
    }

    /// Waits until the broker ends the stream for this reason.
    pub(crate) async fn refused(self, reason: Reason, id: &str) {
        assert_refused(&self.broken().await, reason, id);
    }
}
