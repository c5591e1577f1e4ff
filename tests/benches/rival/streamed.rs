//! Hive by streams: `StreamMessages` for a producer, `StreamDeliveries` for a consumer.
//!
//! Invariant: each message has its receipt, in order; a refusal or a settlement without effect ends
//! the bench.

use std::collections::VecDeque;
use std::time::Instant;

use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::stream_deliveries_request::Step as Say;
use hive_proto::v1::stream_deliveries_response::Step as Heard;
use hive_proto::v1::stream_messages_response::Answer;
use hive_proto::v1::{
    DeliveryWindow, OpenDeliveries, Pong, SettleDeliveriesRequest, Settlement,
    StreamDeliveriesRequest, StreamDeliveriesResponse, StreamMessagesRequest,
    StreamMessagesResponse,
};
use hive_tests::rig::fresh_id;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use super::Tally;
use super::unary::{Ids, ack, check, message};
use crate::sample::{Sample, micros};

/// Maximum settlements that are written as one list; the broker commits longer ones by themselves.
const LIST: usize = 16;

/// The producer's stream. The broker answers its opening after the first message.
#[derive(Debug)]
enum Answers {
    Unopened(UnboundedReceiver<StreamMessagesRequest>),
    Opened(Box<Streaming<StreamMessagesResponse>>),
    Failed,
}

/// A producer.
#[derive(Debug)]
pub(crate) struct Producer {
    channel: Channel,
    ids: Ids,
    say: UnboundedSender<StreamMessagesRequest>,
    hear: Answers,
}

impl Producer {
    pub(crate) fn new(channel: Channel) -> Self {
        let (say, said) = unbounded_channel();
        Self { channel, ids: Ids::new(), say, hear: Answers::Unopened(said) }
    }

    fn write(&mut self, inbox: usize, body: &str) -> anyhow::Result<()> {
        let send = Some(message(&self.ids, inbox, body));
        Ok(self.say.send(StreamMessagesRequest { send })?)
    }

    /// Waits for the answer to the oldest message without one.
    async fn answer(&mut self) -> anyhow::Result<()> {
        self.hear = match std::mem::replace(&mut self.hear, Answers::Failed) {
            Answers::Unopened(said) => {
                let said = UnboundedReceiverStream::new(said);
                let mut messages = MessageServiceClient::new(self.channel.clone());
                Answers::Opened(Box::new(messages.stream_messages(said).await?.into_inner()))
            }
            other @ (Answers::Opened(_) | Answers::Failed) => other,
        };
        let Answers::Opened(hear) = &mut self.hear else { anyhow::bail!("the stream has failed") };
        match hear.message().await?.and_then(|response| response.answer) {
            Some(Answer::Receipt(_)) => Ok(()),
            other => anyhow::bail!("a message was not accepted: {other:?}"),
        }
    }

    pub(crate) async fn send(&mut self, inbox: usize, body: &str) -> anyhow::Result<()> {
        self.write(inbox, body)?;
        self.answer().await
    }

    /// Sends to the inboxes that `next` names, with up to `window` sends without an answer.
    pub(crate) async fn load(
        &mut self,
        window: usize,
        mut next: impl FnMut() -> Option<usize>,
        body: &str,
    ) -> anyhow::Result<Tally> {
        let (mut open, mut sample, mut sent) = (VecDeque::new(), Sample::default(), 0);
        let mut is_over = false;
        loop {
            while open.len() < window && !is_over {
                match next() {
                    Some(inbox) => {
                        open.push_back(Instant::now());
                        self.write(inbox, body)?;
                    }
                    None => is_over = true,
                }
            }
            let Some(start) = open.pop_front() else { return Ok(Tally { sent, sample }) };
            self.answer().await?;
            sample.push(micros(start.elapsed()));
            sent += 1;
        }
    }
}

/// The consumer of an inbox. It opens its stream when it receives first.
#[derive(Debug)]
pub(crate) struct Consumer {
    channel: Channel,
    window: u32,
    say: UnboundedSender<StreamDeliveriesRequest>,
    hear: Option<Box<Streaming<StreamDeliveriesResponse>>>,
    /// What was received and is not acked.
    held: Vec<Settlement>,
}

impl Consumer {
    pub(crate) fn new(channel: Channel, window: u32) -> Self {
        Self { channel, window, say: unbounded_channel().0, hear: None, held: Vec::new() }
    }

    /// Opens the stream.
    async fn open(&mut self) -> anyhow::Result<Box<Streaming<StreamDeliveriesResponse>>> {
        let (say, said) = unbounded_channel();
        self.say = say;
        let window = Some(DeliveryWindow { deliveries: self.window, bytes: 0 });
        let open = OpenDeliveries { stream_id: fresh_id(), window, orphan_grace: None };
        self.say(Say::Open(open))?;
        let said = UnboundedReceiverStream::new(said);
        let mut inbox = InboxServiceClient::new(self.channel.clone());
        Ok(Box::new(inbox.stream_deliveries(said).await?.into_inner()))
    }

    /// Acks what was received last, and waits for more; returns the number of its messages.
    pub(crate) async fn receive(&mut self) -> anyhow::Result<usize> {
        let mut hear = match self.hear.take() {
            Some(hear) => hear,
            None => self.open().await?,
        };
        self.say_acks()?;
        let count = self.leased(&mut hear).await?;
        self.hear = Some(hear);
        Ok(count)
    }

    /// Waits for leases; returns their number.
    async fn leased(
        &mut self,
        hear: &mut Streaming<StreamDeliveriesResponse>,
    ) -> anyhow::Result<usize> {
        loop {
            match hear.message().await?.and_then(|response| response.step) {
                Some(Heard::Leased(leased)) => {
                    let tokens = leased.deliveries.into_iter().map(|leased| leased.lease_token);
                    self.held.extend(tokens.map(ack));
                    return Ok(self.held.len());
                }
                Some(Heard::Settled(settled)) => check(&settled.results)?,
                Some(Heard::Ping(_)) => self.say(Say::Pong(Pong {}))?,
                Some(Heard::Opened(_)) => {}
                None => anyhow::bail!("the stream has ended"),
            }
        }
    }

    fn say(&self, step: Say) -> anyhow::Result<()> {
        Ok(self.say.send(StreamDeliveriesRequest { step: Some(step) })?)
    }

    /// Sends the acks of what was received last.
    fn say_acks(&mut self) -> anyhow::Result<()> {
        while !self.held.is_empty() {
            let rest = self.held.split_off(self.held.len().min(LIST));
            let settlements = std::mem::replace(&mut self.held, rest);
            self.say(Say::Settle(SettleDeliveriesRequest { settlements }))?;
        }
        Ok(())
    }

    /// Acks what was received last, and closes the stream, which releases what is on its way.
    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        self.say_acks()?;
        let Self { say, hear, .. } = self;
        drop(say);
        let Some(mut hear) = hear else { return Ok(()) };
        while let Some(response) = hear.message().await? {
            if let Some(Heard::Settled(settled)) = response.step {
                check(&settled.results)?;
            }
        }
        Ok(())
    }
}
