//! Following questions: a watch that survives a restart of the broker.
//!
//! Invariant: each watch begins with a snapshot and reports its end. After an outage a new snapshot
//! begins, so a caller that compares the two misses no outcome.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use hive_proto::v1::watch_questions_response::Step as WireStep;
use hive_proto::v1::{Question, WatchQuestionsRequest, WatchQuestionsResponse};
use tonic::Streaming;

use super::reconnect::reconnect;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;

#[derive(Debug)]
pub(crate) enum Step {
    Question(Box<Question>),
    /// The snapshot is complete; what follows are changes.
    SnapshotComplete,
    /// The broker was away; a new snapshot begins.
    Again,
}

#[derive(Debug)]
pub(crate) struct QuestionFeed {
    socket: PathBuf,
    timeout: Duration,
    request: WatchQuestionsRequest,
    stream: Option<Streaming<WatchQuestionsResponse>>,
    /// Steps that were not returned yet.
    ready: VecDeque<Step>,
}

impl QuestionFeed {
    pub(crate) async fn open(
        context: &Context,
        broker: &Broker,
        request: WatchQuestionsRequest,
    ) -> Result<Self, Failure> {
        // An outage at this moment is handled like a later one.
        let stream = match watch(broker.clone(), request.clone()).await {
            Ok(stream) => Some(stream),
            Err(Failure::Refused(status)) if hive_proto::status::is_transient(&status) => None,
            Err(failure) => return Err(failure),
        };
        Ok(Self {
            socket: context.socket.clone(),
            timeout: context.timeout,
            request,
            stream,
            ready: VecDeque::new(),
        })
    }

    /// Returns the next step, however long it takes.
    pub(crate) async fn next(&mut self) -> Result<Step, Failure> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Ok(step);
            }
            let Some(stream) = &mut self.stream else {
                let watch = |broker| watch(broker, self.request.clone());
                self.stream = Some(reconnect(&self.socket, self.timeout, watch).await?);
                return Ok(Step::Again);
            };
            match stream.message().await {
                Ok(Some(WatchQuestionsResponse { step })) => self.ready.extend(steps(step)),
                Ok(None) => self.stream = None,
                Err(status) if hive_proto::status::is_transient(&status) => self.stream = None,
                Err(status) => return Err(status.into()),
            }
        }
    }
}

/// Returns a step of the wire, a question each.
fn steps(step: Option<WireStep>) -> Vec<Step> {
    let (questions, complete) = match step {
        Some(WireStep::Snapshot(part)) => (part.questions, part.complete),
        Some(WireStep::Batch(batch)) => (batch.questions, false),
        // A position, or a step that this version does not know.
        Some(WireStep::Progress(_)) | None => (Vec::new(), false),
    };
    let questions = questions.into_iter().map(|question| Step::Question(Box::new(question)));
    questions.chain(complete.then_some(Step::SnapshotComplete)).collect()
}

async fn watch(
    broker: Broker,
    request: WatchQuestionsRequest,
) -> Result<Streaming<WatchQuestionsResponse>, Failure> {
    broker.read(broker.questions().watch_questions(request)).await
}
