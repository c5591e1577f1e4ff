//! `MessageService.StreamMessages`: one task for each stream, which writes one group of messages at
//! a time.
//!
//! Invariant: answers are in the order of the messages, and at most [`STREAM_UNANSWERED_MAX`]
//! messages were read and not answered. Each message of a group has a permit to work of its own, so
//! a stream takes no larger share than calls would.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hive_core::limits::STREAM_UNANSWERED_MAX;
use hive_proto::status::{bad_field, in_part};
use hive_proto::v1;
use hive_proto::v1::stream_messages_response::Answer as WireAnswer;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::Stream as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::message::{receipt, send};
use crate::engine::Refusal;
use crate::engine::mail::send::Send;
use crate::engine::mail::send_stream::{Answer, SendStream};
use crate::rpc::Rpc;
use crate::rpc::edge::conn::Slots;
use crate::rpc::edge::fair::PAUSE;
use crate::rpc::edge::{caller, fair, request};
use crate::spawn::spawn;
use crate::store::request::RequestKey;

/// The answers of a stream.
pub(super) type Answers = ReceiverStream<Result<v1::StreamMessagesResponse, Status>>;

type Out = mpsc::Sender<Result<v1::StreamMessagesResponse, Status>>;

/// How long the end of a stream waits until its caller has room for it.
const END_MAX: Duration = Duration::from_secs(1);
/// Messages of a group.
const GROUP_MAX: usize = 16;
/// Answers that wait for the connection. It may have taken as many at once before, and one group
/// may be worked on; together these are the messages that may be unanswered.
const ANSWERS_MAX: usize = (STREAM_UNANSWERED_MAX - GROUP_MAX) / 2;

/// A message that was read and not answered.
struct Unanswered {
    request_id: String,
    /// What is to be sent; an error if it cannot be read.
    message: Result<(RequestKey, Send), Status>,
}

/// Opens a stream.
pub(super) fn open(
    rpc: &Rpc,
    request: Request<Streaming<v1::StreamMessagesRequest>>,
) -> Result<Response<Answers>, Status> {
    let (actor, slots) = (caller::sender(&request)?, caller::slots(&request)?);
    let (out, answers) = mpsc::channel(ANSWERS_MAX);
    let engine = Arc::clone(&rpc.engine);
    let inbound = Inbound { messages: request.into_inner(), slots };
    spawn(&rpc.streams, async move {
        let draining = engine.draining().clone();
        let mut stream = SendStream::new(engine, actor);
        let end = pass(&mut stream, inbound, &draining, &out).await;
        if let Err(status) = end {
            // A caller that reads nothing is not waited for.
            drop(tokio::time::timeout(END_MAX, out.send(Err(status))).await);
        }
    });
    Ok(Response::new(ReceiverStream::new(answers)))
}

/// Passes messages on until the caller half-closes or disconnects, or the stream ends.
async fn pass(
    stream: &mut SendStream,
    mut inbound: Inbound,
    draining: &tokio_util::sync::CancellationToken,
    out: &Out,
) -> Result<(), Status> {
    loop {
        let (group, permits) = tokio::select! {
            biased;
            () = draining.cancelled() => return Err(Refusal::Draining.into()),
            group = inbound.group() => match group {
                Ok(Some(group)) => group,
                // A caller that has disconnected hears no more.
                Ok(None) | Err(_) => return Ok(()),
            },
        };
        // A caller that reads slowly must not keep the permits.
        let (answers, end) = fair::messages(permits, answer(stream, group)).await;
        for (request_id, answer) in answers {
            let answer = v1::StreamMessagesResponse { request_id, answer: Some(answer) };
            let given = tokio::select! {
                biased;
                given = out.send(Ok(answer)) => given,
                // A caller that reads nothing must not hold up the end of the broker.
                () = draining.cancelled() => return Err(Refusal::Draining.into()),
            };
            given.map_err(|_| Status::cancelled("the caller has disconnected"))?;
        }
        if let Some(end) = end {
            return Err(end.into());
        }
    }
}

/// Answers a group, in order, up to the message that ends the stream. A refusal costs a pause, as
/// that of a call does.
async fn answer(
    stream: &mut SendStream,
    group: VecDeque<Unanswered>,
) -> (Vec<(String, WireAnswer)>, Option<Refusal>) {
    let mut group = group.into_iter().peekable();
    let (mut all, mut end, mut is_refused) = (Vec::with_capacity(group.len()), None, false);
    while end.is_none()
        && let Some(Unanswered { request_id, message }) = group.next()
    {
        let first = match message {
            Ok(first) => first,
            Err(status) => {
                is_refused = true;
                all.push((request_id, WireAnswer::Refusal(in_part(&status))));
                continue;
            }
        };
        let (mut ids, mut sends) = (vec![request_id], vec![first]);
        while let Some(next) = group.next_if(|next| next.message.is_ok()) {
            ids.push(next.request_id);
            sends.extend(next.message.ok());
        }
        let (answers, ended) = stream.send(sends).await;
        is_refused |= ended.is_some() || answers.iter().any(Result::is_err);
        all.extend(ids.into_iter().zip(answers.into_iter().map(on_wire)));
        end = ended;
    }
    if is_refused {
        // The stream was a call, and its message is another.
        tokio::time::sleep(if end.is_some() { 2 * PAUSE } else { PAUSE }).await;
    }
    (all, end)
}

fn on_wire(answer: Answer) -> WireAnswer {
    match answer {
        Ok(accepted) => WireAnswer::Receipt(receipt(accepted)),
        Err(refusal) => WireAnswer::Refusal(in_part(&refusal.into())),
    }
}

/// The messages of the caller.
struct Inbound {
    messages: Streaming<v1::StreamMessagesRequest>,
    slots: Slots,
}

impl Inbound {
    /// Waits for a message, and takes those with it that have arrived already, as far as there are
    /// permits; `None` after a half-close. May be dropped while it waits for the first one.
    async fn group(
        &mut self,
    ) -> Result<Option<(VecDeque<Unanswered>, Vec<OwnedSemaphorePermit>)>, Status> {
        let Some(first) = self.messages.message().await? else { return Ok(None) };
        let mut group = VecDeque::from([read(first)]);
        // The semaphore is never closed; a message without a permit would still be one.
        let permit = Arc::clone(&self.slots.at_work).acquire_owned().await;
        let mut permits: Vec<_> = permit.into_iter().collect();
        while group.len() < GROUP_MAX {
            let Ok(permit) = Arc::clone(&self.slots.at_work).try_acquire_owned() else { break };
            // After an error or the end, the next call finds the end.
            let messages = &mut self.messages;
            let next =
                std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *messages).poll_next(cx)));
            let Poll::Ready(Some(Ok(next))) = next.await else { break };
            group.push_back(read(next));
            permits.push(permit);
        }
        Ok(Some((group, permits)))
    }
}

fn read(wire: v1::StreamMessagesRequest) -> Unanswered {
    let Some(mut wire) = wire.send else {
        return Unanswered {
            request_id: String::new(),
            message: Err(bad_field("send", "it is missing")),
        };
    };
    let request_id = wire.request_id.clone();
    let message = request::key(&mut wire).and_then(|key| Ok((key, send(wire)?)));
    Unanswered { request_id, message }
}
