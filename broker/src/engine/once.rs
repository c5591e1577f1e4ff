//! Once: a repeated request gets its first answer again, and the work is not repeated.
//!
//! Invariant: the answer is written in the transaction of the work, so both exist or neither.

use hive_core::caller::Caller;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Engine, Refusal, actor};
use crate::store::request::{self, RequestKey};
use crate::store::{AgentKey, Answer, Tx};

/// Returns the first answer to this request, if it was answered before.
pub(crate) fn replay<T: DeserializeOwned>(
    tx: &Tx<'_>,
    caller: AgentKey,
    key: &RequestKey,
) -> Result<Option<T>, Refusal> {
    let Some(answered) = request::find(tx, caller, key)? else { return Ok(None) };
    if !answered.is_same && !hive_fault::planted!(RequestContentUnchecked) {
        return Err(Refusal::RequestIdReused { id: key.id.clone() });
    }
    parsed(&answered.answer).map(Some)
}

/// If an answer of an older version no longer parses, the request fails. Without the error the work
/// would be repeated.
fn parsed<T: DeserializeOwned>(answer: &str) -> Result<T, Refusal> {
    let parsed = serde_json::from_str(answer).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, Box::new(error))
    });
    Ok(parsed?)
}

/// Stores an answer to this request, which may replace an earlier one.
pub(crate) fn keep<T: Serialize>(
    tx: &Tx<'_>,
    caller: AgentKey,
    key: &RequestKey,
    answer: &T,
) -> Result<(), Refusal> {
    Ok(request::put(tx, caller, key, &json(answer))?)
}

fn json<T: Serialize>(answer: &T) -> String {
    serde_json::to_string(answer).expect("answers are plain data")
}

/// Does the work, or returns the first answer to this request.
pub(crate) fn once<T: Serialize + DeserializeOwned>(
    tx: &Tx<'_>,
    caller: AgentKey,
    key: &RequestKey,
    work: impl FnOnce() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    if let Some(answer) = replay(tx, caller, key)? {
        return Ok(answer);
    }
    let answer = work()?;
    request::add(tx, caller, key, json(&answer))?;
    Ok(answer)
}

impl Engine {
    /// Runs a command in one transaction, once for each request.
    pub(crate) fn command<T, F>(
        &self,
        caller: Caller,
        request: RequestKey,
        work: F,
    ) -> Answer<'_, T, Refusal>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T, Refusal> + Send + 'static,
    {
        self.store.write(move |tx| {
            let me = actor::row(tx, &caller)?;
            once(tx, me.key, &request, || work(tx))
        })
    }
}
