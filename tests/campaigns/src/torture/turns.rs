//! A harness made of nothing but calls: it attaches, runs turns, reconnects after every broker, and
//! now and then starts again or stays away.
//!
//! Every call of it is on the tape, so the rules know its turns, which they cannot with the real
//! harness.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hive_history::{Answer, Op, Outcome, Reply};

use super::commands::{self, Listening};
use super::dice::Dice;
use super::other::parts;
use super::perform::Carried;
use super::players::{self, Table};
use super::voice::Voice;

/// Wait for a turn before the request is repeated.
const BEGIN_WAIT: Duration = Duration::from_millis(400);

pub(crate) struct Harness {
    voice: Voice,
    session: String,
    table: Arc<Table>,
    /// Keeps it attached.
    attachment: Option<Listening>,
    dice: Dice,
    /// Decides when it asks to leave.
    leaves: Dice,
    turns: u64,
}

impl Harness {
    pub(crate) fn new(voice: Voice, table: &Arc<Table>, dice: Dice) -> Self {
        let leaves = Dice::new(dice.clone().below(u64::MAX), "leaves");
        Self {
            voice,
            session: String::new(),
            table: Arc::clone(table),
            attachment: None,
            dice,
            leaves,
            turns: 0,
        }
    }

    /// Attaches or resumes; returns the open turn.
    pub(crate) async fn attach(&mut self, anew: bool) -> u64 {
        loop {
            let op = Op::Attach {
                session: if anew { String::new() } else { self.session.clone() },
                take_over: true,
            };
            let (carried, closed) = (Carried::default(), self.table.facts.closed());
            let answer = self.voice.insist_as("", &op, &carried).await;
            if let Answer::Ok(Reply::Attached { session, open_turn, .. }) = answer {
                self.session = session;
                let stream = carried.stream.lock().expect("nobody panics with it").take();
                let dice = Dice::new(self.dice.below(u64::MAX), "listens");
                let listen = |stream| {
                    commands::listen(stream, &self.voice, &self.session, &self.table, closed, dice)
                };
                self.attachment = stream.map(listen);
                return open_turn;
            }
        }
    }

    fn op_begin(&self, mail: bool) -> Op {
        Op::BeginTurn { session: self.session.clone(), mail }
    }

    /// Ends a turn; returns whether the session is still valid.
    pub(crate) async fn end(&self, turn: u64, outcome: Outcome, returned: Vec<String>) -> bool {
        let op = Op::EndTurn { session: self.session.clone(), turn, outcome, returned };
        matches!(self.voice.insist(&op, &Carried::default()).await, Answer::Ok(_))
    }

    /// Runs turns until the table closes.
    pub(crate) async fn run(&mut self, table: Arc<Table>, mut dice: Dice) {
        let mut open = self.attach(true).await;
        while !table.is_closing() {
            if open != 0 {
                // The harness was attached to a turn that it no longer knows.
                self.end(open, Outcome::Drained, Vec::new()).await;
            }
            open = self.turn(&table, &mut dice).await;
        }
    }

    /// Runs one turn; returns the open turn if it had to attach again.
    async fn turn(&mut self, table: &Table, dice: &mut Dice) -> u64 {
        self.turns += 1;
        let process =
            format!("process-token-{}-{}-{}", self.voice.name, self.turns, dice.below(u64::MAX));
        let (request, carried) = (self.voice.request_id(), Carried::process(&process));
        if dice.chance(12) {
            self.beside(table, dice).await;
        }
        if self.leaves.chance(10) {
            self.leave(table).await;
        }
        let op = self.op_begin(!dice.chance(10));
        let begun =
            tokio::time::timeout(BEGIN_WAIT, self.voice.once(&request, &op, &carried)).await;
        let turn = match begun {
            Ok(Answer::Ok(Reply::Turn { turn, .. })) => turn,
            Ok(Answer::Refused(reason)) if reason == "TURN_OPEN" => {
                return self.attach(false).await;
            }
            Ok(Answer::Refused(reason)) if reason == "AGENT_PARKED" => return 0,
            Ok(Answer::Refused(_)) => return self.attach(dice.chance(50)).await,
            Ok(Answer::Unknown(_)) => {
                self.attach(false).await;
                // Repeats the request, because the turn may have begun in the meantime.
                match tokio::time::timeout(BEGIN_WAIT, self.voice.once(&request, &op, &carried))
                    .await
                {
                    Ok(Answer::Ok(Reply::Turn { turn, .. })) => turn,
                    _ => return self.attach(false).await,
                }
            }
            Ok(Answer::Ok(_)) | Err(_) => return 0,
        };
        let found = std::mem::take(&mut *carried.commands.lock().expect("nobody panics with it"));
        // The stream may also report these commands, or they may have been closed since.
        found.iter().for_each(|command| table.facts.heard(*command, &BTreeSet::new()));
        let mut returned = Vec::new();
        for step in 0..dice.below(4) {
            if dice.chance(15) {
                let line = table.text(&self.voice.name, "line");
                let (rpc, content) = if dice.chance(50) {
                    (
                        "ReportTurnEvents",
                        parts(&[&self.session, &turn.to_string(), &(step + 1).to_string(), &line]),
                    )
                } else {
                    ("RequestNextTurn", String::new())
                };
                self.voice.once("", &Op::Other { rpc: rpc.to_owned(), content }, &carried).await;
            } else if dice.chance(40) {
                let tool_use = format!("toolu_{step}");
                let op = Op::Receive { max: 2, lease_ms: 0, turn, tool_use: tool_use.clone() };
                if matches!(self.voice.insist(&op, &carried).await, Answer::Ok(_))
                    && dice.chance(70)
                {
                    returned.push(tool_use);
                }
            } else {
                players::say(&self.voice, table, dice, turn, &carried).await;
            }
        }
        if dice.chance(6) {
            // The harness starts again in mid-turn.
            return self.attach(true).await;
        }
        let outcome = match dice.below(100) {
            0..62 => Outcome::Ok,
            62..78 => Outcome::Failed,
            78..83 => Outcome::Drained,
            83..88 => Outcome::Cancelled,
            88..94 => Outcome::Unavailable,
            _ => Outcome::RateLimited,
        };
        if self.end(turn, outcome, returned).await { 0 } else { self.attach(false).await }
    }

    /// Makes the reports of a harness outside its turns.
    async fn beside(&self, table: &Table, dice: &mut Dice) {
        let (session, other) = (&self.session, |rpc: &str, content: String| Op::Other {
            rpc: rpc.to_owned(),
            content,
        });
        match dice.below(3) {
            0 => {
                let op = other(
                    "ReportHarnessStatus",
                    parts(&[session, *dice.pick(&["idle", "thinking"])]),
                );
                self.voice.once("", &op, &Carried::default()).await;
            }
            1 => drop(
                self.voice
                    .once("", &other("Heartbeat", session.clone()), &Carried::default())
                    .await,
            ),
            _ => {
                let (subject, text) =
                    (format!("subject {}", dice.below(3)), table.text(&self.voice.name, "problem"));
                // Another session may have begun in the meantime; then the report is refused.
                self.voice
                    .insist(&Op::ReportProblem { subject, text }, &Carried::process(session))
                    .await;
            }
        }
    }

    /// Asks to leave. A session that has left has ended; the next turn attaches again.
    async fn leave(&self, table: &Table) {
        let call = |rpc: &str| Op::Other { rpc: rpc.to_owned(), content: self.session.clone() };
        let left = self.voice.once("", &call("Leave"), &Carried::default()).await;
        if left != Answer::Ok(Reply::Done(true.to_string())) {
            return;
        }
        let beat = self.voice.insist(&call("Heartbeat"), &Carried::default()).await;
        table.facts.hold(beat == Answer::Refused("SESSION_LOST".to_owned()), || {
            format!("the harness of {} has left, and its session lives: {beat:?}", self.voice.name)
        });
    }

    /// Runs turns that succeed until nothing is left.
    pub(crate) async fn finish(&mut self) {
        let mut open = self.attach(true).await;
        loop {
            if open != 0 {
                self.end(open, Outcome::Ok, Vec::new()).await;
            }
            self.turns += 1;
            let carried =
                Carried::process(&format!("process-token-{}-end-{}", self.voice.name, self.turns));
            let request = self.voice.request_id();
            match tokio::time::timeout(
                BEGIN_WAIT,
                self.voice.once(&request, &self.op_begin(true), &carried),
            )
            .await
            {
                Ok(Answer::Ok(Reply::Turn { turn, .. })) => open = turn,
                Ok(_) => open = self.attach(false).await,
                Err(_) => break,
            }
        }
        // An abandoned begin may have been answered just then.
        let open = self.attach(true).await;
        assert_eq!(open, 0, "a fresh session has no turn");
        self.table.facts.all_heard().await;
        // While all is at rest there is no mail, so on demand it may really leave.
        self.leave(&self.table).await;
    }
}
