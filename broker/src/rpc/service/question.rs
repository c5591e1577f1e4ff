//! `QuestionService`.

use std::collections::HashSet;

use hive_core::caller::Caller;
use hive_core::effect::{APPROVE, Effect};
use hive_core::id::QuestionId;
use hive_core::question::{Answer, Question, Wording};
use hive_proto::convert::{self, IntoWire, question as questions, time};
use hive_proto::v1;
use hive_proto::v1::watch_questions_response::Step;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::watching::{self, Out, Told, Woken};
use crate::engine::mail::question::{Ask, Reply, Which, bytes_of};
use crate::engine::{Actor, Refusal, permit};
use crate::files::Shortage;
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::rpc::edge::request;
use crate::rpc::edge::room::Seat;
use crate::spawn::spawn;
use crate::store::request::RequestKey;

/// Questions that a watch reads at once.
const WATCH_ROWS: u32 = 200;

/// The filter of a watch.
#[derive(Clone, Debug)]
struct Watch {
    caller: Caller,
    which: Which,
    /// Only this question.
    only: Option<QuestionId>,
}

/// The watcher has disconnected.
struct Gone;

async fn send(out: &Out<v1::WatchQuestionsResponse>, step: Step) -> Result<(), Gone> {
    out.send(Ok(v1::WatchQuestionsResponse { step: Some(step) })).await.map_err(|_| Gone)
}

fn wire(questions: Vec<Question>) -> Vec<v1::Question> {
    questions.into_iter().map(IntoWire::into_wire).collect()
}

impl Rpc {
    /// Takes the files for the socket of an agent that an effect may create.
    fn seat_for(&self, effect: &Effect) -> (Option<Seat>, Option<Shortage>) {
        match effect {
            Effect::CreateAgent { name, .. } => match self.sockets.seat(name) {
                Ok(seat) => (seat, None),
                Err(short) => (None, Some(short)),
            },
            Effect::RetireAgent { .. }
            | Effect::SetAgent { .. }
            | Effect::SetPolicy { .. }
            | Effect::RunAction { .. }
            | Effect::CreateSchedule { .. }
            | Effect::ChangeSchedule { .. } => (None, None),
        }
    }

    /// Runs the preview of an action, if the question needs one, without the permit of the call.
    async fn preview(&self, actor: &Actor, key: &RequestKey, ask: &mut Ask) -> Result<(), Refusal> {
        let Some(wanted) = self.engine.preview_of(actor, key, ask).await? else { return Ok(()) };
        permit::release();
        let lines = self.previews.run(&wanted, self.engine.draining()).await?;
        if let Some(Effect::RunAction { preview, .. }) = &mut ask.effect {
            *preview = Some(lines);
        }
        Ok(())
    }

    /// Lets the sockets follow an effect, if the question is answered with it.
    async fn follow(
        &self,
        question: &Question,
        effect: &Effect,
        seat: Option<Seat>,
    ) -> Result<(), Refusal> {
        let chosen = question.answer.as_ref().and_then(|answer| answer.choices.first());
        if chosen.is_none_or(|choice| choice != APPROVE) {
            return Ok(());
        }
        match effect {
            Effect::CreateAgent { name, .. } => self.reconcile_socket(name, seat).await,
            Effect::RetireAgent { name } => self.close_retired(name, false).await,
            Effect::SetAgent { .. }
            | Effect::SetPolicy { .. }
            | Effect::RunAction { .. }
            | Effect::CreateSchedule { .. }
            | Effect::ChangeSchedule { .. } => Ok(()),
        }
    }

    /// Sends the snapshot: the open questions, or the one question in whatever state it is. Returns
    /// the event after which the changes begin.
    async fn snapshot(
        &self,
        watch: &Watch,
        out: &Out<v1::WatchQuestionsResponse>,
    ) -> Result<Result<u64, Gone>, Refusal> {
        let open = Which { states: vec![hive_core::question::State::Open], ..watch.which.clone() };
        let part = |questions: Vec<Question>, complete: bool, sequence: u64| {
            Step::Snapshot(v1::QuestionSnapshot {
                questions: wire(questions),
                complete,
                log_id: self.engine.log_id().to_owned(),
                sequence,
            })
        };
        if let Some(id) = watch.only {
            let (_, _, last) =
                self.engine.questions_now(watch.caller.clone(), Which::default(), None, 1).await?;
            let question = self.engine.get_question(watch.caller.clone(), id).await?;
            let sent = send(out, part(vec![question], true, last)).await;
            return Ok(sent.map(|()| last));
        }
        let (mut before, mut begin) = (None, None);
        loop {
            let (page, more, last) = self
                .engine
                .questions_now(watch.caller.clone(), open.clone(), before, WATCH_ROWS)
                .await?;
            // A question that is asked while the pages are read is sent as a change, because
            // changes begin after the first page.
            let begin = *begin.get_or_insert(last);
            before = page.last().map(|question| question.id);
            if send(out, part(page, !more, begin)).await.is_err() {
                return Ok(Err(Gone));
            }
            if !more {
                return Ok(Ok(begin));
            }
        }
    }

    /// Sends a snapshot, then asked and closed questions, until the watcher disconnects or the
    /// broker ends.
    async fn watch_questions_until(
        &self,
        watch: &Watch,
        out: &Out<v1::WatchQuestionsResponse>,
    ) -> Result<(), Refusal> {
        let mut newest = self.engine.hints().last_event();
        let Ok(mut after) = self.snapshot(watch, out).await? else { return Ok(()) };
        let mut told = Told::new(after);
        loop {
            newest.borrow_and_update();
            let changed = self
                .engine
                .questions_changed(watch.caller.clone(), watch.which.clone(), after, WATCH_ROWS)
                .await?;
            let behind = *newest.borrow() > changed.last_event;
            let mut questions = changed.questions;
            questions.retain(|question| watch.only.is_none_or(|only| only == question.id));
            if !questions.is_empty() {
                let mut parts = watching::parts(questions, bytes_of).into_iter().peekable();
                while let Some(part) = parts.next() {
                    // Only the last part has everything up to the new position.
                    let sequence = if parts.peek().is_some() { after } else { changed.last_event };
                    let batch = v1::QuestionBatch { questions: wire(part), sequence };
                    if send(out, Step::Batch(batch)).await.is_err() {
                        return Ok(());
                    }
                }
                told = Told::new(changed.last_event);
            }
            after = changed.last_event;
            if behind {
                continue;
            }
            match watching::wait(&self.engine, &mut newest, out, told, after).await? {
                Woken::Changed => {}
                Woken::Progress => {
                    let progress = watching::progress(&self.engine, after);
                    if send(out, Step::Progress(progress)).await.is_err() {
                        return Ok(());
                    }
                    told = Told::new(after);
                }
                Woken::Gone => return Ok(()),
            }
        }
    }
}

#[tonic::async_trait]
impl v1::question_service_server::QuestionService for Rpc {
    async fn ask_question(
        &self,
        request: Request<v1::AskQuestionRequest>,
    ) -> Result<Response<v1::AskQuestionResponse>, Status> {
        let (actor, key, ask) = request::sending(request)?;
        let v1::AskQuestionRequest { request_id: _, to, text, options, multi, ttl, effect } = ask;
        let ttl = time::optional_span(ttl, "ttl")?;
        let mut ask = Ask {
            to: convert::required_as(to, "to")?,
            wording: Wording { text, options, multi },
            ttl,
            effect: convert::optional_as(effect, "effect")?,
            short: None,
        };
        self.preview(&actor, &key, &mut ask).await?;
        let (question, already_asked) = match ask.effect.clone() {
            None => self.engine.ask(actor, key, ask).await?,
            // Its grants may allow it, and then it is applied at once.
            Some(effect) => {
                let rpc = self.clone();
                self.to_its_end(async move {
                    let (seat, short) = rpc.seat_for(&effect);
                    ask.short = short;
                    let asked = rpc.engine.ask(actor, key, ask).await?;
                    rpc.follow(&asked.0, &effect, seat).await?;
                    Ok(asked)
                })
                .await?
            }
        };
        Ok(Response::new(v1::AskQuestionResponse {
            question: Some(question.into_wire()),
            already_asked,
        }))
    }

    async fn answer_question(
        &self,
        request: Request<v1::AnswerQuestionRequest>,
    ) -> Result<Response<v1::AnswerQuestionResponse>, Status> {
        let (actor, key, answer) = request::sending(request)?;
        let v1::AnswerQuestionRequest { request_id: _, question_id, choices, text, diff_digest } =
            answer;
        let id = convert::id(question_id, QuestionId::new, "question_id")?;
        let mut reply = Reply { diff_digest, ..Answer { choices, text }.into() };
        // Without a digest nothing is approved.
        let effect = if reply.diff_digest.is_empty() {
            None
        } else {
            self.engine.effect_of(actor.caller.clone(), id).await?
        };
        let question = match effect {
            None => self.engine.answer(actor, key, id, reply).await?,
            Some(effect) => {
                let rpc = self.clone();
                self.to_its_end(async move {
                    let (seat, short) = rpc.seat_for(&effect);
                    reply.short = short;
                    let question = rpc.engine.answer(actor, key, id, reply).await?;
                    rpc.follow(&question, &effect, seat).await?;
                    Ok(question)
                })
                .await?
            }
        };
        Ok(Response::new(v1::AnswerQuestionResponse { question: Some(question.into_wire()) }))
    }

    async fn cancel_question(
        &self,
        request: Request<v1::CancelQuestionRequest>,
    ) -> Result<Response<v1::CancelQuestionResponse>, Status> {
        let (actor, key, cancel) = request::sending(request)?;
        let id = convert::id(cancel.question_id, QuestionId::new, "question_id")?;
        let question = self.engine.cancel_question(actor, key, id).await?;
        Ok(Response::new(v1::CancelQuestionResponse { question: Some(question.into_wire()) }))
    }

    async fn get_question(
        &self,
        request: Request<v1::GetQuestionRequest>,
    ) -> Result<Response<v1::GetQuestionResponse>, Status> {
        let caller = caller::identify(&request)?;
        let id = convert::id(request.into_inner().question_id, QuestionId::new, "question_id")?;
        let question = self.engine.get_question(caller, id).await?;
        Ok(Response::new(v1::GetQuestionResponse { question: Some(question.into_wire()) }))
    }

    async fn list_questions(
        &self,
        request: Request<v1::ListQuestionsRequest>,
    ) -> Result<Response<v1::ListQuestionsResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let v1::ListQuestionsRequest { states, asker, target, .. } = list;
        let which = Which { states: states_of(&states)?, asker, target };
        let (found, more) =
            self.engine.list_questions(caller, which, page.after, page.rows).await?;
        let next = found.last().filter(|_| more).map(|question| question.id);
        Ok(Response::new(v1::ListQuestionsResponse {
            questions: found.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }

    type WatchQuestionsStream = ReceiverStream<Result<v1::WatchQuestionsResponse, Status>>;

    async fn watch_questions(
        &self,
        request: Request<v1::WatchQuestionsRequest>,
    ) -> Result<Response<Self::WatchQuestionsStream>, Status> {
        let caller = caller::identify(&request)?;
        let v1::WatchQuestionsRequest { asker, target, question_id } = request.into_inner();
        let watch = Watch {
            caller,
            which: Which { states: Vec::new(), asker, target },
            only: convert::optional_id(question_id, QuestionId::new, "question_id")?,
        };
        // Read once before the stream begins, so that a bad filter is an answer and not a broken
        // stream.
        match watch.only {
            Some(id) => drop(self.engine.get_question(watch.caller.clone(), id).await?),
            None => drop(
                self.engine
                    .questions_now(watch.caller.clone(), watch.which.clone(), None, 1)
                    .await?,
            ),
        }
        let (out, stream) = mpsc::channel(watching::STEPS);
        let rpc = self.clone();
        spawn(&self.streams, async move {
            if let Err(refusal) = rpc.watch_questions_until(&watch, &out).await {
                drop(out.send(Err(refusal.into())).await);
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// Returns the states of a filter, each once.
fn states_of(numbers: &[i32]) -> Result<Vec<hive_core::question::State>, Status> {
    let states: HashSet<_> = questions::states(numbers, "states")?.into_iter().collect();
    Ok(states.into_iter().collect())
}
