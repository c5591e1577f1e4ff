//! The calls of a flooder: everything that an agent may call, in the form that costs the broker
//! most.

use hive_core::limits::{SETTLEMENTS_MAX, STREAM_UNANSWERED_MAX};
use hive_proto::v1::event_service_client::EventServiceClient;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::settlement::{Action, Target};
use hive_proto::v1::stream_deliveries_request::Step;
use hive_proto::v1::turn_history_service_client::TurnHistoryServiceClient;
use hive_proto::v1::wake_service_client::WakeServiceClient;
use hive_proto::v1::{
    Ack, CreateReminderRequest, DeliveryWindow, GetTurnStatsRequest, ListDeliveriesRequest,
    ListEventsRequest, ListMessagesRequest, OpenDeliveries, ReceiveMessagesRequest,
    SearchMessagesRequest, SettleDeliveriesRequest, Settlement, StreamDeliveriesRequest,
    StreamMessagesRequest, WatchEventsRequest, create_reminder_request::Due,
    stream_deliveries_response,
};
use hive_tests::rig::{fresh_id, request};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Status;
use tonic::transport::Channel;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A small message to this recipient.
    Send(&'static str),
    /// The largest message that is accepted, to this recipient.
    Large(&'static str),
    /// A message far over the limit.
    TooLarge,
    Ask,
    Remind,
    /// A `Wake` call.
    Wake,
    /// A receive that does not wait.
    Receive,
    /// A whole page of messages.
    ListMessages,
    /// A whole page of deliveries.
    ListDeliveries,
    /// A search for a term that every message contains.
    Search,
    /// A whole page of events.
    ListEvents,
    /// The sum of all turns.
    Stats,
    /// A watch of the log from its beginning, closed after the first event.
    WatchEvents,
    /// A stream of as many small messages as may be unanswered, to this recipient.
    StreamMessages(&'static str),
    /// A stream that leases as much as it may hold, settles a whole list, and releases the rest.
    StreamDeliveries,
    /// A list of as many settlements as are allowed.
    Settle,
}

pub(crate) const WRITES: [Kind; 8] = [
    Kind::Send("erin"),
    Kind::Send("*"),
    Kind::Send("mallory"),
    Kind::Large("erin"),
    Kind::TooLarge,
    Kind::Ask,
    Kind::Remind,
    Kind::Wake,
];
pub(crate) const READS: [Kind; 7] = [
    Kind::Receive,
    Kind::ListMessages,
    Kind::ListDeliveries,
    Kind::Search,
    Kind::ListEvents,
    Kind::Stats,
    Kind::WatchEvents,
];

/// The call that costs its caller least.
#[allow(dead_code, reason = "only one of the targets that include this file uses it")]
pub(crate) const POLLS: [Kind; 1] = [Kind::Receive];

#[allow(dead_code, reason = "only one of the targets that include this file uses it")]
pub(crate) const STREAMS: [Kind; 2] =
    [Kind::StreamMessages("erin"), Kind::StreamMessages("mallory")];

/// Apart from the others, because each caller would soon wait for its turn with a list.
#[allow(dead_code, reason = "not all targets that include this file use it")]
pub(crate) const LISTS: [Kind; 2] = [Kind::StreamDeliveries, Kind::Settle];

pub(crate) async fn call(kind: Kind, channel: &Channel) -> Result<(), Status> {
    let channel = channel.clone();
    match kind {
        Kind::Send(name) => send(channel, name, 200).await,
        Kind::Large(name) => send(channel, name, 32 * 1024).await,
        Kind::TooLarge => send(channel, "erin", 1024 * 1024).await,
        Kind::Ask => {
            let request = request::ask("erin", "and now?");
            QuestionServiceClient::new(channel).ask_question(request).await.map(drop)
        }
        Kind::Remind => {
            let due = Some(Due::Delay(prost_types::Duration { seconds: 3600, nanos: 0 }));
            let request =
                CreateReminderRequest { request_id: fresh_id(), body: "later".to_owned(), due };
            ReminderServiceClient::new(channel).create_reminder(request).await.map(drop)
        }
        Kind::Wake => {
            let request = request::wake("flood", "up!");
            WakeServiceClient::new(channel).wake(request).await.map(drop)
        }
        Kind::Receive => {
            let request = ReceiveMessagesRequest { max_deliveries: 32, ..request::receive() };
            InboxServiceClient::new(channel).receive_messages(request).await.map(drop)
        }
        Kind::ListMessages => {
            let request = ListMessagesRequest { page_size: 500, ..ListMessagesRequest::default() };
            MessageServiceClient::new(channel).list_messages(request).await.map(drop)
        }
        Kind::ListDeliveries => {
            let request =
                ListDeliveriesRequest { page_size: 500, ..ListDeliveriesRequest::default() };
            InboxServiceClient::new(channel).list_deliveries(request).await.map(drop)
        }
        Kind::Search => {
            let request = SearchMessagesRequest {
                query: "xx*".to_owned(),
                page_size: 50,
                ..SearchMessagesRequest::default()
            };
            MessageServiceClient::new(channel).search_messages(request).await.map(drop)
        }
        Kind::ListEvents => {
            let request = ListEventsRequest { page_size: 500, ..ListEventsRequest::default() };
            EventServiceClient::new(channel).list_events(request).await.map(drop)
        }
        Kind::Stats => {
            let request = GetTurnStatsRequest::default();
            TurnHistoryServiceClient::new(channel).get_turn_stats(request).await.map(drop)
        }
        Kind::WatchEvents => {
            let request = WatchEventsRequest { after_sequence: Some(0), ..Default::default() };
            EventServiceClient::new(channel)
                .watch_events(request)
                .await?
                .into_inner()
                .message()
                .await
                .map(drop)
        }
        Kind::StreamMessages(name) => stream_messages(channel, name).await,
        Kind::StreamDeliveries => stream_deliveries(channel).await,
        Kind::Settle => {
            InboxServiceClient::new(channel).settle_deliveries(settlements()).await.map(drop)
        }
    }
}

async fn stream_messages(channel: Channel, name: &str) -> Result<(), Status> {
    let message = |_| StreamMessagesRequest { send: Some(request::send(name, "xx ".repeat(66))) };
    let messages: Vec<_> = (0..STREAM_UNANSWERED_MAX).map(message).collect();
    let mut client = MessageServiceClient::new(channel);
    let mut answers = client.stream_messages(tokio_stream::iter(messages)).await?.into_inner();
    while answers.message().await?.is_some() {}
    Ok(())
}

async fn stream_deliveries(channel: Channel) -> Result<(), Status> {
    let window = Some(DeliveryWindow { deliveries: u32::MAX, bytes: u32::MAX });
    let open = OpenDeliveries { stream_id: fresh_id(), window, orphan_grace: None };
    // The results show that the broker has read all before them.
    let steps = [Step::Open(open), Step::Settle(settlements())];
    let (say, said) = tokio::sync::mpsc::unbounded_channel();
    for step in steps {
        // The other end is in the call below.
        drop(say.send(StreamDeliveriesRequest { step: Some(step) }));
    }
    let mut client = InboxServiceClient::new(channel);
    let said = UnboundedReceiverStream::new(said);
    let mut answers = client.stream_deliveries(said).await?.into_inner();
    while let Some(answer) = answers.message().await? {
        if matches!(answer.step, Some(stream_deliveries_response::Step::Settled(_))) {
            break;
        }
    }
    drop(say);
    while answers.message().await?.is_some() {}
    Ok(())
}

/// As many settlements as are allowed: acks by tokens of no lease, each of which costs a look.
fn settlements() -> SettleDeliveriesRequest {
    let token = |number| format!("1.{}.{}", number + 1, "0".repeat(32));
    let settlement = |number| Settlement {
        target: Some(Target::LeaseToken(token(number))),
        action: Some(Action::Ack(Ack {})),
    };
    SettleDeliveriesRequest { settlements: (0..SETTLEMENTS_MAX).map(settlement).collect() }
}

async fn send(channel: Channel, name: &str, bytes: usize) -> Result<(), Status> {
    let body = "xx ".repeat(bytes / 3);
    let request = request::send(name, body);
    MessageServiceClient::new(channel).send_message(request).await.map(drop)
}
