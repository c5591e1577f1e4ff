//! Logins: the dialogue of an operator with claude, and the wait for a login.
//!
//! Invariant: claude runs no turn while the dialogue is open, and the dialogue's own writes never
//! count as a login.

use hive_core::park;
use hive_core::time::Now;
use hive_core::turn::Outcome;

use crate::turn::input::LoginWanted;
use crate::turn::machine::Machine;
use crate::turn::output::Output;
use crate::turn::phase::{Parked, Phase};

/// The state of logins.
#[derive(Debug, Default)]
pub(super) struct Login {
    /// The dialogue in which an operator logs claude in.
    dialogue: Option<u64>,
    /// Whether the running probe of the CLI is outdated.
    is_probe_outdated: bool,
    /// Whether a login was made since the last turn.
    is_made: bool,
}

impl Login {
    /// Returns whether a dialogue is open.
    pub(super) fn is_open(&self) -> bool {
        self.dialogue.is_some()
    }

    /// Returns whether the finished probe was outdated; once.
    pub(super) fn take_outdated_probe(&mut self) -> bool {
        std::mem::take(&mut self.is_probe_outdated)
    }

    /// Returns whether a login was made since the last turn.
    pub(super) fn is_made(&self) -> bool {
        self.is_made
    }

    /// Notes the end of a turn: only a login from now on counts.
    pub(super) fn turn_ends(&mut self) {
        self.is_made = false;
    }
}

impl Machine {
    pub(super) fn login_wanted(&mut self, wanted: LoginWanted) {
        let refusal = match &self.phase {
            // A stream that was opened again repeats the request.
            _ if self.login.dialogue == Some(wanted.login_id) => return,
            _ if self.login.dialogue.is_some() => Some("another login dialogue is open"),
            Phase::Running(_)
            | Phase::Opening(_)
            | Phase::Ending { .. }
            | Phase::Discarding(_)
            | Phase::Probing(_) => Some(
                "a turn runs now; try again when it has ended, or cancel it with `hivectl turn cancel`",
            ),
            Phase::Stopped => {
                Some("the agent is stopped; start it first with `hivectl agent start`")
            }
            Phase::Leaving | Phase::Gone => Some("the harness shuts down"),
            Phase::Detached
            | Phase::Starting
            | Phase::Beginning
            | Phase::Recovering(_)
            | Phase::Unsure(_) => None,
        };
        match refusal {
            Some(text) => self.emit(Output::RefuseLogin(wanted.login_id, text.to_owned())),
            None => {
                self.login.dialogue = Some(wanted.login_id);
                self.emit(Output::Login(wanted));
            }
        }
    }

    /// Ends the dialogue. A probe shows whether claude has a login now. But the refused login stays
    /// in place, so after an aborted dialogue the wait for a new one continues.
    pub(super) fn login_ended(&mut self, went_well: bool) {
        self.login.dialogue = None;
        if !went_well && self.waits_for_login() {
            self.emit(Output::WatchLogin);
            return;
        }
        self.login.is_probe_outdated = self.probing;
        self.probe();
    }

    /// Ends the wait for a login, because claude has a new one.
    pub(super) fn logged_in(&mut self, now: Now) {
        self.login.is_made = true;
        if self.waits_for_login() {
            self.parked = None;
            if matches!(self.phase, Phase::Beginning) {
                self.report_idle(now);
            }
        }
    }

    /// Records that claude has no login: the agent runs no turn until it has one.
    pub(super) fn without_login(&mut self, now: Now) {
        self.login.is_made = false;
        let park = park::View {
            cause: Outcome::AuthFailed,
            until: None,
            remaining: None,
            error: String::new(),
        };
        self.parked = Some(Parked::new(park, now));
        self.emit(Output::WatchLogin);
    }

    pub(super) fn waits_for_login(&self) -> bool {
        self.parked.as_ref().is_some_and(|parked| park::ends_by_login(parked.park.cause))
    }
}
