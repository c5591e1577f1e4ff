//! Problems: faults around a harness that end no turn. The agent's parent is notified once for each
//! cause: a newer text on a subject replaces an unread one, and the same text is not sent again.

use hive_core::caller::Caller;
use hive_core::id::MessageId;
use hive_core::limits::{PROBLEM_SUBJECT_CHARS_MAX, PROBLEM_TEXT_BYTES_MAX};
use hive_core::message::SystemKind;

use crate::engine::actor::session;
use crate::engine::mail::notice::parent;
use crate::engine::mail::notice::{self, Notice};
use crate::engine::mail::text::quoted;
use crate::engine::once::once;
use crate::engine::{Engine, Refusal};
use crate::store::message;
use crate::store::request::RequestKey;

/// A problem, as a harness reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The token of the session.
    pub session_token: String,
    /// The subject of the problem.
    pub subject: String,
    /// The problem and its remedy.
    pub text: String,
}

fn check(problem: &mut Problem) -> Result<(), Refusal> {
    let Problem { session_token: _, subject, text } = problem;
    let chars = subject.chars().count();
    if !(1..=PROBLEM_SUBJECT_CHARS_MAX).contains(&chars) || subject.contains(char::is_control) {
        let problem =
            format!("it has 1 to {PROBLEM_SUBJECT_CHARS_MAX} printable characters, as `plugins`");
        return Err(Refusal::Field { field: "subject", problem });
    }
    if text.trim().is_empty() {
        return Err(Refusal::Field {
            field: "text",
            problem: "say what is wrong, and what helps".to_owned(),
        });
    }
    text.truncate(text.floor_char_boundary(PROBLEM_TEXT_BYTES_MAX));
    Ok(())
}

impl Engine {
    /// Notifies the agent's parent; returns the message. It replaces an undelivered notice on the
    /// same subject.
    pub async fn report_problem(
        &self,
        caller: Caller,
        request: RequestKey,
        mut problem: Problem,
    ) -> Result<MessageId, Refusal> {
        self.check_open()?;
        check(&mut problem)?;
        let (limits, presences) =
            (std::sync::Arc::clone(&self.limits), std::sync::Arc::clone(&self.presences));
        self.store
            .write(move |tx| {
                let Problem { session_token, subject, text } = &problem;
                let me = session(tx, &caller, session_token)?;
                presences.touch(me.key, session_token, tx.now.boot);
                once(tx, me.key, &request, || {
                    let about = quoted(subject);
                    let body = format!(
                        "Something around the harness of {} does not work. It says:\n\n{about}\n{}",
                        me.name,
                        quoted(text)
                    );
                    let notice = Notice::about(&me.name, parent(&me), SystemKind::Problem, &body);
                    let notice = Notice { subject: Some(subject), ..notice };
                    // A harness that starts again finds the same cause again, which was reported.
                    match message::last_notice(tx, notice.to, &notice.key().0)? {
                        Some((earlier, told)) if told == body => Ok(earlier),
                        _ => notice::send(tx, &limits, notice),
                    }
                })
            })
            .await
    }
}
