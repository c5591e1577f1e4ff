//! Loose ends: the list of an agent's open items, and closing the caller's own.
//!
//! Invariant: the tree and the capability `query_agent_state` alone decide which loose ends a
//! caller may read. A caller can close only its own rows.

use crate::engine::error::{AgentError, QuestionError};
use hive_core::agent::QUERY_AGENT_STATE;
use hive_core::caller::Caller;
use hive_core::id::{QuestionId, ReminderId};
use hive_core::limits::{
    LOOSE_END_KEY_CHARS_MAX, LOOSE_END_LABELS_MAX, LOOSE_END_TEXT_CHARS_MAX,
    PUBLISHED_LOOSE_ENDS_MAX,
};
use hive_core::loose_end::{Kind, LooseEnd};
use hive_core::name::Label;
use rusqlite::Connection;

use super::admission::Admission;
use super::wake::label_of_nobody;
use super::{question, reminder};
use crate::engine::actor::{self, Actor, check_group};
use crate::engine::{Engine, Refusal};
use crate::store::AgentKey;
use crate::store::loose_end::{self as loose_ends, Entry};
use crate::store::request::RequestKey;

/// Returns the agent whose loose ends a caller may read under this name; `None`: those of all
/// agents.
fn whose(conn: &Connection, caller: &Caller, name: &str) -> Result<Option<AgentKey>, Refusal> {
    let me = actor::row(conn, caller)?;
    match caller {
        Caller::Operator(_) => actor::scope(conn, caller, name, "that list of loose ends"),
        Caller::Agent(_) => {
            check_group(caller, &me, "inbox")?;
            if name.is_empty() || name == me.name {
                return Ok(Some(me.key));
            }
            let other = actor::known(conn, name)?;
            let may = other.parent == Some(me.key) || me.policy.has_capability(QUERY_AGENT_STATE);
            if may {
                Ok(Some(other.key))
            } else {
                Err(Refusal::from(AgentError::NotYourChild { agent: other.name }))
            }
        }
    }
}

impl Engine {
    /// Lists loose ends by id; also returns whether there are more.
    pub async fn list_loose_ends(
        &self,
        caller: Caller,
        agent: String,
        after: u64,
        rows: u32,
    ) -> Result<(Vec<LooseEnd>, bool), Refusal> {
        let asker = caller.clone();
        let listed = self
            .store
            .read(move |conn, _| {
                let whose = whose(conn, &asker, &agent)?;
                Ok(loose_ends::page(conn, whose, after, rows)?)
            })
            .await;
        self.noting(&caller, "list loose ends", listed).await
    }

    /// Closes one of the caller's own loose ends.
    pub async fn cancel_loose_end(
        &self,
        actor: Actor,
        request: RequestKey,
        kind: Kind,
        id: u64,
    ) -> Result<(), Refusal> {
        self.check_open()?;
        let refuse =
            |problem: &str| Err(Refusal::Field { field: "kind", problem: problem.to_owned() });
        match kind {
            Kind::QuestionAsked | Kind::Approval | Kind::Reminder => {}
            Kind::QuestionOwed => {
                return refuse("a question that was put to you ends with your answer; answer it");
            }
            Kind::DeadLetter => {
                return refuse("a dead letter is redriven or dropped by the operator; tell them");
            }
            Kind::External => {
                return refuse("what a co-process published is withdrawn by that co-process");
            }
        }
        self.act("cancel loose end", actor, request, move |admission| {
            let me = admission.me;
            let not_found = Refusal::LooseEndNotFound { kind, id };
            if kind == Kind::Reminder {
                let row = ReminderId::new(id).map(|id| reminder::visible(&admission, id));
                let row = row.transpose()?.flatten().ok_or(not_found)?;
                if row.agent != me.key {
                    // The operator's: another's reminder is withdrawn by its id, not as an own end.
                    return Err(Refusal::NotYours { what: "that reminder" });
                }
                return reminder::cancel(&admission, &row);
            }
            let row = QuestionId::new(id).map(|id| question::visible(&admission, id));
            let approval = kind == Kind::Approval;
            let row = row.transpose()?.flatten();
            let row = row.filter(|row| row.question.approval.is_some() == approval);
            let row = row.ok_or(not_found)?;
            if row.asker != me.key {
                // For the operator too: questions of others are withdrawn by id, not as the
                // operator's own loose end.
                let (id, asker) = (row.question.id, row.question.asker);
                return Err(Refusal::from(QuestionError::NotTheAsker { id, asker }));
            }
            question::cancel(&admission, &row)
        })
        .await
    }

    /// Publishes a co-process's set of loose ends for the calling agent.
    pub async fn replace_loose_ends(
        &self,
        actor: Actor,
        request: RequestKey,
        label: Label,
        entries: Vec<Entry>,
    ) -> Result<(), Refusal> {
        self.check_open()?;
        actor.check_agent()?;
        check_entries(&entries)?;
        self.act("replace loose ends", actor, request, move |Admission { tx, me, .. }| {
            label_of_nobody(tx, &label)?;
            let others = loose_ends::other_labels(tx, me.key, label.as_str())?;
            if !entries.is_empty() && others >= LOOSE_END_LABELS_MAX {
                let problem = format!(
                    "{LOOSE_END_LABELS_MAX} others publish for this agent already; clear one of their sets"
                );
                return Err(Refusal::Field { field: "label", problem });
            }
            Ok(loose_ends::replace(tx, me.key, label.as_str(), &entries)?)
        })
        .await
    }
}

fn check_entries(entries: &[Entry]) -> Result<(), Refusal> {
    let refuse = |problem: String| Err(Refusal::Field { field: "loose_ends", problem });
    if entries.len() > PUBLISHED_LOOSE_ENDS_MAX {
        return refuse(format!(
            "there are {} entries; at most {PUBLISHED_LOOSE_ENDS_MAX} are allowed",
            entries.len()
        ));
    }
    let is_line = |text: &str, max: usize| {
        (1..=max).contains(&text.chars().count()) && !text.contains(char::is_control)
    };
    for (place, (key, text)) in entries.iter().enumerate() {
        if !is_line(key, LOOSE_END_KEY_CHARS_MAX) {
            return refuse(format!(
                "the key of entry {place} must be one line of 1 to {LOOSE_END_KEY_CHARS_MAX} characters"
            ));
        }
        if !is_line(text, LOOSE_END_TEXT_CHARS_MAX) {
            return refuse(format!(
                "the text of entry {place} must be one line of 1 to {LOOSE_END_TEXT_CHARS_MAX} characters"
            ));
        }
        if entries.iter().take(place).any(|(earlier, _)| earlier == key) {
            return refuse(format!("the key `{key}` stands there twice"));
        }
    }
    Ok(())
}
