//! Logins: claude's login dialogue, between the operator that requested it and the harness that
//! runs it. It exists in memory only.
//!
//! ```text
//!   operator ── typed ──►  (bounded)  ──► harness ── claude auth login
//!            ◄── said ──   (bounded)  ◄──
//! ```
//!
//! A dialogue is not durable. Its content may hold secrets, is never read and never logged.
//! Invariant: an agent has at most one dialogue; only a harness of that agent can serve it, once;
//! and when either side is dropped, the other side ends.

use crate::engine::error::HarnessError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::caller::Caller;
use hive_core::command::Kind;
use hive_core::event::{CommandClosed, CommandGiven, Facts};
use hive_core::id::NUMBER_MAX;
use hive_core::name::AgentName;
use tokio::sync::{mpsc, oneshot};

use crate::engine::actor::session;
use crate::engine::{Engine, Refusal, actor};
use crate::store::event::{Fact, log};
use crate::store::{AgentKey, CommandError as _};

/// Steps that wait in one direction; at this limit the sender waits.
const STEPS_WAITING: usize = 8;

/// The operator's terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Height in lines; 0 if unknown.
    pub rows: u16,
    /// Width in columns; 0 if unknown.
    pub columns: u16,
    /// The terminal type, as in `TERM`.
    pub kind: String,
}

/// The end of a dialogue, as the harness reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Whether claude has a valid login now.
    pub logged_in: bool,
    /// The reason for which it did not start or was interrupted; empty when claude ended it.
    pub error: String,
    /// The exit code of claude.
    pub exit_code: i32,
}

/// A step of the operator.
#[derive(Clone, PartialEq, Eq)]
pub enum Typed {
    /// Typed input.
    Input(Vec<u8>),
    /// A new size of the terminal.
    Terminal(Terminal),
}

/// A step of the harness.
#[derive(Clone, PartialEq, Eq)]
pub enum Said {
    /// Output of the dialogue.
    Output(Vec<u8>),
    /// The end of the dialogue.
    End(End),
}

/// Prints no content: it may be a secret.
impl std::fmt::Debug for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Input(bytes) => write!(f, "{} bytes typed", bytes.len()),
            Self::Terminal(terminal) => terminal.fmt(f),
        }
    }
}

impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Output(bytes) => write!(f, "{} bytes said", bytes.len()),
            Self::End(end) => end.fmt(f),
        }
    }
}

/// An open dialogue.
#[derive(Debug)]
struct Dialogue {
    id: u64,
    terminal: Terminal,
    /// The harness's side; `None` once it was taken.
    waiting: Option<(Serving, oneshot::Sender<()>)>,
}

/// The open dialogues of all agents.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    open: Mutex<HashMap<AgentKey, Dialogue>>,
}

/// The operator's side of a dialogue; dropping it ends the dialogue.
#[derive(Debug)]
pub struct Login {
    logins: Arc<Logins>,
    key: AgentKey,
    agent: String,
    id: u64,
    answered: oneshot::Receiver<()>,
    /// The channel to the harness.
    pub typed: mpsc::Sender<Typed>,
    /// The channel from the harness; ends when the harness disconnects.
    pub said: mpsc::Receiver<Said>,
}

/// The harness's side of a dialogue; dropping it ends the dialogue.
#[derive(Debug)]
pub struct Serving {
    /// The channel from the operator; ends when the operator disconnects.
    pub typed: mpsc::Receiver<Typed>,
    /// The channel to the operator; closed when the operator disconnects.
    pub said: mpsc::Sender<Said>,
}

impl Logins {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<AgentKey, Dialogue>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a dialogue; returns `None` if one is open.
    fn open(self: &Arc<Self>, key: AgentKey, agent: String, terminal: Terminal) -> Option<Login> {
        let mut open = self.lock();
        if open.contains_key(&key) {
            return None;
        }
        let (typed, to_harness) = mpsc::channel(STEPS_WAITING);
        let (from_harness, said) = mpsc::channel(STEPS_WAITING);
        let (taken, answered) = oneshot::channel();
        let id = fresh_id();
        let waiting = Some((Serving { typed: to_harness, said: from_harness }, taken));
        open.insert(key, Dialogue { id, terminal, waiting });
        drop(open);
        Some(Login { logins: Arc::clone(self), key, agent, id, answered, typed, said })
    }

    /// Returns whether the operator waits for a dialogue with the agent's harness.
    pub(crate) fn is_wanted(&self, key: AgentKey) -> bool {
        self.wanted(key).is_some()
    }

    /// Returns the dialogue that waits for this agent's harness.
    fn wanted(&self, key: AgentKey) -> Option<(u64, Terminal)> {
        let open = self.lock();
        let dialogue = open.get(&key).filter(|dialogue| dialogue.waiting.is_some())?;
        Some((dialogue.id, dialogue.terminal.clone()))
    }

    /// Takes the harness's side of an agent's dialogue.
    fn claim(&self, key: AgentKey, id: u64) -> Option<Serving> {
        let mut open = self.lock();
        let (serving, taken) =
            open.get_mut(&key).filter(|dialogue| dialogue.id == id)?.waiting.take()?;
        drop(open);
        // If the operator has just disconnected, the channels are closed.
        taken.send(()).ok();
        Some(serving)
    }
}

/// Returns a random number, so that an agent cannot guess the id of another's dialogue.
fn fresh_id() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("Linux has random numbers once it has booted");
    (u64::from_ne_bytes(bytes) & NUMBER_MAX).max(1)
}

impl Login {
    /// Returns the agent of the dialogue.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        let mut open = self.logins.lock();
        if open.get(&self.key).is_some_and(|dialogue| dialogue.id == self.id) {
            open.remove(&self.key);
        }
    }
}

impl Engine {
    /// Opens a login dialogue and asks the agent's harness to serve it.
    pub async fn begin_login(
        &self,
        caller: Caller,
        name: AgentName,
        terminal: Terminal,
    ) -> Result<Login, Refusal> {
        self.check_open()?;
        let Caller::Operator(who) = &caller else {
            return Err(Refusal::NotYours { what: "that agent's login" });
        };
        let (key, agent) = self
            .store
            .read(move |conn, _| {
                let row = actor::active(conn, name.as_str())?;
                Ok::<_, Refusal>((row.key, row.name))
            })
            .await?;
        if !self.presences.is_live(key) {
            return Err(Refusal::from(HarnessError::Offline { agent }));
        }
        let login = self
            .logins
            .open(key, agent.clone(), terminal)
            .ok_or(HarnessError::LoginOpen { agent })?;
        let given = CommandGiven { kind: Kind::Login, command_id: None };
        self.log_login(key, given.into(), format!("login, by {}", who.as_str())).await;
        self.hints.agent(key).changed.notify_waiters();
        Ok(login)
    }

    /// Waits until the harness serves the dialogue, or until a timeout.
    pub async fn login_answered(
        &self,
        login: &mut Login,
        patience: Duration,
    ) -> Result<(), Refusal> {
        let offline = || Refusal::from(HarnessError::Offline { agent: login.agent.clone() });
        tokio::select! {
            biased;
            answered = &mut login.answered => answered.map_err(|_| offline()),
            () = self.draining.cancelled() => Err(Refusal::Draining),
            () = tokio::time::sleep(patience) => Err(offline()),
        }
    }

    /// Returns the dialogue that waits for this agent's harness: its id, and the operator's
    /// terminal.
    #[must_use]
    pub fn login_wanted(&self, key: AgentKey) -> Option<(u64, Terminal)> {
        self.logins.wanted(key)
    }

    /// Takes the harness's side of a dialogue.
    pub async fn serve_login(
        &self,
        caller: Caller,
        session_token: String,
        id: u64,
    ) -> Result<Serving, Refusal> {
        self.check_open()?;
        let key = self
            .store
            .read(move |conn, _| Ok::<_, Refusal>(session(conn, &caller, &session_token)?.key))
            .await?;
        self.logins.claim(key, id).ok_or(Refusal::from(HarnessError::LoginNotFound { id }))
    }

    /// Waits until a session is over, and returns the refusal that reports it.
    pub async fn session_over(&self, caller: Caller, session_token: String) -> Refusal {
        let key = match self.key_of(&caller).await {
            Ok(key) => key,
            Err(refusal) => return refusal,
        };
        let hints = self.hints.agent(key);
        loop {
            let hint = hints.session.notified();
            tokio::pin!(hint);
            hint.as_mut().enable();
            let (caller, token) = (caller.clone(), session_token.clone());
            let lives =
                self.store.read(move |conn, _| session(conn, &caller, &token).map(|_| ())).await;
            match lives {
                // If the database cannot be read now, the state of the session is unknown.
                Err(refusal) if refusal.storage().is_none() => return refusal,
                Ok(()) | Err(_) => hint.await,
            }
        }
    }

    /// Ends a dialogue: its slot is free, and the log has its outcome: `done` if it succeeded.
    pub async fn end_login(&self, login: Login, done: bool, how: &str) {
        let key = login.key;
        drop(login);
        let closed = CommandClosed { done, command_id: None };
        self.log_login(key, closed.into(), format!("login: {how}")).await;
    }

    /// Logs an event of a login. A failure to log does not stop the login.
    async fn log_login(&self, key: AgentKey, facts: Facts, detail: String) {
        let write = self.store.write(move |tx| {
            log(tx, Fact::about(facts, key).detail(&detail));
            Ok::<_, Refusal>(())
        });
        if let Err(error) = write.await {
            tracing::warn!(%error, "a login could not be logged");
        }
    }
}
