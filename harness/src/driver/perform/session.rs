//! A session and the waits for its turns.
//!
//! Invariant: results of a session that has ended never reach the machine.

use hive_core::agent::{Agent, HarnessState};
use hive_core::turn::Kind;

use super::Performer;
use crate::driver::{calls, session, status};
use crate::token;
use crate::turn::input::Input;
use crate::wire::session::Attached;

impl Performer {
    pub(super) fn attach(&mut self) {
        Self::abort(&mut self.stream_task);
        self.forget_session();
        // A claude of the old session must not delay a harness that has taken over.
        let runner = self.runner.clone();
        self.final_calls.spawn(async move { runner.end_resident().await });
        self.stream += 1;
        // Only the first session may take over: a session that was lost to another harness stays
        // lost.
        let take_over = self.config.take_over && self.stream == 1;
        let keep =
            session::keep(self.link.channel.clone(), take_over, self.stream, self.to.clone());
        self.stream_task = Some(self.tasks.spawn(keep));
    }

    /// Discards the calls of the session; their answers are outdated.
    pub(super) fn forget_session(&mut self) {
        self.token.send_replace(None);
        self.reported.send_replace(None);
        self.session_token.clear();
        self.session += 1;
        self.calls.abort_all();
        (self.begin, self.waiting, self.withdrawn) = (None, None, None);
        self.question = None;
    }

    pub(super) fn attached(&mut self, attached: Attached) -> Input {
        let Attached { session_token, session_epoch, mut facts } = attached;
        if let Some(agent) = &mut facts.agent {
            self.narrow(agent);
        }
        // The machine must learn whether *its* session was resumed.
        facts.resumed &= session_token == self.session_token;
        let resumed = facts.resumed;
        if !resumed {
            self.forget_session();
        }
        tracing::info!(epoch = session_epoch, resumed, "attached");
        self.session_token.clone_from(&session_token);
        self.token.send_replace(Some(session_token));
        if !resumed {
            let report = status::report(
                self.link.clone(),
                self.status.subscribe(),
                self.reported.clone(),
                self.to.clone(),
                self.session,
            );
            self.calls.spawn(report);
        }
        Input::Attached(Box::new(facts))
    }

    /// Restricts an agent's tool groups to those that this harness allows.
    pub(super) fn narrow(&self, agent: &mut Agent) {
        self.config.tool_groups.narrow(&mut agent.policy);
        self.shell.policy(agent);
    }

    pub(super) fn begin(&mut self) {
        let (request_id, process_token) =
            self.withdrawn.take().unwrap_or_else(|| (token::random(), self.next_process_token()));
        self.process_token.clone_from(&process_token);
        let begin = calls::begin(
            self.link.clone(),
            request_id.clone(),
            process_token.clone(),
            self.config.state_dir.clone(),
        );
        self.waiting = Some((request_id, process_token));
        let parked = status::parked(self.status.subscribe(), self.reported.subscribe());
        self.begin = Some(self.call(async move {
            parked.await;
            begin.await
        }));
    }

    /// Returns the token for the next turn; a resident claude keeps its token from turn to turn.
    pub(super) fn next_process_token(&self) -> String {
        self.runner.process_token().unwrap_or_else(token::random)
    }

    pub(super) fn leave(&mut self) {
        Self::abort(&mut self.begin);
        let (state, until) = self.status.borrow().unwrap_or((HarnessState::Idle, None));
        let leave = calls::leave(self.link.clone(), state, until);
        self.call(leave);
    }

    pub(super) fn ask_to_leave(&mut self) {
        Self::abort(&mut self.question);
        self.question = Some(self.call(calls::ask_to_leave(self.link.clone())));
    }

    pub(super) fn open(&mut self, kind: Kind) {
        if let Some(begin) = self.begin.take() {
            begin.abort();
            self.withdrawn = self.waiting.take();
        }
        self.process_token = self.next_process_token();
        let open = calls::open(self.link.clone(), self.process_token.clone(), kind);
        self.call(open);
    }
}
