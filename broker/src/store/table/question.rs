//! Table `question`: questions between agents and to the operator, and their outcomes.
//!
//! Invariant: a row that is not OPEN never changes again; [`close`] touches open rows alone.
//! Questions are kept.

use hive_core::id::{MessageId, QuestionId, TurnId};
use hive_core::question::{Answer, Question, State, Wording};
use hive_core::time::WallTime;
use rusqlite::{Connection, OptionalExtension as _, Result, Row};

use crate::store::codec::{Coded as _, coded, id, id_option, integer, json, unsigned};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::table::message::EARLIER_RUNS;
use crate::store::write::tx::Tx;

/// A question with the keys of its asker and its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionRow {
    /// The question.
    pub question: Question,
    /// The key of the asker.
    pub asker: AgentKey,
    /// The key of the target.
    pub target: AgentKey,
}

/// A question to write.
#[derive(Clone, Copy, Debug)]
pub struct NewQuestion<'a> {
    /// The id of the question.
    pub id: QuestionId,
    /// The key of the asker.
    pub asker: AgentKey,
    /// The key of the target.
    pub target: AgentKey,
    /// The text and the options.
    pub wording: &'a Wording,
    /// When it expires.
    pub deadline_time: Option<WallTime>,
    /// The turn it is asked in.
    pub turn: Option<TurnId>,
    /// The message that delivers it.
    pub message: MessageId,
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
    let options = serde_json::to_string(&new.wording.options).expect("a list of texts");
    tx.prepare_cached(
        "INSERT INTO question (id, asker_id, target_id, text, options, multi, create_time, deadline_time, turn_id, message_id) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute((
        integer(new.id.get()),
        new.asker.0,
        new.target.0,
        &new.wording.text,
        options,
        new.wording.multi,
        tx.now.wall.0,
        new.deadline_time.map(|time| time.0),
        new.turn.map(|id| integer(id.get())),
        integer(new.message.get()),
    ))?;
    if new.deadline_time.is_some() {
        tx.after_commit(Effect::WallDue);
    }
    Ok(())
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
    tx.prepare_cached(&format!(
        "UPDATE question SET state = ?2, answer = ?3, closed_by = ?4, operator_override = ?5, close_time = ?6 WHERE id = ?1 AND {open}"
    ))?
    .execute((integer(id.get()), close.state.code(), answer, close.closed_by, close.operator_override, tx.now.wall.0))
    .map(|changed| changed == 1)
}

const COLUMNS: &str = "q.id, (SELECT coalesce(purged_name, name) FROM agent WHERE id = q.asker_id), (SELECT coalesce(purged_name, name) FROM agent WHERE id = q.target_id), q.text, \
     q.options, q.multi, q.state, q.create_time, q.deadline_time, q.answer, q.closed_by, q.operator_override, q.close_time, q.turn_id, \
     q.message_id, q.asker_id, q.target_id";

fn from_row(row: &Row<'_>) -> Result<QuestionRow> {
    let answer: Option<String> = row.get(9)?;
    Ok(QuestionRow {
        question: Question {
            id: id(row, 0, QuestionId::new)?,
            asker: row.get(1)?,
            target: row.get(2)?,
            wording: Wording { text: row.get(3)?, options: json(row, 4)?, multi: row.get(5)? },
            state: coded(row, 6)?,
            create_time: WallTime(row.get(7)?),
            deadline_time: row.get::<_, Option<i64>>(8)?.map(WallTime),
            answer: if answer.is_some() { Some(json(row, 9)?) } else { None },
            closed_by: row.get(10)?,
            operator_override: row.get(11)?,
            close_time: row.get::<_, Option<i64>>(12)?.map(WallTime),
            turn_id: id_option(row, 13, TurnId::new)?,
            message_id: id_option(row, 14, MessageId::new)?,
        },
        asker: AgentKey(row.get(15)?),
        target: AgentKey(row.get(16)?),
    })
}

/// Returns a question with its keys, without a check of the reader.
pub fn row(conn: &Connection, id: QuestionId) -> Result<Option<QuestionRow>> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM question q WHERE q.id = ?1"))?
        .query_row([integer(id.get())], from_row)
        .optional()
}

/// Returns a question, without a check of the reader.
pub fn get(conn: &Connection, id: QuestionId) -> Result<Option<Question>> {
    Ok(row(conn, id)?.map(|row| row.question))
}

/// Returns whether an agent asked a question or was asked it.
pub fn concerns(conn: &Connection, id: QuestionId, agent: AgentKey) -> Result<bool> {
    conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM question WHERE id = ?1 AND (asker_id = ?2 OR target_id = ?2))")?
        .query_row((integer(id.get()), agent.0), |row| row.get(0))
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
pub fn page(
    conn: &Connection,
    filter: &Filter,
    before: Option<QuestionId>,
    rows: u32,
) -> Result<(Vec<Question>, bool)> {
    let states: Vec<String> = filter.states.iter().map(|state| state.code().to_string()).collect();
    let states = if states.is_empty() { "1, 2, 3, 4".to_owned() } else { states.join(", ") };
    let sql = format!(
        "SELECT {COLUMNS} FROM question q WHERE q.id < ?1 AND q.state IN ({states}) AND (?2 IS NULL OR q.asker_id = ?2 OR q.target_id = ?2) \
         AND (?3 IS NULL OR q.asker_id = ?3) AND (?4 IS NULL OR q.target_id = ?4) ORDER BY q.id DESC LIMIT ?5"
    );
    let key = |key: Option<AgentKey>| key.map(|key| key.0);
    let before = before.map_or(i64::MAX, |id| integer(id.get()));
    let mut select = conn.prepare_cached(&sql)?;
    let found = select.query_map(
        (before, key(filter.concerns), key(filter.asker), key(filter.target), rows + 1),
        from_row,
    )?;
    let (mut questions, mut bytes) = (Vec::new(), 0);
    for row in found {
        let question = row?.question;
        bytes += bytes_of(&question);
        if questions.len() == rows as usize
            || (bytes > hive_core::limits::PAGE_BYTES_MAX && !questions.is_empty())
        {
            return Ok((questions, true));
        }
        questions.push(question);
    }
    Ok((questions, false))
}

/// Returns the approximate size of a question on the wire, in bytes.
#[must_use]
pub fn bytes_of(question: &Question) -> usize {
    let options: usize = question.wording.options.iter().map(String::len).sum();
    // An answer repeats options at most once.
    question.wording.text.len()
        + 2 * options
        + question.answer.as_ref().map_or(0, |answer| answer.text.len())
        + 200
}

/// Returns the open questions that an agent asked or was asked.
pub fn open_of(conn: &Connection, agent: AgentKey) -> Result<Vec<QuestionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM question q WHERE q.state = 1 AND q.asker_id = ?1 UNION ALL \
         SELECT {COLUMNS} FROM question q WHERE q.state = 1 AND q.target_id = ?1"
    );
    conn.prepare_cached(&sql)?.query_map([agent.0], from_row)?.collect()
}

/// Returns how many open questions an agent has asked.
pub fn open_asked(conn: &Connection, asker: AgentKey) -> Result<u32> {
    conn.prepare_cached("SELECT count(*) FROM question WHERE asker_id = ?1 AND state = 1")?
        .query_row([asker.0], |row| unsigned(row, 0))
}

/// Returns how many open questions an agent has to answer.
pub fn open_owed(conn: &Connection, target: AgentKey) -> Result<u64> {
    conn.prepare_cached("SELECT count(*) FROM question WHERE target_id = ?1 AND state = 1")?
        .query_row([target.0], |row| unsigned(row, 0))
}

/// Returns how many questions are open.
pub fn open_count(conn: &Connection) -> Result<u64> {
    conn.prepare_cached("SELECT count(*) FROM question WHERE state = 1")?
        .query_row([], |row| unsigned(row, 0))
}

/// Returns open questions whose deadline has passed, oldest deadline first.
pub fn expired(conn: &Connection, now: WallTime, rows: u32) -> Result<Vec<QuestionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM question q WHERE q.state = 1 AND q.deadline_time <= ?1 ORDER BY q.deadline_time LIMIT ?2"
    );
    conn.prepare_cached(&sql)?.query_map((now.0, rows), from_row)?.collect()
}

/// Returns the next deadline of an open question.
pub fn next_deadline(conn: &Connection) -> Result<Option<WallTime>> {
    let sql =
        "SELECT min(deadline_time) FROM question WHERE state = 1 AND deadline_time IS NOT NULL";
    conn.prepare_cached(sql)?.query_row([], |row| Ok(row.get::<_, Option<i64>>(0)?.map(WallTime)))
}

/// Returns the questions that earlier runs of a turn's deliveries asked and did not withdraw,
/// oldest first.
pub fn asked_in_earlier_runs(conn: &Connection, turn: TurnId) -> Result<Vec<Question>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM question q WHERE q.turn_id IN ({EARLIER_RUNS}) AND q.state <> 4 ORDER BY q.id"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map([integer(turn.get())], from_row)?;
    rows.map(|row| row.map(|row| row.question)).collect()
}

/// Returns a question of an earlier run that equals one about to be asked and has not replaced
/// another, as for messages.
pub fn equal_in_earlier_runs(
    conn: &Connection,
    turn: TurnId,
    target: AgentKey,
    wording: &Wording,
) -> Result<Option<QuestionId>> {
    let options = serde_json::to_string(&wording.options).expect("a list of texts");
    let sql = format!(
        "SELECT q.id FROM question q WHERE q.turn_id IN ({EARLIER_RUNS}) AND q.state <> 4 AND q.target_id = ?2 AND q.text = ?3 \
         AND q.options = ?4 AND q.multi = ?5 AND {} ORDER BY q.id LIMIT 1",
        super::message::not_absorbed("q.id")
    );
    conn.prepare_cached(&sql)?
        .query_row((integer(turn.get()), target.0, &wording.text, options, wording.multi), |row| {
            id(row, 0, QuestionId::new)
        })
        .optional()
}
