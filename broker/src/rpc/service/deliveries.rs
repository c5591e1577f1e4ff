//! `InboxService.StreamDeliveries`: one task for each stream, between the caller's messages and the
//! engine's leases.
//!
//! Invariant: a lease is sent after its commit, and counts as taken when the connection has taken
//! the message with it. The stream ends with its reason, even if the caller reads slowly: the end
//! has a place of its own behind all steps.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hive_core::limits::{ORPHAN_GRACE_DEFAULT, ORPHAN_GRACE_MAX, STREAM_PONG_MAX};
use hive_proto::convert::{request as fields, settlement as settlements};
use hive_proto::status::bad_field;
use hive_proto::v1;
use hive_proto::v1::stream_deliveries_request::Step as Heard;
use hive_proto::v1::stream_deliveries_response::Step;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use super::inbox::leased;
use super::settlement;
use super::watching::parts;
use crate::engine::error::MailError;
use crate::engine::mail::receive::Leased;
use crate::engine::mail::stream::{self, DeliveryStream, Leases, Open, Window};
use crate::engine::{Actor, Refusal, permit};
use crate::rpc::Rpc;
use crate::rpc::edge::answer::Taken;
use crate::rpc::edge::conn::Slots;
use crate::rpc::edge::fair::ListTurn;
use crate::rpc::edge::{caller, fair};
use crate::spawn::spawn;

/// Steps that wait for a slow caller.
const STEPS: usize = 4;
/// Silence of a caller that holds leases, after which it is asked whether it is there.
const PING_AFTER: Duration = Duration::from_secs(10);

type Inbound = Streaming<v1::StreamDeliveriesRequest>;

/// Which steps the connection has taken.
#[derive(Debug)]
struct Sent {
    /// Steps that were handed to the connection.
    handed: u64,
    /// Steps that were produced.
    produced: u64,
    /// The tokens in a step, by its number.
    tokens: VecDeque<(u64, Vec<String>)>,
    taken: stream::Taken,
    /// Why the stream ended; `None` after a half-close.
    end: Option<Status>,
}

#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<Sent>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Sent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the connection has taken all that it was handed.
    fn taken(&self) {
        let mut sent = self.lock();
        while sent.tokens.front().is_some_and(|(number, _)| *number < sent.handed) {
            if let Some((_, tokens)) = sent.tokens.pop_front() {
                sent.taken.add(tokens);
            }
        }
    }
}

/// The steps of a stream, as the connection takes them.
#[derive(Debug)]
pub struct Steps {
    steps: mpsc::Receiver<Step>,
    sent: Shared,
}

impl Stream for Steps {
    type Item = Result<v1::StreamDeliveriesResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let step = std::task::ready!(self.steps.poll_recv(cx));
        let mut sent = self.sent.lock();
        Poll::Ready(match step {
            Some(step) => {
                sent.handed += 1;
                Some(Ok(v1::StreamDeliveriesResponse { step: Some(step) }))
            }
            None => sent.end.take().map(Err),
        })
    }
}

/// Why a stream ended.
enum End {
    /// The caller has disconnected, or reads nothing any more.
    Gone,
    /// The caller takes no more.
    HalfClosed,
    /// The broker ends it, for this reason.
    Refused(Status),
}

impl<T: Into<Status>> From<T> for End {
    fn from(refusal: T) -> Self {
        Self::Refused(refusal.into())
    }
}

/// One stream.
struct Feed {
    rpc: Rpc,
    actor: Actor,
    slots: Slots,
    id: String,
    out: mpsc::Sender<Step>,
    sent: Shared,
    /// When the caller was heard last, or got its first lease.
    heard: Instant,
    /// When it was asked whether it is there.
    asked: Option<Instant>,
}

/// Opens a stream with the first message of the caller.
pub(super) async fn open(rpc: &Rpc, request: Request<Inbound>) -> Result<Response<Steps>, Status> {
    let (actor, slots) = (caller::actor(&request)?, caller::slots(&request)?);
    let mut inbound = request.into_inner();
    permit::release();
    let first = inbound.message().await?.and_then(|first| first.step);
    let Some(Heard::Open(v1::OpenDeliveries { stream_id, window, orphan_grace })) = first else {
        return Err(bad_field("open", "the first message opens the stream"));
    };
    let open = Open {
        id: fields::token(stream_id, "open.stream_id")?,
        window: window_of(window, "open.window")?,
        grace: fields::bounded_span(
            orphan_grace,
            ORPHAN_GRACE_DEFAULT,
            ORPHAN_GRACE_MAX,
            "open.orphan_grace",
        )?,
    };
    let id = open.id.clone();
    let (stream, held) = fair::message(&slots, rpc.engine.open_stream(actor.clone(), open)).await?;
    let (out, steps) = mpsc::channel(STEPS);
    let sent = Shared(Arc::new(Mutex::new(Sent {
        handed: 0,
        produced: 0,
        tokens: VecDeque::new(),
        taken: stream.taken(),
        end: None,
    })));
    let mut response = Response::new(Steps { steps, sent: sent.clone() });
    let taken = sent.clone();
    response.extensions_mut().insert(Taken::new(move || taken.taken()));
    let (rpc, heard) = (rpc.clone(), Instant::now());
    let streams = rpc.streams.clone();
    let feed = Feed { rpc, actor, slots, id, out, sent, heard, asked: None };
    spawn(&streams, feed.run(stream, held, inbound));
    Ok(response)
}

fn window_of(wire: Option<v1::DeliveryWindow>, path: &str) -> Result<Window, Status> {
    let Some(v1::DeliveryWindow { deliveries, bytes }) = wire else {
        return Err(bad_field(path, "it is missing: say how much the stream may hold"));
    };
    Ok(Window::new(deliveries, bytes))
}

impl Feed {
    /// Passes messages on until the stream ends, and settles its end.
    async fn run(mut self, mut stream: DeliveryStream, held: Vec<Leased>, mut inbound: Inbound) {
        let end = match self.pass(&mut stream, held, &mut inbound).await {
            Err(End::HalfClosed) => match self.close(stream).await {
                Ok(()) => None,
                Err(refusal) => Some(refusal.into()),
            },
            Err(End::Refused(status)) => Some(status),
            Err(End::Gone) => None,
            Ok(never) => match never {},
        };
        self.sent.lock().end = end;
    }

    async fn pass(
        &mut self,
        stream: &mut DeliveryStream,
        held: Vec<Leased>,
        inbound: &mut Inbound,
    ) -> Result<std::convert::Infallible, End> {
        let mut parts = parts(held, bytes_of).into_iter().peekable();
        while let Some(part) = parts.next() {
            let complete = parts.peek().is_none();
            let deliveries = part.into_iter().map(leased).collect();
            self.send(Step::Opened(v1::DeliveriesOpened { deliveries, complete })).await?;
        }
        loop {
            let was_idle = stream.held() == 0;
            if stream.needs_step() {
                fair::message(&self.slots, stream.step()).await;
            }
            let is_asked_at = self.asked.map(|asked| asked + STREAM_PONG_MAX);
            let asks_at = (stream.held() > 0).then(|| self.heard + PING_AFTER);
            tokio::select! {
                biased;
                heard = inbound.message() => match heard {
                    Ok(Some(heard)) => self.hear(stream, heard.step).await?,
                    Ok(None) => return Err(End::HalfClosed),
                    Err(_) => return Err(End::Gone),
                },
                leases = stream.next() => {
                    if stream.held() > 0 && was_idle {
                        self.heard = Instant::now();
                    }
                    self.send_leases(leases?).await?;
                }
                () = at(is_asked_at.or(asks_at)) => {
                    // All may have been settled since.
                    if stream.held() == 0 {
                        (self.heard, self.asked) = (Instant::now(), None);
                        continue;
                    }
                    if is_asked_at.is_some() {
                        return Err(self.silent().into());
                    }
                    self.send(Step::Ping(v1::Ping {})).await?;
                    self.asked = Some(Instant::now());
                }
            }
        }
    }

    /// Releases what the caller still holds, each step with a permit.
    async fn close(&self, mut stream: DeliveryStream) -> Result<(), Refusal> {
        while fair::message(&self.slots, stream.release_some()).await? {}
        stream.close().await
    }

    async fn hear(&mut self, stream: &DeliveryStream, heard: Option<Heard>) -> Result<(), End> {
        (self.heard, self.asked) = (Instant::now(), None);
        match heard {
            Some(Heard::Settle(v1::SettleDeliveriesRequest { settlements })) => {
                let entries = settlements::entries(settlements, "settle.settlements")
                    .map_err(Status::from)?;
                let turn = ListTurn::wait(&self.rpc.streams, &self.slots, entries.len()).await;
                let settled = self.rpc.engine.settle(self.actor.clone(), entries);
                let results = fair::message(&self.slots, settled).await?;
                turn.end(&results);
                let results = settlement::results(results);
                self.send(Step::Settled(v1::SettleDeliveriesResponse { results })).await
            }
            Some(Heard::Window(window)) => {
                let window = window_of(Some(window), "window")?;
                fair::message(&self.slots, stream.set_window(window)).await;
                Ok(())
            }
            Some(Heard::Pong(v1::Pong {})) => {
                fair::message(&self.slots, std::future::ready(())).await;
                Ok(())
            }
            Some(Heard::Open(_)) => Err(bad_field("open", "the stream is open already").into()),
            None => Err(bad_field("step", "it is missing").into()),
        }
    }

    /// Sends new leases, in parts that stay under a reply's bytes.
    async fn send_leases(&mut self, leases: Leases) -> Result<(), End> {
        let pending_count = leases.pending;
        for part in parts(leases.deliveries, bytes_of) {
            let deliveries = part.into_iter().map(leased).collect();
            self.send(Step::Leased(v1::LeasedDeliveries { deliveries, pending_count })).await?;
        }
        Ok(())
    }

    /// Sends a step; a caller that does not read for too long counts as silent.
    async fn send(&mut self, step: Step) -> Result<(), End> {
        let deliveries = match &step {
            Step::Opened(opened) => &opened.deliveries[..],
            Step::Leased(leased) => &leased.deliveries,
            Step::Settled(_) | Step::Ping(_) => &[],
        };
        let tokens: Vec<_> = deliveries.iter().map(|one| one.lease_token.clone()).collect();
        {
            let mut sent = self.sent.lock();
            let number = sent.produced;
            sent.produced += 1;
            if !tokens.is_empty() {
                sent.tokens.push_back((number, tokens));
            }
        }
        tokio::select! {
            biased;
            sent = self.out.send(step) => sent.map_err(|_| End::Gone),
            () = self.rpc.engine.draining().cancelled() => Err(Refusal::Draining.into()),
            () = tokio::time::sleep(STREAM_PONG_MAX) => Err(self.silent().into()),
        }
    }

    fn silent(&self) -> Refusal {
        MailError::StreamSilent { stream: self.id.clone() }.into()
    }
}

fn bytes_of(leased: &Leased) -> usize {
    let delivery = &leased.delivery;
    delivery.message.body.len() + delivery.last_error.len() + delivery.output_tail.len()
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
