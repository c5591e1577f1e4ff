//! Reading questions: an agent sees those that it asked or was asked, the operator all.

use crate::engine::error::QuestionError;
use hive_core::caller::Caller;
use hive_core::effect::Effect;
use hive_core::id::QuestionId;
use hive_core::limits::PAGE_BYTES_MAX;
use hive_core::message::OPERATOR;
use hive_core::question::{Question, State};
use rusqlite::Connection;

use super::{Effects, bytes_of};
use crate::engine::{Engine, Refusal, actor};
use crate::store::question::{self as questions, Filter};
use crate::store::{AgentKey, event};

/// A filter of questions.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// States to include; empty: all.
    pub states: Vec<State>,
    /// The asker; empty: any.
    pub asker: String,
    /// The target; empty: any.
    pub target: String,
}

/// Changed questions, and the newest event that they include.
#[derive(Clone, Debug, Default)]
pub struct Changed {
    /// The questions in their present state.
    pub questions: Vec<Question>,
    /// The event after which the next read begins.
    pub last_event: u64,
}

/// Returns the key of a name in a filter. An agent may name others, and sees only the questions
/// that it shares with them.
fn key(conn: &Connection, name: &str) -> Result<Option<AgentKey>, Refusal> {
    Ok(match name {
        "" => None,
        OPERATOR => Some(AgentKey::OPERATOR),
        name => Some(actor::known(conn, name)?.key),
    })
}

fn filter(conn: &Connection, caller: &Caller, which: &Which) -> Result<Filter, Refusal> {
    let me = actor::row(conn, caller)?;
    Ok(Filter {
        concerns: caller.agent().is_some().then_some(me.key),
        asker: key(conn, &which.asker)?,
        target: key(conn, &which.target)?,
        states: which.states.clone(),
    })
}

/// Returns a page of questions as they are shown. What an open approval would change is computed
/// here, and is counted as well: a page of them stays under one reply's bytes.
fn page(
    conn: &Connection,
    effects: &impl Effects,
    filter: &Filter,
    before: Option<QuestionId>,
    rows: u32,
) -> Result<(Vec<Question>, bool), Refusal> {
    let (found, more) = questions::page(conn, filter, before, rows)?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    for row in found {
        let question = effects.shown(conn, row)?;
        bytes += bytes_of(&question);
        if bytes > PAGE_BYTES_MAX && !page.is_empty() {
            return Ok((page, true));
        }
        page.push(question);
    }
    Ok((page, more))
}

impl Engine {
    /// Returns one question.
    pub async fn get_question(&self, caller: Caller, id: QuestionId) -> Result<Question, Refusal> {
        let approvals = self.approvals();
        self.store
            .read(move |conn, _| {
                let filter = filter(conn, &caller, &Which::default())?;
                let row = questions::row(conn, id)?.filter(|row| filter.shows(row));
                approvals.shown(conn, row.ok_or(QuestionError::NotFound { id })?)
            })
            .await
    }

    /// Returns the effect of a question; `None` for a plain one, and for one that the caller may
    /// not read.
    pub async fn effect_of(
        &self,
        caller: Caller,
        id: QuestionId,
    ) -> Result<Option<Effect>, Refusal> {
        self.store
            .read(move |conn, _| {
                let filter = filter(conn, &caller, &Which::default())?;
                let row = questions::row(conn, id)?.filter(|row| filter.shows(row));
                Ok(row.and_then(|row| row.question.approval).map(|approval| approval.effect))
            })
            .await
    }

    /// Lists questions, newest first; also returns whether there are more.
    pub async fn list_questions(
        &self,
        caller: Caller,
        which: Which,
        before: Option<QuestionId>,
        rows: u32,
    ) -> Result<(Vec<Question>, bool), Refusal> {
        let approvals = self.approvals();
        self.store
            .read(move |conn, _| {
                let filter = filter(conn, &caller, &which)?;
                page(conn, &approvals, &filter, before, rows)
            })
            .await
    }

    /// Returns a page of a snapshot, and the newest event that it includes.
    pub async fn questions_now(
        &self,
        caller: Caller,
        which: Which,
        before: Option<QuestionId>,
        rows: u32,
    ) -> Result<(Vec<Question>, bool, u64), Refusal> {
        let approvals = self.approvals();
        self.store
            .read(move |conn, _| {
                let filter = filter(conn, &caller, &which)?;
                let (found, more) = page(conn, &approvals, &filter, before, rows)?;
                Ok((found, more, event::span(conn)?.1))
            })
            .await
    }

    /// Returns the questions that were asked or closed after an event, each once and in its present
    /// state.
    pub async fn questions_changed(
        &self,
        caller: Caller,
        which: Which,
        after: u64,
        rows: u32,
    ) -> Result<Changed, Refusal> {
        let approvals = self.approvals();
        self.store
            .read(move |conn, _| {
                let filter = filter(conn, &caller, &which)?;
                let (ids, last_event) = event::questions_after(conn, after, rows)?;
                let mut changed = Changed { questions: Vec::new(), last_event };
                for id in ids {
                    if let Some(row) = questions::row(conn, id)?.filter(|row| filter.shows(row)) {
                        changed.questions.push(approvals.shown(conn, row)?);
                    }
                }
                Ok(changed)
            })
            .await
    }
}
