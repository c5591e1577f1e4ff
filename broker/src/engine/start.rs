//! The start of an engine: it continues the state of the last broker.
//!
//! Invariant: sessions and their turns live on, and harnesses get the whole grace time to come
//! back.

use std::collections::BTreeMap;
use std::sync::Arc;

use hive_core::id::TurnId;
use hive_core::limits::Limits;
use hive_core::name::AgentName;
use hive_core::time::BootTime;
use tokio_util::sync::CancellationToken;

use super::background::Background;
use super::declared::Declared;
use super::heartbeat::Heartbeats;
use super::mail::handover::Handovers;
use super::mail::search::Searching;
use super::mail::stream::Streams;
use super::operator::backup::Checking;
use super::operator::declare::declare;
use super::refused::Refusals;
use super::turn::end::fence_turns_of_other_boots;
use super::{Engine, Parts, Refusal, restored};
use crate::store::search::Index;
use crate::store::{
    CommandError, Effect, PresenceChange, StoreError, Tx, agent, lease, log, turn as turn_rows,
};

/// Why an engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state of the last broker could not be continued.
    #[error("the database could not be prepared")]
    Database(#[source] Refusal),
    /// The agents of the configuration file were refused.
    #[error("the agents of the configuration file could not be set up")]
    Agents(#[source] Refusal),
}

impl<E: Into<StoreError>> From<E> for StartError {
    fn from(error: E) -> Self {
        Self::Database(Refusal::Store(error.into()))
    }
}

impl CommandError for StartError {
    fn storage(&self) -> Option<&StoreError> {
        let (Self::Database(refusal) | Self::Agents(refusal)) = self;
        refusal.storage()
    }
}

/// A started engine, and what its sockets are opened by.
#[derive(Debug)]
pub struct Started {
    /// The engine.
    pub engine: Engine,
    /// The names of the active agents.
    pub names: Vec<String>,
}

/// What an engine has begun on.
enum Begun {
    Log {
        log_id: String,
        last_event: u64,
        /// Whether anything is leased.
        leased: bool,
        /// The active agents.
        names: Vec<String>,
    },
    /// A backup that has replaced the database, with its newest turn.
    Replaced(Option<TurnId>),
}

impl Engine {
    /// Returns an engine whose agents are those of the database.
    pub async fn start(parts: Parts) -> Result<Self, Refusal> {
        match Self::start_with(parts, None).await {
            Ok(started) => Ok(started.engine),
            Err(StartError::Database(refusal) | StartError::Agents(refusal)) => Err(refusal),
        }
    }

    /// Returns an engine that has the agents of the configuration file, if there is one.
    pub async fn start_with(
        parts: Parts,
        declared: Option<BTreeMap<AgentName, Declared>>,
    ) -> Result<Started, StartError> {
        let Parts {
            store,
            turn_events,
            memory,
            clock,
            limits,
            identity,
            actions,
            directories,
            sandboxes,
        } = parts;
        let mut engine = Self {
            log_id: Arc::default(),
            leases_were_held: false,
            presences: Arc::clone(&memory.presences),
            turn_events,
            sandboxes,
            buckets: Arc::default(),
            heartbeats: Heartbeats::default(),
            logins: Arc::default(),
            refusals: Refusals::default(),
            background: Background::default(),
            searching: Searching::new(Index::beside(store.path())),
            checking: Checking::default(),
            handovers: Arc::new(Handovers::new(Arc::clone(&memory.hints))),
            delivery_streams: Arc::new(Streams::new(Arc::clone(&memory.hints))),
            limits: Arc::new(limits),
            draining: CancellationToken::new(),
            lines: tokio::sync::watch::Sender::new(0),
            retention: std::sync::Mutex::default(),
            keys: Arc::clone(&memory.keys),
            start_time: clock.now().wall,
            store,
            hints: Arc::clone(&memory.hints),
            memory,
            clock,
            actions: Arc::new(actions),
            journal_units: identity.journal_units.clone().into(),
            identity,
            directories,
        };
        let declared = declared.map(Arc::new);
        let mut forgotten = false;
        loop {
            match engine.begin(forgotten, declared.clone()).await? {
                Begun::Log { log_id, last_event, leased, names } => {
                    engine.log_id = log_id.into();
                    engine.leases_were_held = leased;
                    engine.hints.set_last_event(last_event);
                    return Ok(Started { engine, names });
                }
                Begun::Replaced(newest) => {
                    engine.forget_replaced(newest).await.map_err(StartError::Database)?;
                    forgotten = true;
                }
            }
        }
    }

    /// Begins. A replaced database has to be forgotten first. One command, because a start waits
    /// for each.
    async fn begin(
        &self,
        forgotten: bool,
        declared: Option<Arc<BTreeMap<AgentName, Declared>>>,
    ) -> Result<Begun, StartError> {
        let (boot_id, limits) = (self.clock.boot_id().to_owned(), Arc::clone(&self.limits));
        let begin = move |tx: &Tx<'_>| {
            if !forgotten && log::backup_time(tx)?.is_some() {
                return Ok(Begun::Replaced(turn_rows::newest(tx)?));
            }
            let log_id = go_on(tx, &limits, &boot_id).map_err(StartError::Database)?;
            let leased = lease::are_held(tx)?;
            if let Some(declared) = declared {
                declare(tx, &limits, &declared).map_err(StartError::Agents)?;
            }
            let (last_event, names) = (tx.last_event(), agent::names(tx)?);
            Ok(Begun::Log { log_id, last_event, leased, names })
        };
        self.store.write(begin).await
    }

    /// Waits until the writer has come to a command. If the disk fails, it refuses the command, and
    /// works.
    pub async fn writer_answers(&self) {
        drop(self.store.write(|_: &Tx<'_>| Ok::<_, Refusal>(())).await);
    }

    /// Notes that the broker serves from now on. The grace time of harnesses that were attached to
    /// the last broker begins here, and so do the leases of consumers. The time before was the
    /// broker's own, and may be long if the host is slow or was asleep.
    pub async fn ready(&self) -> Result<(), Refusal> {
        // Nothing is leased before the broker serves.
        if self.leases_were_held {
            let renew = |tx: &Tx<'_>| Ok::<_, Refusal>(lease::renew_consumer_leases(tx)?);
            self.store.write(renew).await?;
        }
        if !hive_fault::planted!(NoGrace) {
            self.presences.serving(self.clock.now().boot);
        }
        Ok(())
    }
}

/// Begins or continues the log, and fences what other boots left; returns the identity of the log.
fn go_on(tx: &Tx<'_>, limits: &Limits, boot_id: &str) -> Result<String, Refusal> {
    agent::ensure_operator(tx)?;
    let log_id = restored::log_id(tx, limits)?;
    if hive_fault::planted!(RequestForgotten) {
        crate::store::request::forget(tx)?;
    }
    let sessions = agent::sessions(tx)?;
    let boot_id = if hive_fault::planted!(RestartEndsTurns) { "" } else { boot_id };
    fence_turns_of_other_boots(tx, limits, boot_id)?;
    for agent::Session { agent, epoch, token } in sessions {
        let since = if hive_fault::planted!(NoGrace) { BootTime(0) } else { tx.now.boot };
        let awaited = PresenceChange::Awaited { epoch, token, now: since };
        tx.after_commit(Effect::Presence(agent, awaited));
    }
    Ok(log_id)
}
