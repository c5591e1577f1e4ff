//! Streams: `StreamMessages` for the producer, `StreamDeliveries` for the consumer.
//!
//! Invariant: a message is acked, and the answer to its ack has come, before the next one is sent,
//! so that each takes the same two commits.

use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::stream_deliveries_request::Step as Say;
use hive_proto::v1::stream_deliveries_response::Step as Heard;
use hive_proto::v1::stream_messages_response::Answer;
use hive_proto::v1::{
    DeliveryWindow, OpenDeliveries, Pong, SettleDeliveriesRequest, StreamDeliveriesRequest,
    StreamDeliveriesResponse, StreamMessagesRequest, StreamMessagesResponse,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use super::{Channels, ack, call, check, message};

/// Deliveries that the consumer may hold; it never has more than one.
const WINDOW: DeliveryWindow = DeliveryWindow { deliveries: 16, bytes: 0 };

pub(crate) async fn run(channels: Channels, messages: u64) -> anyhow::Result<()> {
    let mut consumer = Consumer::open(channels.consumer).await?;
    let Channels { producer, tracing, .. } = channels;
    let mut producer = Producer { channel: producer, traceparent: None, open: None };
    for number in 0..messages {
        producer.call_in(tracing.next(number, messages));
        producer.send(StreamMessagesRequest { send: Some(message(number)) }).await?;
        consumer.receive_and_ack().await?;
    }
    Ok(())
}

struct Producer {
    channel: Channel,
    traceparent: Option<&'static str>,
    open: Option<(UnboundedSender<StreamMessagesRequest>, Streaming<StreamMessagesResponse>)>,
}

impl Producer {
    /// Sends from now on in this span, which is that of the stream.
    fn call_in(&mut self, traceparent: Option<&'static str>) {
        if self.traceparent != traceparent {
            (self.traceparent, self.open) = (traceparent, None);
        }
    }

    /// Sends a message, and waits until it is accepted.
    async fn send(&mut self, request: StreamMessagesRequest) -> anyhow::Result<()> {
        let hear = match &mut self.open {
            Some((say, hear)) => {
                say.send(request)?;
                hear
            }
            // The broker answers the opening of the stream after its first message.
            None => {
                let (say, said) = unbounded_channel();
                say.send(request)?;
                let said = UnboundedReceiverStream::new(said);
                let mut client = MessageServiceClient::new(self.channel.clone());
                let said = call(said, self.traceparent);
                let hear = client.stream_messages(said).await?.into_inner();
                &mut self.open.insert((say, hear)).1
            }
        };
        match hear.message().await?.and_then(|response| response.answer) {
            Some(Answer::Receipt(_)) => Ok(()),
            other => anyhow::bail!("a message was not accepted: {other:?}"),
        }
    }
}

struct Consumer {
    say: UnboundedSender<StreamDeliveriesRequest>,
    hear: Streaming<StreamDeliveriesResponse>,
}

impl Consumer {
    async fn open(channel: Channel) -> anyhow::Result<Self> {
        let (say, said) = unbounded_channel();
        let open = OpenDeliveries {
            stream_id: "stream".to_owned(),
            window: Some(WINDOW),
            ..OpenDeliveries::default()
        };
        say.send(StreamDeliveriesRequest { step: Some(Say::Open(open)) })?;
        let said = UnboundedReceiverStream::new(said);
        let hear = InboxServiceClient::new(channel).stream_deliveries(said).await?.into_inner();
        Ok(Self { say, hear })
    }

    /// Waits for a message, acks it, and waits for the answer to that.
    async fn receive_and_ack(&mut self) -> anyhow::Result<()> {
        loop {
            match self.hear.message().await?.and_then(|response| response.step) {
                Some(Heard::Leased(leased)) => {
                    let settlements = vec![ack(leased.deliveries)?];
                    self.say(Say::Settle(SettleDeliveriesRequest { settlements }))?;
                }
                Some(Heard::Settled(settled)) => return check(&settled.results, 1),
                Some(Heard::Ping(_)) => self.say(Say::Pong(Pong {}))?,
                Some(Heard::Opened(_)) => {}
                None => anyhow::bail!("the stream has ended"),
            }
        }
    }

    fn say(&self, step: Say) -> anyhow::Result<()> {
        Ok(self.say.send(StreamDeliveriesRequest { step: Some(step) })?)
    }
}
