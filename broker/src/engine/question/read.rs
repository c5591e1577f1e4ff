//! Reading questions: an agent sees those that it asked or was asked, the operator all.

use hive_core::caller::Caller;
use hive_core::id::QuestionId;
use hive_core::message::OPERATOR;
use hive_core::question::{Question, State};
use rusqlite::Connection;

use crate::engine::{Engine, Refusal, actor};
use crate::store::question::{self as questions, Filter};
use crate::store::{AgentKey, event};

/// Which questions a caller wants to see.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// Only in these states; empty: all.
    pub states: Vec<State>,
    /// Only those that this one asked; empty: anybody.
    pub asker: String,
    /// Only those that this one was asked; empty: anybody.
    pub target: String,
}

/// Questions that changed, and the newest event behind which to look on.
#[derive(Clone, Debug, Default)]
pub struct Changed {
    /// As they stand now.
    pub questions: Vec<Question>,
    /// Where to look on.
    pub last_event: u64,
}

/// The key of a name in a filter. An agent may name others: it sees of them only what it shares
/// with them.
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

impl Engine {
    /// One question.
    pub async fn get_question(&self, caller: Caller, id: QuestionId) -> Result<Question, Refusal> {
        self.store
            .read(move |conn, _| {
                let filter = filter(conn, &caller, &Which::default())?;
                let row = questions::row(conn, id)?.filter(|row| filter.shows(row));
                Ok(row.ok_or(Refusal::QuestionNotFound { id })?.question)
            })
            .await
    }

    /// Questions, newest first; and whether there are more.
    pub async fn list_questions(
        &self,
        caller: Caller,
        which: Which,
        before: Option<QuestionId>,
        rows: u32,
    ) -> Result<(Vec<Question>, bool), Refusal> {
        self.store
            .read(move |conn, _| {
                let filter = filter(conn, &caller, &which)?;
                Ok(questions::page(conn, &filter, before, rows)?)
            })
            .await
    }

    /// A page of a snapshot, and the newest event that it includes.
    pub async fn questions_now(
        &self,
        caller: Caller,
        which: Which,
        before: Option<QuestionId>,
        rows: u32,
    ) -> Result<(Vec<Question>, bool, u64), Refusal> {
        self.store
            .read(move |conn, _| {
                let filter = filter(conn, &caller, &which)?;
                let (found, more) = questions::page(conn, &filter, before, rows)?;
                Ok((found, more, event::span(conn)?.1))
            })
            .await
    }

    /// What was asked or closed after an event, each once and as it stands now.
    pub async fn questions_changed(
        &self,
        caller: Caller,
        which: Which,
        after: u64,
        rows: u32,
    ) -> Result<Changed, Refusal> {
        self.store
            .read(move |conn, _| {
                let filter = filter(conn, &caller, &which)?;
                let (ids, last_event) = event::questions_after(conn, after, rows)?;
                let mut changed = Changed { questions: Vec::new(), last_event };
                for id in ids {
                    if let Some(row) = questions::row(conn, id)?.filter(|row| filter.shows(row)) {
                        changed.questions.push(row.question);
                    }
                }
                Ok(changed)
            })
            .await
    }
}
