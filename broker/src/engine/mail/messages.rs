//! Messages: reading them. An agent reads what it sent or received; the operator reads all.

use crate::engine::error::MailError;
use hive_core::caller::Caller;
use hive_core::id::MessageId;
use hive_core::message::Message;

use crate::engine::{Engine, Refusal, actor};
use crate::store::AgentKey;
use crate::store::message::{self, Filter};

impl Engine {
    /// Returns one message.
    pub async fn get_message(&self, caller: Caller, id: MessageId) -> Result<Message, Refusal> {
        self.store.read(move |conn, _| readable(conn, &caller, id)).await
    }

    /// Lists the recipients of a message by name, after `after`, for a caller that may read the
    /// message. Also returns the name after which the next page begins, if there may be more.
    pub async fn list_recipients(
        &self,
        caller: Caller,
        id: MessageId,
        after: String,
        rows: u32,
    ) -> Result<(Vec<String>, Option<String>), Refusal> {
        self.store
            .read(move |conn, _| {
                let message = readable(conn, &caller, id)?;
                if message.broadcast {
                    return Ok(message::recipients(conn, id, &after, rows)?);
                }
                let names = message.recipients.into_iter().filter(|name| *name > after);
                Ok((names.collect(), None))
            })
            .await
    }

    /// Lists messages, newest first; also returns whether there are more.
    pub async fn list_messages(
        &self,
        caller: Caller,
        agent: String,
        thread_of: Option<MessageId>,
        before: Option<MessageId>,
        rows: u32,
    ) -> Result<(Vec<Message>, bool), Refusal> {
        self.store
            .read(move |conn, _| {
                let scope = scope(conn, &caller, &agent)?;
                Ok(message::page(conn, Filter { agent: scope, thread_of, before }, rows)?)
            })
            .await
    }
}

/// Returns a message that the caller may read.
fn readable(
    conn: &rusqlite::Connection,
    caller: &Caller,
    id: MessageId,
) -> Result<Message, Refusal> {
    let me = actor::row(conn, caller)?;
    if caller.agent().is_some() && !message::concerns(conn, id, me.key)? {
        return Err(Refusal::from(MailError::MessageNotFound { id }));
    }
    message::get(conn, id)?.ok_or(Refusal::from(MailError::MessageNotFound { id }))
}

/// Returns the agent whose mail a caller asks for; `None` for that of all. An agent may read its
/// own only.
pub(super) fn scope(
    conn: &rusqlite::Connection,
    caller: &Caller,
    agent: &str,
) -> Result<Option<AgentKey>, Refusal> {
    actor::scope(conn, caller, agent, "that agent's mail")
}
