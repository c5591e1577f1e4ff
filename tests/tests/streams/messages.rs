//! Streams of messages: the end of a turn, a drain, and a client that does not read.
//!
//! What it is not: refusals, rates, lost answers and a kill of the broker, which the example
//! `send-lines.mjs` meets. Invariant: what is accepted is a beginning of what the client sent.

use std::collections::VecDeque;

use hive_core::limits::STREAM_UNANSWERED_MAX;
use hive_core::reason::Reason;
use hive_proto::convert::FromWire as _;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::stream_messages_response::Answer;
use hive_proto::v1::{
    EventKind, SendMessageRequest, StreamMessagesRequest, StreamMessagesResponse, TurnOutcome,
};
use hive_tests::rig::{Client, Harness, Line, Rig, process_token, request, soon};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::consumer::assert_refused;

/// The answer to a message: its id, or the reason of a refusal.
type Answered = Result<u64, Reason>;

/// An open stream of messages.
#[derive(Debug)]
struct Sender {
    say: mpsc::UnboundedSender<StreamMessagesRequest>,
    hear: Streaming<StreamMessagesResponse>,
    /// What was sent and has no answer, in order.
    unanswered: VecDeque<SendMessageRequest>,
}

impl Sender {
    /// Opens a stream with these messages. The broker answers nothing before the first message, and
    /// the generated client waits for that answer.
    async fn open(client: &Client, first: Vec<SendMessageRequest>) -> Self {
        let (say, said) = mpsc::unbounded_channel();
        for send in &first {
            let request = StreamMessagesRequest { send: Some(send.clone()) };
            say.send(request).expect("its end is below");
        }
        let said = client.request(UnboundedReceiverStream::new(said));
        let mut messages = MessageServiceClient::new(client.channel());
        let opened = soon("the stream opens", messages.stream_messages(said)).await;
        let hear = opened.expect("the stream opens").into_inner();
        Self { say, hear, unanswered: first.into() }
    }

    fn send(&mut self, send: SendMessageRequest) {
        self.unanswered.push_back(send.clone());
        // If the stream has ended, the next answer shows it.
        drop(self.say.send(StreamMessagesRequest { send: Some(send) }));
    }

    /// Waits for the answer to the oldest message without one; `None` after a half-close.
    async fn try_answer(&mut self) -> Result<Option<Answered>, Status> {
        let Some(response) = soon("an answer", self.hear.message()).await? else { return Ok(None) };
        let oldest = self.unanswered.pop_front().expect("each message has one answer");
        assert_eq!(response.request_id, oldest.request_id, "answers are in order");
        Ok(Some(match response.answer.expect("an answer is set") {
            Answer::Receipt(receipt) => Ok(receipt.message_id),
            Answer::Refusal(refusal) => {
                Err(Reason::from_wire(refusal.reason()).expect("a reason of the contract"))
            }
        }))
    }

    async fn answer(&mut self) -> Answered {
        self.try_answer().await.expect("the stream goes on").expect("the stream goes on")
    }

    /// Closes the client's side; returns the messages that were accepted before the end, which is
    /// with OK.
    async fn close(mut self) -> Vec<u64> {
        self.say = mpsc::unbounded_channel().0;
        let mut accepted = Vec::new();
        while let Some(answer) = self.try_answer().await.expect("the stream ends with OK") {
            accepted.push(answer.expect("the message is accepted"));
        }
        assert_eq!(self.unanswered, [], "each message has an answer");
        accepted
    }
}

fn letters(recipient: &str, count: usize) -> Vec<SendMessageRequest> {
    (1..=count).map(|number| request::send(recipient, format!("letter {number}"))).collect()
}

/// Sends this many messages on one stream; their ids.
pub(crate) async fn send_all(channel: &Channel, recipient: &str, count: usize) -> Vec<u64> {
    let sends = letters(recipient, count);
    let accepted = Sender::open(&Client::new(channel.clone()), sends).await.close().await;
    assert_eq!(accepted.len(), count);
    accepted
}

/// Returns the bodies of an agent's mail, in order.
async fn bodies(rig: &Rig, agent: &str) -> Vec<String> {
    let deliveries = rig.operator().await.deliveries(agent, &[]).await;
    deliveries.into_iter().filter_map(|delivery| Some(delivery.message?.body)).collect()
}

#[tokio::test]
async fn the_end_of_its_turn_ends_it_and_nothing_behind_is_accepted() {
    let rig = Rig::duo().await;
    let bob = rig.agent("bob").await;
    let harness = Harness::attach(&bob.channel(), false).await;
    let token = process_token();
    let turn = harness.open(&token).await;
    let sends = [("ada", "one"), ("no-agent", "lost"), ("ada", ""), ("ada", "two")];
    let sends = sends.map(|(recipient, body)| request::send(recipient, body));
    let mut sender = Sender::open(&bob.with_process(&token), sends.to_vec()).await;
    sender.answer().await.expect("it is accepted");
    // A final refusal is the answer to its message only.
    assert_eq!(sender.answer().await, Err(Reason::AgentNotFound));
    assert_eq!(sender.answer().await, Err(Reason::FieldInvalid));
    sender.answer().await.expect("it is accepted");
    harness.end(turn, TurnOutcome::Ok).await;
    for body in ["three", "four"] {
        sender.send(request::send("ada", body));
    }
    let end = sender.try_answer().await.expect_err("the turn has ended");
    assert_refused(&end, Reason::TurnEnded, "");
    assert_eq!(bodies(&rig, "ada").await, ["one", "two"]);
    rig.end().await;
}

#[tokio::test]
async fn a_repeat_after_a_drain_keeps_the_order_and_sends_nothing_twice() {
    let mut rig = Rig::duo().await;
    let sends = letters("bob", 200);
    let all: Vec<String> = sends.iter().map(|send| send.body.clone()).collect();
    let mut sender = Sender::open(&rig.agent("ada").await, sends).await;
    sender.answer().await.expect("the first is accepted");
    // The broker drains while it works on the others.
    let answers = async {
        loop {
            match sender.try_answer().await {
                Ok(answer) => answer.expect("no half-close").expect("it is accepted"),
                Err(end) => return end,
            };
        }
    };
    let ((), end) = tokio::join!(rig.stop_broker(), answers);
    assert_refused(&end, Reason::Draining, "");
    let unanswered = std::mem::take(&mut sender.unanswered);
    rig.start_broker().await;
    Sender::open(&rig.agent("ada").await, unanswered.into()).await.close().await;
    assert_eq!(bodies(&rig, "bob").await, all);
    rig.end().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_has_few_messages_accepted() {
    let rig = Rig::duo().await;
    let mut watch = rig.watch().await;
    let line = Line::connect_without_room(&rig.agent_socket("ada")).await.expect("a broker");
    let _sender = Sender::open(&Client::new(line.channel()), letters("bob", 500)).await;
    watch.kinds(EventKind::MessageAccepted, STREAM_UNANSWERED_MAX / 2).await;
    // The broker has had the time for many more.
    for _ in 0..200 {
        rig.operator().await.send("ada", "hello").await;
    }
    let accepted = bodies(&rig, "bob").await.len();
    assert!(accepted <= STREAM_UNANSWERED_MAX, "{accepted} messages have no answer");
    rig.end().await;
}
