//! Senders on streams: many messages in order, repeated until each has an answer.
//!
//! Invariant of the broker that is checked here: messages that were sent in order are accepted in
//! order, however often the stream breaks.

use std::time::Duration;

use hive_history::{Answer, Op, Reply};
use hive_proto::v1;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::stream_messages_response::Answer as Wire;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::cast::GUEST;
use super::dice::Dice;
use super::perform::refusal;
use super::players::Table;
use super::voice::Voice;

/// Maximum wait for an answer; after that the stream is given up.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// A message, and its answer.
struct Item {
    request_id: String,
    op: Op,
    answer: Option<Answer>,
}

/// Sends some messages on streams, until all have an answer.
pub(super) async fn send(voice: &Voice, table: &Table, dice: &mut Dice) {
    let count = 2 + dice.below(12);
    let mut items: Vec<Item> = Vec::new();
    for _ in 0..count {
        let op = Op::Send {
            to: vec![table.other(&voice.name, dice)],
            everyone: false,
            body: table.text(&voice.name, "streamed"),
            reply_to: 0,
            turn: 0,
        };
        items.push(Item { request_id: voice.request_id(), op, answer: None });
    }
    while items.iter().any(|item| item.answer.is_none()) {
        let seen = voice.seen();
        send_all(voice, &mut items).await;
        if items.iter().any(|item| item.answer.is_none()) {
            voice.another_broker(seen).await;
        }
    }
    let mut accepted = Vec::new();
    for item in &items {
        if let (Some(Answer::Ok(Reply::Sent { message, .. })), Op::Send { to, body, .. }) =
            (&item.answer, &item.op)
        {
            // A message to the guest may be refused, and be accepted when it is repeated because
            // the refusal was lost.
            if to.iter().all(|to| to != GUEST) {
                accepted.push(*message);
            }
            table.facts.receipt(*message, body);
        }
    }
    table.facts.answered("StreamMessages");
    table.facts.hold(accepted.is_sorted(), || {
        format!("messages of one stream of {} were accepted as {accepted:?}", voice.name)
    });
}

/// Sends all messages without an answer on one stream, and reads answers until it ends.
async fn send_all(voice: &Voice, items: &mut [Item]) {
    let (out, requests) = mpsc::unbounded_channel();
    let mut open = Vec::new();
    for (place, item) in items.iter().enumerate().filter(|(_, item)| item.answer.is_none()) {
        let Op::Send { to, body, .. } = &item.op else { continue };
        open.push((place, voice.note(&item.request_id, &item.op)));
        let send = v1::SendMessageRequest {
            request_id: item.request_id.clone(),
            ..hive_tests::rig::request::send(to.first().map_or("", String::as_str), body)
        };
        // The other end is held below.
        drop(out.send(v1::StreamMessagesRequest { send: Some(send) }));
    }
    let mut open = open.into_iter();
    let mut next = open.next();
    let requests = UnboundedReceiverStream::new(requests);
    let stream = MessageServiceClient::new(voice.channel()).stream_messages(requests).await;
    let mut end = Answer::Unknown(String::new());
    match stream {
        Err(status) => end = refusal(&status),
        Ok(stream) => {
            let mut stream = stream.into_inner();
            while let Some((place, call)) = next {
                match tokio::time::timeout(ANSWER_WAIT, stream.message()).await {
                    Ok(Ok(Some(response))) => {
                        let answer = answer(response);
                        voice.answered(call, answer.clone());
                        items[place].answer = Some(answer);
                        next = open.next();
                    }
                    Ok(Err(status)) => {
                        end = refusal(&status);
                        break;
                    }
                    Ok(Ok(None)) | Err(_) => break,
                }
            }
        }
    }
    if let Some((_, call)) = next {
        voice.answered(call, end);
    }
    open.for_each(|(_, call)| voice.answered(call, Answer::Unknown(String::new())));
}

fn answer(response: v1::StreamMessagesResponse) -> Answer {
    match response.answer {
        Some(Wire::Receipt(sent)) => Answer::Ok(Reply::Sent {
            message: sent.message_id,
            already: sent.already_sent,
            skipped: sent.skipped_agents,
        }),
        Some(Wire::Refusal(part)) => refusal(&hive_proto::status::of_part(&part)),
        None => Answer::Unknown("an answer without a case".to_owned()),
    }
}
