//! Streams of deliveries: leases that last as long as a connection of a consumer.
//!
//! ```text
//!   open ──► leased, as far as the window has room ──► settled, which makes room
//!     │                                        │
//!     │ a newer stream with the same id        ├── half-closed ──► the rest is requeued
//!     └──► takes all live leases over          └── broken ──► what was not taken is requeued,
//!                                                             the rest has its grace
//! ```
//!
//! The room in the window is counted from the rows, in the command that leases. Invariant: only the
//! newest stream of an agent and an id leases, and only its end starts the grace. What the
//! transport has taken is known by the token, so a lease that was never sent is requeued too.
//!
//! No command leases or requeues many deliveries of one stream, so that streams do not hold up the
//! commands of other agents.

mod end;
mod registry;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::limits::{STREAM_BYTES_MAX, STREAM_DELIVERIES_MAX, STREAMS_OPEN_MAX};
use hive_core::time::BootTime;
use tokio_util::sync::CancellationToken;

use super::receive::{Leased, claim, leased};
use super::serving::{Serving, take};
use crate::engine::actor::{Actor, check_group, check_started};
use crate::engine::error::{AgentError, HarnessError, MailError};
use crate::engine::{Engine, Refusal, token};
use crate::store::agent::AgentRow;
use crate::store::delivery::DeliveryRow;
use crate::store::lease::Lease;
use crate::store::stream;
use crate::store::waiter::{Poll, Progress, Waiter, Wake};
use crate::store::{AgentKey, Tx, delivery, inbox};
pub(crate) use end::requeue_all;
pub(crate) use registry::Streams;
pub use registry::Taken;
use registry::{Key, token_of};

/// Deliveries that one command leases or requeues. Chosen by measurement: with twice as many, a
/// flood of streams more than doubles the p99 of a neighbour.
pub(crate) const STEP: u32 = 16;

/// How much a stream may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// At most this many deliveries.
    pub deliveries: u32,
    /// At most this many bytes of bodies; one delivery always fits.
    pub bytes: u64,
}

impl Window {
    /// Returns a window within the limits; 0 bytes is the limit.
    #[must_use]
    pub fn new(deliveries: u32, bytes: u32) -> Self {
        let bytes = if bytes == 0 { STREAM_BYTES_MAX } else { bytes.min(STREAM_BYTES_MAX) };
        Self { deliveries: deliveries.min(STREAM_DELIVERIES_MAX), bytes: u64::from(bytes) }
    }
}

/// A stream to open.
#[derive(Clone, Debug)]
pub struct Open {
    /// The client's name for it.
    pub id: String,
    /// How much it may hold.
    pub window: Window,
    /// How long its leases live on after a break.
    pub grace: Duration,
}

/// New leases of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leases {
    /// The deliveries, in serving order.
    pub deliveries: Vec<Leased>,
    /// The number of further ready deliveries.
    pub pending: u32,
    /// The number of deliveries that the stream holds now.
    held: u32,
    /// Whether a further step may lease more at once.
    is_step: bool,
    /// When the next delivery in backoff becomes due.
    next_due: Option<BootTime>,
}

/// An open stream of deliveries. If it is dropped, its leases have their grace.
#[derive(Debug)]
#[must_use = "its leases end with it"]
pub struct DeliveryStream {
    streams: Arc<Streams>,
    engine: Arc<Engine>,
    actor: Actor,
    key: Key,
    number: u64,
    grace: Duration,
    replaced: CancellationToken,
    taken: Taken,
    window: Arc<Mutex<Window>>,
    waiter: Option<Waiter<Leases, Refusal>>,
    /// What a step found, if it was awaited by itself.
    found: Option<Progress<Leases, Refusal>>,
    /// Whether the next leases need a step of their own.
    needs_step: bool,
    due: Option<BootTime>,
    held: u32,
    /// Set before its leases end, so that a poll on its way leases no more.
    over: Arc<AtomicBool>,
    is_closed: bool,
}

impl DeliveryStream {
    /// Returns the note of what the transport has taken.
    #[must_use]
    pub fn taken(&self) -> Taken {
        self.taken.clone()
    }

    /// Returns how many deliveries it held when they were counted last.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Changes the window.
    pub async fn set_window(&self, window: Window) {
        *self.window.lock().unwrap_or_else(PoisonError::into_inner) = window;
        if let Some(waiter) = &self.waiter {
            waiter.retry().await;
        }
    }

    /// Returns whether the next leases need a [`step`](Self::step): at its beginning, and while
    /// there is more than one step may lease. Otherwise the commit of the mail leases it, too.
    #[must_use]
    pub fn needs_step(&self) -> bool {
        self.needs_step
    }

    /// Polls once, for which the caller has a permit to work.
    pub async fn step(&mut self) {
        self.ask().await;
        let Some(waiter) = &mut self.waiter else { return };
        let found = waiter.next().await;
        match &found {
            Progress::Waiting { so_far, .. } => self.held = so_far.held,
            Progress::Done(leases) => self.held = leases.as_ref().map_or(0, |leases| leases.held),
        }
        self.found = Some(found);
    }

    /// Requests a poll of its waiter, which it makes if it has none.
    async fn ask(&mut self) {
        match &self.waiter {
            Some(waiter) => waiter.retry().await,
            None => {
                let poll = self.poll();
                self.waiter = Some(self.engine.store.stand_after_checks(self.key.0, poll).await);
            }
        }
        self.needs_step = false;
    }

    /// Waits for new leases. May be dropped at any time: no lease is lost by that.
    pub async fn next(&mut self) -> Result<Leases, Refusal> {
        let engine = Arc::clone(&self.engine);
        loop {
            if self.needs_step {
                self.ask().await;
            }
            let Some(waiter) = &mut self.waiter else { return Err(self.replaced_refusal()) };
            let found = &mut self.found;
            let next = async {
                match found.take() {
                    Some(found) => found,
                    None => waiter.next().await,
                }
            };
            tokio::select! {
                biased;
                () = self.replaced.cancelled() => return Err(self.replaced_refusal()),
                progress = next => match progress {
                    Progress::Done(leases) => {
                        let leases = leases?;
                        (self.held, self.due) = (leases.held, leases.next_due);
                        self.needs_step = leases.is_step;
                        return Ok(leases);
                    }
                    Progress::Waiting { so_far, next_due } => {
                        self.held = so_far.held;
                        self.due = next_due;
                    }
                },
                () = engine.draining.cancelled() => return Err(Refusal::Draining),
                () = engine.until(self.due) => {
                    waiter.retry().await;
                    self.due = None;
                }
            }
        }
    }

    fn replaced_refusal(&self) -> Refusal {
        MailError::StreamReplaced { stream: self.key.1.clone() }.into()
    }

    /// Returns the poll that leases what there is room for. If the batch of the last poll was
    /// aborted, what it leased is on disk or not: these leases come first.
    pub(crate) fn poll(
        &self,
    ) -> impl FnMut(&Tx<'_>, Wake) -> Result<Poll<Leases>, Refusal> + Send + 'static {
        let (streams, actor) = (Arc::clone(&self.streams), self.actor.clone());
        let (key, number, grace) = (self.key.clone(), self.number, self.grace);
        let (window, taken) = (Arc::clone(&self.window), self.taken.clone());
        let over = Arc::clone(&self.over);
        let mut unsure: Vec<String> = Vec::new();
        let mut before = None;
        move |tx, wake| {
            if !wake.is_repeat {
                unsure.clear();
            }
            if over.load(Ordering::SeqCst) || !streams.is_newest(&key, number) {
                return Err(MailError::StreamReplaced { stream: key.1.clone() }.into());
            }
            let me = may_stream(tx, &actor, key.0)?;
            let held = stream::held(tx, me.key, &key.1)?;
            if taken.count() > 2 * STREAM_DELIVERIES_MAX as usize {
                taken.keep(&stream::leased(tx, me.key, Some(&key.1))?);
            }
            let room = if hive_fault::planted!(WindowIgnored) {
                Window::new(STREAM_DELIVERIES_MAX, 0)
            } else {
                *window.lock().unwrap_or_else(PoisonError::into_inner)
            };
            let mut rows = kept(tx, &key, &unsure)?;
            let (mut count, is_kept) = (held.deliveries, !rows.is_empty());
            if rows.is_empty() && check_started(&me).is_ok() {
                let of_stream = |token| Lease::of_stream(token, &key.1, grace);
                rows = lease_due(tx, &me, room, held, of_stream)?;
                count += u32::try_from(rows.len()).unwrap_or(u32::MAX);
            }
            unsure = rows.iter().filter_map(|row| token_of(row)).map(str::to_owned).collect();
            let pending = inbox::get(tx, me.key)?.ready_count;
            let deliveries =
                rows.iter().map(|row| leased(tx, &me, row)).collect::<Result<Vec<_>, _>>()?;
            let has_room = count < room.deliveries && pending > 0;
            let is_step = has_room && (is_kept || deliveries.len() >= STEP as usize);
            let next_due =
                if has_room && !is_step { delivery::next_due(tx, me.key, tx.now)? } else { None };
            let leases = Leases { deliveries, pending, held: count, is_step, next_due };
            let after = Some((count, next_due));
            let is_unchanged = std::mem::replace(&mut before, after) == after;
            Ok(match leases.deliveries.is_empty() {
                false => Poll::Ready(leases),
                true if is_unchanged && !wake.is_asked => Poll::Unchanged,
                true => Poll::Pending { so_far: leases, next_due },
            })
        }
    }
}

impl Engine {
    /// Opens a stream; returns it with the live leases that a stream of this id held before, in
    /// order.
    pub async fn open_stream(
        self: &Arc<Self>,
        actor: Actor,
        open: Open,
    ) -> Result<(DeliveryStream, Vec<Leased>), Refusal> {
        actor.check_agent()?;
        self.check_open()?;
        let agent = self.key_of(&actor.caller).await?;
        let Open { id, window, grace } = open;
        let key = (agent, id);
        let (number, replaced, taken) = self
            .delivery_streams
            .begin(&key)
            .ok_or(Refusal::CallLimit { max: STREAMS_OPEN_MAX })?;
        let stream = DeliveryStream {
            streams: Arc::clone(&self.delivery_streams),
            engine: Arc::clone(self),
            actor: actor.clone(),
            key: key.clone(),
            number,
            grace,
            replaced,
            taken,
            window: Arc::new(Mutex::new(window)),
            waiter: None,
            found: None,
            needs_step: true,
            due: None,
            held: 0,
            over: Arc::default(),
            is_closed: false,
        };
        let (caller, streams) = (actor.caller.clone(), Arc::clone(&self.delivery_streams));
        let opened = self.store.write(move |tx| {
            let me = may_stream(tx, &actor, key.0)?;
            // Its leases would last longer than any stream.
            if !streams.is_newest(&key, number) {
                return Err(MailError::StreamReplaced { stream: key.1 }.into());
            }
            stream::renew(tx, me.key, &key.1, millis(grace))?;
            let rows = stream::leased(tx, me.key, Some(&key.1))?;
            rows.iter().map(|row| leased(tx, &me, row)).collect::<Result<Vec<_>, Refusal>>()
        });
        let held = self.noting(&caller, "stream", opened.await).await?;
        stream.taken.listed(held.iter().filter_map(|leased| leased.token.clone()));
        Ok((stream, held))
    }
}

/// Returns the row of an agent that may take mail without a harness; no later one of its name.
fn may_stream(tx: &Tx<'_>, actor: &Actor, key: AgentKey) -> Result<Arc<AgentRow>, Refusal> {
    let me = actor.row(tx)?;
    if me.key != key {
        return Err(AgentError::Retired { name: me.name.clone() }.into());
    }
    check_group(&actor.caller, &me, "messaging")?;
    if me.session_token.is_some() {
        return Err(HarnessError::Serving { agent: me.name.clone() }.into());
    }
    Ok(me)
}

/// Returns those of a stream's leases that have one of these tokens.
fn kept(tx: &Tx<'_>, key: &Key, tokens: &[String]) -> Result<Vec<Arc<DeliveryRow>>, Refusal> {
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = stream::leased(tx, key.0, Some(&key.1))?;
    rows.retain(|row| token_of(row).is_some_and(|known| tokens.iter().any(|one| one == known)));
    Ok(rows.into_iter().map(Arc::new).collect())
}

/// Leases what there is room for. A delivery that is served alone waits until the stream holds
/// nothing, and none behind it is taken before.
fn lease_due(
    tx: &Tx<'_>,
    me: &AgentRow,
    room: Window,
    held: stream::Held,
    lease: impl Fn(String) -> Lease,
) -> Result<Vec<Arc<DeliveryRow>>, Refusal> {
    let mut rows: Vec<Arc<DeliveryRow>> = Vec::new();
    let (mut count, mut bytes) = (held.deliveries, held.bytes);
    let mut is_alone = held.is_alone();
    let mut serving =
        Serving::new(tx, me.key, u32::MAX, room.deliveries.saturating_sub(count).min(STEP));
    while count < room.deliveries && rows.len() < STEP as usize && !is_alone {
        let Some(mut row) = serving.next()? else { break };
        let is_full = row.progress.is_alone() || bytes + row.body_bytes > room.bytes;
        if count > 0 && is_full {
            break;
        }
        take(tx, &mut row)?;
        let token = delivery::lease_token(me.key, row.message, &token::of_lease());
        let row = claim(tx, me, row, lease(token))?;
        count += 1;
        bytes += row.body_bytes;
        is_alone = row.progress.is_alone();
        rows.push(row);
    }
    Ok(rows)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
