//! Consumers on streams: programs that take mail on a stream of their own, and come back after a
//! break, in time or too late or never.
//!
//! Each lease is recorded as the answer to a receive for one delivery, which is recorded before the
//! window has room for it. So the window never has room for two that the tape does not know.

use std::time::Duration;

use hive_core::limits::ALONE_FROM_ATTEMPT;
use hive_history::{Answer, Handed, LASTING_MS, Op, Reply};
use hive_proto::v1;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::settlement::Target;
use hive_proto::v1::stream_deliveries_request::Step as Say;
use hive_proto::v1::stream_deliveries_response::Step as Heard;
use hive_tests::rig::Line;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

use super::dice::Dice;
use super::perform::span;
use super::players::{Table, settlement};
use super::voice::Voice;
use super::{seen, settle};

/// Maximum wait for a step that must come.
const STEP_WAIT: Duration = Duration::from_secs(20);

/// An open stream.
struct Open {
    line: Line,
    say: mpsc::UnboundedSender<v1::StreamDeliveriesRequest>,
    hear: Streaming<v1::StreamDeliveriesResponse>,
}

/// The end of a stream; it may be opened again.
struct Broken;

impl Open {
    fn say(&self, step: Say) {
        // If the stream is over, the next step shows it.
        drop(self.say.send(v1::StreamDeliveriesRequest { step: Some(step) }));
    }

    fn window(&self, deliveries: usize) {
        let deliveries = u32::try_from(deliveries).unwrap_or(u32::MAX);
        self.say(Say::Window(v1::DeliveryWindow { deliveries, bytes: 0 }));
    }

    /// Waits for the next step; answers pings.
    async fn hear(&mut self) -> Result<Heard, Broken> {
        loop {
            let step = match self.hear.message().await {
                Ok(Some(response)) => response.step.ok_or(Broken)?,
                Ok(None) | Err(_) => return Err(Broken),
            };
            match step {
                Heard::Ping(v1::Ping {}) => self.say(Say::Pong(v1::Pong {})),
                step @ (Heard::Opened(_) | Heard::Leased(_) | Heard::Settled(_)) => {
                    return Ok(step);
                }
            }
        }
    }

    async fn hear_soon(&mut self) -> Result<Heard, Broken> {
        tokio::time::timeout(STEP_WAIT, self.hear()).await.unwrap_or(Err(Broken))
    }
}

/// A program, and what it knows across its streams.
struct Program<'a> {
    voice: &'a Voice,
    table: &'a Table,
    id: String,
    grace_ms: u64,
    held: Vec<Handed>,
    /// The receive without an answer.
    awaited: Option<u64>,
    /// Settlements without results, to be repeated.
    unsure: Vec<Op>,
}

/// Runs a program that takes mail on streams of one id, until it ends.
pub(super) async fn consume(voice: &Voice, table: &Table, dice: &mut Dice) {
    let grace_ms = *dice.pick(&[100, 1_500, 10_000]);
    let (held, unsure, id) = (Vec::new(), Vec::new(), voice.request_id());
    let mut program = Program { voice, table, id, grace_ms, held, awaited: None, unsure };
    loop {
        let seen = voice.seen();
        let ended = program.once(dice).await;
        if ended.is_ok() {
            break;
        }
        // A broker that goes down begins the grace when it is ready again; else it begins now.
        program.note_all(program.grace_ms);
        if !table.is_closing() && dice.chance(15) {
            // Without another stream its leases end with their grace.
            break;
        }
        voice.another_broker(seen).await;
    }
    if let Some(awaited) = program.awaited {
        voice.answered(awaited, unknown());
    }
}

fn unknown() -> Answer {
    Answer::Unknown(String::new())
}

impl Program<'_> {
    /// Opens a stream, and takes mail on it until it ends; fails if it broke.
    async fn once(&mut self, dice: &mut Dice) -> Result<(), Broken> {
        let mut line = self.open().await?;
        self.table.facts.answered("StreamDeliveries");
        let again = std::mem::take(&mut self.unsure);
        self.settle_on(&mut line, again).await?;
        let most = 1 + usize::try_from(dice.below(4)).unwrap_or(0);
        let mut window = 0;
        loop {
            if self.table.is_closing() || dice.chance(4) {
                return self.close(line).await;
            }
            if dice.chance(4) {
                // The note of the grace must come first.
                self.note_all(self.grace_ms);
                line.line.cut();
                return Err(Broken);
            }
            let room = self.held.len() + 1;
            if self.held.len() < most && window != room {
                self.awaited = Some(self.awaited.unwrap_or_else(|| self.await_one()));
                line.window(room);
                window = room;
            }
            let patience = Duration::from_millis(dice.below(60));
            if let Ok(step) = tokio::time::timeout(patience, line.hear()).await {
                self.leased(step?);
                continue;
            }
            if self.held.is_empty() {
                continue;
            }
            let count = 1 + usize::try_from(dice.below(self.held.len() as u64)).unwrap_or(0);
            // Less room first, so that a settlement makes none.
            window = self.held.len() - count;
            line.window(window);
            let ops: Vec<Op> =
                self.held[..count].iter().map(|handed| settlement(handed, dice)).collect();
            if dice.chance(20) {
                // The call could overtake the window. Once this has its result, the window is in
                // place.
                self.settle_on(&mut line, Vec::new()).await?;
                settle::all(self.voice, &ops).await;
                self.forget(&ops);
            } else {
                self.settle_on(&mut line, ops).await?;
            }
        }
    }

    /// Records that all held leases get this time, whether they still live or not.
    fn note_all(&self, lease_ms: u64) {
        for handed in &self.held {
            let call = self.voice.note("", &Op::Extend { token: handed.token.clone(), lease_ms });
            self.voice.answered(call, unknown());
        }
    }

    /// Records a receive for one delivery.
    fn await_one(&self) -> u64 {
        let op = Op::Receive { max: 1, lease_ms: LASTING_MS, turn: 0, tool_use: String::new() };
        self.voice.note("", &op)
    }

    /// Opens a stream. It lists the leases that live; the others are lost.
    async fn open(&mut self) -> Result<Open, Broken> {
        let lasting = |handed: &Handed| {
            let op = Op::Extend { token: handed.token.clone(), lease_ms: LASTING_MS };
            (handed.token.clone(), self.voice.note("", &op))
        };
        let renewed: Vec<(String, u64)> = self.held.iter().map(lasting).collect();
        let Ok((line, all)) = self.connect().await else {
            renewed.into_iter().for_each(|(_, call)| self.voice.answered(call, unknown()));
            return Err(Broken);
        };
        let lives = |token: &str| all.iter().any(|handed| handed.token == token);
        for (token, call) in renewed {
            let answer = if lives(&token) {
                Answer::Ok(Reply::Extended)
            } else {
                Answer::Refused("LEASE_LOST".to_owned())
            };
            self.voice.answered(call, answer);
        }
        self.held.retain(|handed| lives(&handed.token));
        let is_new = |handed: &&Handed| !self.held.iter().any(|known| known.token == handed.token);
        let new: Vec<Handed> = all.iter().filter(is_new).cloned().collect();
        match self.awaited.take() {
            Some(awaited) if new.is_empty() => self.voice.answered(awaited, unknown()),
            Some(awaited) => self.got(awaited, new),
            None => self.table.facts.hold(new.is_empty(), || {
                format!("a stream lists leases that it never had: {new:?}")
            }),
        }
        Ok(line)
    }

    /// Opens a stream without room; returns it with the leases that live.
    async fn connect(&self) -> Result<(Open, Vec<Handed>), Broken> {
        let (say, requests) = mpsc::unbounded_channel();
        let open = v1::OpenDeliveries {
            stream_id: self.id.clone(),
            window: Some(v1::DeliveryWindow::default()),
            orphan_grace: Some(span(self.grace_ms)),
        };
        drop(say.send(v1::StreamDeliveriesRequest { step: Some(Say::Open(open)) }));
        let requests = UnboundedReceiverStream::new(requests);
        let line = self.voice.connect().await.map_err(|_| Broken)?;
        let mut client = InboxServiceClient::new(line.channel());
        let opened = tokio::time::timeout(STEP_WAIT, client.stream_deliveries(requests)).await;
        let hear = opened.map_err(|_| Broken)?.map_err(|_| Broken)?.into_inner();
        let (mut line, mut all) = (Open { line, say, hear }, Vec::new());
        loop {
            let Heard::Opened(part) = line.hear_soon().await? else { return Err(Broken) };
            all.extend(part.deliveries.iter().map(seen::leased));
            if part.complete {
                return Ok((line, all));
            }
        }
    }

    /// Records what a receive of the stream got.
    fn got(&mut self, awaited: u64, new: Vec<Handed>) {
        let is_alone = |handed: &Handed| handed.attempt >= ALONE_FROM_ATTEMPT;
        let beside =
            !self.held.is_empty() && (new.iter().any(is_alone) || self.held.iter().any(is_alone));
        self.table
            .facts
            .hold(!beside, || format!("{new:?} came on a stream beside {:?}", self.held));
        self.voice.answered(awaited, Answer::Ok(Reply::Leased(new.clone())));
        self.held.extend(new);
    }

    /// Takes in new leases.
    fn leased(&mut self, step: Heard) {
        match step {
            Heard::Leased(leased) => {
                let new: Vec<Handed> = leased.deliveries.iter().map(seen::leased).collect();
                match self.awaited.take() {
                    Some(awaited) if new.len() == 1 => self.got(awaited, new),
                    _ => self.table.facts.wrong(format!("a stream has no room for {new:?}")),
                }
            }
            other @ (Heard::Opened(_) | Heard::Settled(_) | Heard::Ping(_)) => {
                self.table.facts.wrong(format!("a stream said {other:?}"));
            }
        }
    }

    /// Settles on the stream, and waits for the results. Without them it is repeated on the next
    /// stream.
    async fn settle_on(&mut self, line: &mut Open, ops: Vec<Op>) -> Result<(), Broken> {
        let noted: Vec<u64> = ops.iter().map(|op| self.voice.note("", op)).collect();
        let settlements = ops.iter().filter_map(settle::entry).collect();
        line.say(Say::Settle(v1::SettleDeliveriesRequest { settlements }));
        loop {
            match line.hear_soon().await {
                Ok(Heard::Settled(settled)) => {
                    let answers = settle::answers(&ops, settled.results);
                    for (call, answer) in noted.into_iter().zip(answers) {
                        self.voice.answered(call, answer);
                    }
                    self.forget(&ops);
                    return Ok(());
                }
                Ok(step) => self.leased(step),
                Err(Broken) => {
                    noted.into_iter().for_each(|call| self.voice.answered(call, unknown()));
                    self.unsure = ops;
                    return Err(Broken);
                }
            }
        }
    }

    /// Closes its side, which releases the rest.
    async fn close(&mut self, line: Open) -> Result<(), Broken> {
        let release =
            |handed: &Handed| self.voice.note("", &Op::Release { token: handed.token.clone() });
        let noted: Vec<u64> = self.held.iter().map(release).collect();
        let Open { line: _line, say, mut hear } = line;
        drop(say);
        let end = loop {
            match tokio::time::timeout(STEP_WAIT, hear.message()).await {
                // What comes now came too late to be taken, and may be released already.
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) => break Ok(()),
                Ok(Err(_)) | Err(_) => break Err(Broken),
            }
        };
        // What each release did is not known: the lease may have ended before.
        noted.into_iter().for_each(|call| self.voice.answered(call, unknown()));
        if end.is_ok() {
            self.held.clear();
        }
        end
    }

    /// Forgets what was settled.
    fn forget(&mut self, ops: &[Op]) {
        let settled: Vec<_> =
            ops.iter().filter_map(settle::entry).map(|entry| entry.target).collect();
        self.held
            .retain(|handed| !settled.contains(&Some(Target::LeaseToken(handed.token.clone()))));
    }
}
