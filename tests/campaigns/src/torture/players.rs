//! The players: agents without a harness that send, wake, ask, remind, receive and settle, and the
//! operator.
//!
//! Invariant: every text is sent once in a round, so that a text identifies its origin.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_history::{Answer, Decision, Due, Handed, Kind, Op, Origin, Reply, State};

use super::cast::{CALLED, GUEST, HARNESSED};
use super::dice::Dice;
use super::facts::Facts;
use super::perform::Carried;
use super::voice::Voice;
use super::{commands, last, reads, sender, settle, stream};

/// The state shared by the players of a round.
#[derive(Debug)]
pub(crate) struct Table {
    /// All agents with an inbox that takes mail.
    pub(crate) agents: Vec<String>,
    /// The permanent facts of the round.
    pub(crate) facts: Facts,
    closing: AtomicBool,
    /// Held while the guest is not there or is stopped.
    pub(crate) without_guest: tokio::sync::Mutex<()>,
    reads: AtomicU64,
    operator_reads: AtomicU64,
    texts: AtomicU64,
    /// Questions that were seen.
    questions: Mutex<Vec<u64>>,
    /// Reminders, each with its agent.
    reminders: Mutex<Vec<(String, u64)>>,
}

impl Table {
    pub(crate) fn new(agents: &[&str], seed: u64) -> Arc<Self> {
        Arc::new(Self {
            agents: agents.iter().map(|name| (*name).to_owned()).collect(),
            facts: Facts::new(),
            closing: AtomicBool::new(false),
            without_guest: tokio::sync::Mutex::default(),
            // Rounds are short: each continues where the one before may have ended.
            reads: AtomicU64::new(seed.wrapping_mul(7)),
            operator_reads: AtomicU64::new(seed.wrapping_mul(7)),
            texts: AtomicU64::new(0),
            questions: Mutex::default(),
            reminders: Mutex::default(),
        })
    }

    /// Stops all new work.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Begins new work again.
    pub(crate) fn open(&self) {
        self.closing.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub(crate) fn text(&self, who: &str, what: &str) -> String {
        format!("{what} {} of {who}", self.texts.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns another recipient. Agents whose turns cost real programs are chosen more rarely.
    pub(crate) fn other(&self, name: &str, dice: &mut Dice) -> String {
        // This agent may be missing just then.
        if dice.chance(4) {
            return GUEST.to_owned();
        }
        let cheap = dice.chance(90);
        let fits =
            |other: &&String| *other != name && !(cheap && HARNESSED.contains(&other.as_str()));
        let others: Vec<&String> = self.agents.iter().filter(fits).collect();
        (*dice.pick(&others)).clone()
    }

    /// Makes the next read. The operator's reads have a counter of their own, so that each read is
    /// reached.
    async fn read(&self, voice: &Voice) {
        let numbers = if voice.name == "operator" { &self.operator_reads } else { &self.reads };
        reads::next(voice, self, numbers.fetch_add(1, Ordering::Relaxed)).await;
    }

    fn note_question(&self, id: u64) {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    fn a_question(&self, dice: &mut Dice) -> Option<u64> {
        let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        // A recent question, which may still be open.
        let recent = &questions[questions.len().saturating_sub(8)..];
        (!recent.is_empty()).then(|| *dice.pick(recent))
    }

    fn note_reminder(&self, agent: &str, id: u64) {
        self.reminders.lock().unwrap_or_else(PoisonError::into_inner).push((agent.to_owned(), id));
    }

    fn a_reminder(&self, dice: &mut Dice) -> Option<(String, u64)> {
        let reminders = self.reminders.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = &reminders[reminders.len().saturating_sub(8)..];
        (!recent.is_empty()).then(|| dice.pick(recent).clone())
    }
}

/// Makes calls until the table closes.
pub(crate) async fn talk(voice: Voice, table: Arc<Table>, mut dice: Dice) {
    while !table.is_closing() {
        say(&voice, &table, &mut dice, 0, &Carried::default()).await;
    }
}

/// Makes one call; in a turn with its process token.
pub(crate) async fn say(
    voice: &Voice,
    table: &Table,
    dice: &mut Dice,
    turn: u64,
    carried: &Carried,
) {
    let name = voice.name.as_str();
    let (throw, request) = (dice.below(100), voice.request_id());
    let other = |rpc: &str, content: String| Op::Other { rpc: rpc.to_owned(), content };
    let op = match throw {
        0..7 => return table.read(voice).await,
        7..50 => {
            let to = if dice.chance(8) { "operator".to_owned() } else { table.other(name, dice) };
            Op::Send {
                to: vec![to],
                everyone: false,
                body: table.text(name, "mail"),
                reply_to: 0,
                turn,
            }
        }
        50..52 => Op::Send {
            to: Vec::new(),
            everyone: true,
            body: table.text(name, "news"),
            reply_to: 0,
            turn,
        },
        52..72 => {
            let key = if dice.chance(60) { format!("key{}", dice.below(3)) } else { String::new() };
            Op::Wake { label: "matrix".to_owned(), body: table.text(name, "wake"), key }
        }
        72..84 => {
            let target =
                if dice.chance(40) { "operator".to_owned() } else { table.other(name, dice) };
            let ttl_ms = if dice.chance(60) { 1_000 + dice.below(1_500) } else { 0 };
            let text = table.text(name, "question");
            Op::Ask { target, text, effect: String::new(), ttl_ms, turn }
        }
        84..92 => {
            let body = table.text(name, "reminder");
            let body = if dice.chance(10) {
                format!("{body}{}", " and much more".repeat(400))
            } else {
                body
            };
            Op::Remind { body, due: Due::After(1_000 + dice.below(1_000)), turn }
        }
        92..95 => match table.a_question(dice) {
            Some(question) if dice.chance(50) => Op::CancelQuestion { question },
            Some(question) => {
                let text = table.text(name, "answer");
                Op::Answer { question, choices: Vec::new(), text, digest: String::new() }
            }
            None => return,
        },
        95..98 => match table.a_reminder(dice) {
            Some((agent, reminder)) if agent == name && dice.chance(50) => {
                Op::CancelReminder { reminder }
            }
            Some((agent, reminder)) if agent == name => {
                other("CancelLooseEnd", reminder.to_string())
            }
            Some(_) | None => return,
        },
        98 => other("ReplaceLooseEnds", table.text(name, "end")),
        _ => other("SetStatusText", table.text(name, "status")),
    };
    let answer = voice.insist_as(&request, &op, carried).await;
    match &answer {
        Answer::Ok(Reply::Asked { question, .. }) => table.note_question(*question),
        Answer::Ok(Reply::Reminded { reminder, .. }) => table.note_reminder(name, *reminder),
        Answer::Ok(Reply::Sent { message, .. } | Reply::Woken { message, .. }) => {
            if let Op::Send { body, .. } | Op::Wake { body, .. } = &op {
                table.facts.receipt(*message, body);
            }
        }
        Answer::Ok(Reply::Done(_)) => said(voice, table, &op, turn).await,
        Answer::Ok(_) | Answer::Refused(_) | Answer::Unknown(_) => {}
    }
    // A completed request gets the same answer from any broker.
    if dice.chance(10) && matches!(answer, Answer::Ok(_)) {
        voice.once(&request, &op, carried).await;
    }
}

/// Checks the effects of a call that is neither mail nor a question.
async fn said(voice: &Voice, table: &Table, op: &Op, turn: u64) {
    let Op::Other { rpc, content } = op else { return };
    match rpc.as_str() {
        "CancelLooseEnd" => {
            table.facts.withdrawn(content.parse().expect("a reminder's id is a number"));
        }
        // In a turn, a second call of the same agent may be under way.
        "SetStatusText" if turn == 0 => {
            if let Ok(read) = reads::agent(voice, &voice.name).await {
                let text = read.status_text;
                table.facts.hold(text == *content, || {
                    format!("{} said {content:?}, and is read to say {text:?}", voice.name)
                });
            }
        }
        _ => {}
    }
}

/// Receives and settles until the table closes, and then until nothing is left.
pub(crate) async fn consume(voice: Voice, table: Arc<Table>, mut dice: Dice) {
    // Settlements that ride on the next receive.
    let mut settlements = Vec::new();
    while !table.is_closing() {
        if settlements.is_empty() && dice.chance(15) {
            stream::consume(&voice, &table, &mut dice).await;
        }
        if dice.chance(10) {
            sender::send(&voice, &table, &mut dice).await;
        }
        let lease_ms = if dice.chance(15) { 200 + dice.below(300) } else { 20_000 };
        let op = Op::Receive {
            max: 1 + u32::try_from(dice.below(4)).unwrap_or(0),
            lease_ms,
            turn: 0,
            tool_use: String::new(),
        };
        let wait = Duration::from_millis(50 + dice.below(150));
        let settled = std::mem::take(&mut settlements);
        let carried = Carried { settlements: settled, ..Carried::waiting(wait) };
        let Answer::Ok(Reply::Leased(all)) = voice.insist(&op, &carried).await else { continue };
        if dice.chance(25) {
            settlements = all.iter().map(|handed| settlement(handed, &mut dice)).collect();
            if dice.chance(30) && !settlements.is_empty() {
                settle::all(&voice, &std::mem::take(&mut settlements)).await;
            }
            continue;
        }
        for handed in &all {
            finish(&voice, &table, &mut dice, handed, lease_ms).await;
        }
    }
    if !settlements.is_empty() {
        settle::all(&voice, &settlements).await;
    }
}

/// Chooses what becomes of a delivery in a list.
pub(super) fn settlement(handed: &Handed, dice: &mut Dice) -> Op {
    let token = handed.token.clone();
    match dice.below(100) {
        0..15 => Op::Nack { token, permanent: false },
        15..17 => Op::Nack { token, permanent: true },
        17..32 => Op::Release { token },
        _ => Op::Ack { token },
    }
}

async fn finish(voice: &Voice, table: &Table, dice: &mut Dice, handed: &Handed, lease_ms: u64) {
    let token = handed.token.clone();
    if handed.origin == Origin::System(Kind::QuestionAsked) {
        table.note_question(handed.question);
        if dice.chance(60) {
            let choices = if dice.chance(50) { vec!["tea".to_owned()] } else { Vec::new() };
            let op = Op::Answer {
                question: handed.question,
                choices,
                text: table.text(&voice.name, "answer"),
                digest: String::new(),
            };
            voice.insist(&op, &Carried::default()).await;
        }
    }
    let short = lease_ms < 20_000;
    match dice.below(100) {
        0..12 => {
            drop(voice.insist(&Op::Nack { token, permanent: false }, &Carried::default()).await);
        }
        12..14 => {
            drop(voice.insist(&Op::Nack { token, permanent: true }, &Carried::default()).await);
        }
        14..24 => {
            voice
                .insist(&Op::Extend { token: token.clone(), lease_ms: 10_000 }, &Carried::default())
                .await;
            voice.insist(&Op::Ack { token }, &Carried::default()).await;
        }
        // The lease expires.
        24..50 if short => {}
        50..56 => {
            // Two concurrent acks under two request ids.
            let (op, carried) = (Op::Ack { token }, Carried::default());
            tokio::join!(voice.insist(&op, &carried), voice.insist(&op, &carried));
        }
        56..70 if matches!(handed.origin, Origin::Agent(_)) => {
            if let Origin::Agent(sender) = &handed.origin {
                let body = table.text(&voice.name, "reply");
                let op = Op::Send {
                    to: vec![sender.clone()],
                    everyone: false,
                    body,
                    reply_to: handed.message,
                    turn: 0,
                };
                voice.insist(&op, &Carried::default()).await;
            }
            voice.insist(&Op::Ack { token }, &Carried::default()).await;
        }
        _ => drop(voice.insist(&Op::Ack { token }, &Carried::default()).await),
    }
}

/// Leases and acks until a receive finds nothing.
pub(crate) async fn drain(voice: &Voice) {
    let op = Op::Receive { max: 32, lease_ms: 60_000, turn: 0, tool_use: String::new() };
    loop {
        let Answer::Ok(Reply::Leased(all)) = voice.insist(&op, &Carried::default()).await else {
            return;
        };
        if all.is_empty() {
            return;
        }
        for handed in all {
            voice.insist(&Op::Ack { token: handed.token }, &Carried::default()).await;
        }
    }
}

/// Answers, decides, and writes, until the table closes.
pub(crate) async fn operate(
    voice: Voice,
    table: Arc<Table>,
    harnessed: Vec<String>,
    mut dice: Dice,
) {
    while !table.is_closing() {
        let op = match dice.below(100) {
            0..24 => {
                let to = table.other("operator", &mut dice);
                Some(Op::Send {
                    to: vec![to],
                    everyone: false,
                    body: table.text("operator", "order"),
                    reply_to: 0,
                    turn: 0,
                })
            }
            24..48 => table.a_question(&mut dice).map(|question| {
                let text = table.text("operator", "answer");
                if dice.chance(75) {
                    Op::Answer { question, choices: Vec::new(), text, digest: String::new() }
                } else {
                    Op::CancelQuestion { question }
                }
            }),
            48..54 => table.a_question(&mut dice).map(|question| Op::ReadQuestion { question }),
            54..59 => {
                table.a_reminder(&mut dice).map(|(_, reminder)| Op::CancelReminder { reminder })
            }
            59..63 => {
                let (target, text) =
                    (dice.pick(&table.agents).clone(), table.text("operator", "question"));
                Some(Op::Ask { target, text, effect: String::new(), ttl_ms: 0, turn: 0 })
            }
            63..69 => {
                let to =
                    if dice.chance(50) { CALLED.to_owned() } else { dice.pick(&harnessed).clone() };
                commands::give(&voice, &table, &mut dice, &to).await;
                None
            }
            69..71 => {
                commands::login(&voice, &table, &mut dice).await;
                None
            }
            71..84 => {
                table.read(&voice).await;
                None
            }
            84..86 => Some(Op::CancelTurn { agent: dice.pick(&harnessed).clone(), turn: 0 }),
            _ => {
                decide(&voice, &mut dice).await;
                None
            }
        };
        let Some(op) = op else { continue };
        if let Answer::Ok(Reply::Asked { question, .. }) =
            voice.insist(&op, &Carried::default()).await
        {
            table.note_question(question);
        }
    }
}

/// Lists the deliveries that wait for a decision, and decides.
async fn decide(voice: &Voice, dice: &mut Dice) {
    let waiting = last::undecided(voice).await;
    for (agent, message, state) in waiting.into_iter().take(4) {
        let decision = if state == State::Held && dice.chance(70) {
            Decision::Release
        } else if state == State::Dead && dice.chance(70) {
            Decision::Redrive
        } else if agent == "operator" || dice.chance(50) {
            Decision::Ack
        } else {
            Decision::Drop
        };
        voice.insist(&Op::Decide { agent, message, decision }, &Carried::default()).await;
    }
}
