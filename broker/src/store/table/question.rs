//! Table `question`: questions between agents and to the operator, and their outcomes.
//!
//! Invariant: a row that is not OPEN never changes again; [`close`] touches open rows alone.
//! Questions are kept.

use hive_core::effect::{Approval, Change, Effect};
use hive_core::id::{MessageId, QuestionId, TurnId};
use hive_core::question::{Answer, Question, State, Wording};
use hive_core::time::WallTime;
use rusqlite::Result;

use crate::store::codec::{Coded as _, integer};
use crate::store::columns::{columns, name_of};
use crate::store::effect::Effect as AfterCommit;
use crate::store::key::AgentKey;
use crate::store::statement::{
    Statements, all, change, first, insert, one, page as read_page, run,
};
use crate::store::table::message::EARLIER_RUNS;
use crate::store::write::tx::Tx;

columns! {
    const WORDING: Wording {
        text: String = "q.text",
        options: Vec<String> = "q.options",
        multi: bool = "q.multi",
    }
}

columns! {
    const APPROVAL: Approval {
        effect: Effect = "q.effect",
        changes: Vec<Change> = "q.changes",
    } + diff_digest + problem + run
}

columns! {
    const QUESTION: Question {
        id: QuestionId = "q.id",
        asker: String = name_of!("q.asker_id"),
        target: String = name_of!("q.target_id"),
        wording: Wording = WORDING,
        state: State = "q.state",
        create_time: WallTime = "q.create_time",
        deadline_time: Option<WallTime> = "q.deadline_time",
        answer: Option<Answer> = "q.answer",
        closed_by: String = "q.closed_by",
        operator_override: bool = "q.operator_override",
        close_time: Option<WallTime> = "q.close_time",
        turn_id: Option<TurnId> = "q.turn_id",
        message_id: Option<MessageId> = "q.message_id",
        approval: Option<Box<Approval>> = APPROVAL,
    }
}

columns! {
    /// A question with the keys of its asker and its target.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct QuestionRow, const COLUMNS {
        pub question: Question = QUESTION,
        pub asker: AgentKey = "q.asker_id",
        pub target: AgentKey = "q.target_id",
    }
}

/// A question to write.
#[derive(Clone, Copy, Debug)]
pub struct NewQuestion<'a> {
    pub id: QuestionId,
    pub asker: AgentKey,
    pub target: AgentKey,
    /// The text and the options.
    pub wording: &'a Wording,
    /// When it expires.
    pub deadline_time: Option<WallTime>,
    /// The turn it is asked in.
    pub turn: Option<TurnId>,
    /// The message that delivers it.
    pub message: MessageId,
    /// What it asks to approve.
    pub effect: Option<&'a Effect>,
}

/// The end of a question.
#[derive(Clone, Copy, Debug)]
pub struct Close<'a> {
    /// The outcome.
    pub state: State,
    /// The answer, if it was answered.
    pub answer: Option<&'a Answer>,
    /// The name of the agent or operator that closed it; empty for the broker.
    pub closed_by: &'a str,
    /// Whether the operator answered in the target's place.
    pub operator_override: bool,
}

/// Writes an open question.
pub fn insert(tx: &Tx<'_>, new: &NewQuestion<'_>) -> Result<()> {
    insert!(tx, into question {
        id: integer(new.id.get()),
        asker_id: new.asker.0,
        target_id: new.target.0,
        text: new.wording.text,
        options: options_json(new.wording),
        multi: new.wording.multi,
        create_time: tx.now.wall.0,
        deadline_time: new.deadline_time.map(|time| time.0),
        turn_id: new.turn.map(|id| integer(id.get())),
        message_id: integer(new.message.get()),
        effect: new.effect.map(effect_json),
    })?;
    if new.deadline_time.is_some() {
        tx.after_commit(AfterCommit::WallDue);
    }
    Ok(())
}

fn options_json(wording: &Wording) -> String {
    serde_json::to_string(&wording.options).expect("a list of texts")
}

fn effect_json(effect: &Effect) -> String {
    serde_json::to_string(effect).expect("an effect is plain data")
}

/// Stores what approving a question has changed.
pub fn set_changes(tx: &Tx<'_>, id: QuestionId, changes: &[Change]) -> Result<()> {
    let json = serde_json::to_string(changes).expect("changes are plain data");
    run(tx, "UPDATE question SET changes = ?2 WHERE id = ?1", (integer(id.get()), json))
}

/// Closes a question if it is open; returns whether it was.
pub fn close(tx: &Tx<'_>, id: QuestionId, close: &Close<'_>) -> Result<bool> {
    let answer =
        close.answer.map(|answer| serde_json::to_string(answer).expect("an answer is plain data"));
    let open = match () {
        () if hive_fault::planted!(AnswerAfterExpiry) => "state IN (1, 3)",
        () if hive_fault::planted!(TwoOutcomes) => "state IN (1, 2, 4)",
        () => "state = 1",
    };
    let sql = format!(
        "UPDATE question SET state = ?2, answer = ?3, closed_by = ?4, operator_override = ?5, close_time = ?6 WHERE id = ?1 AND {open}"
    );
    let by_operator = close.operator_override;
    let values = (
        integer(id.get()),
        close.state.code(),
        answer,
        close.closed_by,
        by_operator,
        tx.now.wall.0,
    );
    Ok(change(tx, &sql, values)? == 1)
}

/// Returns a question with its keys, without a check of the reader.
pub(crate) fn row(conn: &impl Statements, id: QuestionId) -> Result<Option<QuestionRow>> {
    let sql = format!("SELECT {COLUMNS} FROM question q WHERE q.id = ?1");
    first(conn, &sql, [integer(id.get())])
}

/// Returns a question, without a check of the reader.
pub(crate) fn get(conn: &impl Statements, id: QuestionId) -> Result<Option<Question>> {
    Ok(row(conn, id)?.map(|row| row.question))
}

/// Returns whether an agent asked a question or was asked it.
pub(crate) fn concerns(conn: &impl Statements, id: QuestionId, agent: AgentKey) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM question WHERE id = ?1 AND (asker_id = ?2 OR target_id = ?2))";
    one(conn, sql, (integer(id.get()), agent.0))
}

/// The questions that a list shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those that concern this agent.
    pub concerns: Option<AgentKey>,
    /// Only those that this agent asked.
    pub asker: Option<AgentKey>,
    /// Only those that this agent was asked.
    pub target: Option<AgentKey>,
    /// Only those in one of these states; empty: all.
    pub states: Vec<State>,
}

impl Filter {
    /// Returns whether the filter includes a question.
    #[must_use]
    pub fn shows(&self, row: &QuestionRow) -> bool {
        self.concerns.is_none_or(|key| key == row.asker || key == row.target)
            && self.asker.is_none_or(|key| key == row.asker)
            && self.target.is_none_or(|key| key == row.target)
            && (self.states.is_empty() || self.states.contains(&row.question.state))
    }
}

/// Returns questions, newest first; and whether there are more.
pub(crate) fn page(
    conn: &impl Statements,
    filter: &Filter,
    before: Option<QuestionId>,
    rows: u32,
) -> Result<(Vec<QuestionRow>, bool)> {
    let states: Vec<String> = filter.states.iter().map(|state| state.code().to_string()).collect();
    let states = if states.is_empty() { "1, 2, 3, 4".to_owned() } else { states.join(", ") };
    let sql = format!(
        "SELECT {COLUMNS} FROM question q WHERE q.id < ?1 AND q.state IN ({states}) AND (?2 IS NULL OR q.asker_id = ?2 OR q.target_id = ?2) \
         AND (?3 IS NULL OR q.asker_id = ?3) AND (?4 IS NULL OR q.target_id = ?4) ORDER BY q.id DESC LIMIT ?5"
    );
    let key = |key: Option<AgentKey>| key.map(|key| key.0);
    let before = before.map_or(i64::MAX, |id| integer(id.get()));
    let values = (before, key(filter.concerns), key(filter.asker), key(filter.target), rows + 1);
    read_page(conn, &sql, values, rows, |row: &QuestionRow| bytes_of(&row.question))
}

/// Returns the approximate size of a question on the wire, in bytes.
#[must_use]
pub fn bytes_of(question: &Question) -> usize {
    let options: usize = question.wording.options.iter().map(String::len).sum();
    // An answer repeats options at most once.
    let approval = question.approval.as_ref().map_or(0, |approval| {
        let of = |change: &Change| {
            let Change { field, before, after, exceeds } = change;
            field.len() + before.len() + after.len() + exceeds.len() + 20
        };
        // The changes repeat the effect, which has no fixed size.
        2 * approval.changes.iter().map(of).sum::<usize>() + approval.problem.len() + 200
    });
    question.wording.text.len()
        + approval
        + 2 * options
        + question.answer.as_ref().map_or(0, |answer| answer.text.len())
        + 200
}

/// Returns the open questions that an agent asked or was asked.
pub(crate) fn open_of(conn: &impl Statements, agent: AgentKey) -> Result<Vec<QuestionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM question q WHERE q.state = 1 AND q.asker_id = ?1 UNION ALL \
         SELECT {COLUMNS} FROM question q WHERE q.state = 1 AND q.target_id = ?1"
    );
    all(conn, &sql, [agent.0])
}

/// Returns how many open questions an agent has asked.
pub(crate) fn open_asked(conn: &impl Statements, asker: AgentKey) -> Result<u32> {
    one(conn, "SELECT count(*) FROM question WHERE asker_id = ?1 AND state = 1", [asker.0])
}

/// Returns how many open questions an agent has to answer.
pub(crate) fn open_owed(conn: &impl Statements, target: AgentKey) -> Result<u64> {
    one(conn, "SELECT count(*) FROM question WHERE target_id = ?1 AND state = 1", [target.0])
}

/// Returns how many questions are open.
pub(crate) fn open_count(conn: &impl Statements) -> Result<u64> {
    one(conn, "SELECT count(*) FROM question WHERE state = 1", [])
}

/// Returns open questions whose deadline has passed, oldest deadline first.
pub(crate) fn expired(
    conn: &impl Statements,
    now: WallTime,
    rows: u32,
) -> Result<Vec<QuestionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM question q WHERE q.state = 1 AND q.deadline_time <= ?1 ORDER BY q.deadline_time LIMIT ?2"
    );
    all(conn, &sql, (now.0, rows))
}

/// Returns the next deadline of an open question.
pub(crate) fn next_deadline(conn: &impl Statements) -> Result<Option<WallTime>> {
    let sql =
        "SELECT min(deadline_time) FROM question WHERE state = 1 AND deadline_time IS NOT NULL";
    one(conn, sql, [])
}

/// Returns the questions that earlier runs of a turn's deliveries asked and did not withdraw,
/// oldest first.
pub(crate) fn asked_in_earlier_runs(conn: &impl Statements, turn: TurnId) -> Result<Vec<Question>> {
    let sql = format!(
        "SELECT {QUESTION} FROM question q WHERE q.turn_id IN ({EARLIER_RUNS}) AND q.state <> 4 ORDER BY q.id"
    );
    all(conn, &sql, [integer(turn.get())])
}

/// Returns a question of an earlier run that equals one about to be asked and has not replaced
/// another, as for messages. Its preview may be another: it shows the host at another time.
pub(crate) fn equal_in_earlier_runs(
    conn: &impl Statements,
    turn: TurnId,
    target: AgentKey,
    wording: &Wording,
    effect: Option<&Effect>,
) -> Result<Option<QuestionId>> {
    let sql = format!(
        "SELECT q.id FROM question q WHERE q.turn_id IN ({EARLIER_RUNS}) AND q.state <> 4 AND q.target_id = ?2 AND q.text = ?3 \
         AND q.options = ?4 AND q.multi = ?5 AND json_remove(q.effect, '$.run_action.preview') IS json(?6) AND {} ORDER BY q.id LIMIT 1",
        super::message::not_absorbed("q.id")
    );
    let values = (
        integer(turn.get()),
        target.0,
        &wording.text,
        options_json(wording),
        wording.multi,
        effect.map(|effect| effect_json(&effect.as_asked())),
    );
    first(conn, &sql, values)
}
