//! The work on a call, with a permit. The beginning of its answer is encoded under that permit,
//! too.
//!
//! ```text
//!   arriving ──► queued ──► working ──► released, by the class of the call ──► answered
//!                              ├──► answered
//!                              ├──► answered that there is nothing, and the permit is kept for a pause
//!                              └──► refused, which keeps the permit for a pause
//! ```
//!
//! It is a future by hand: each call has one, and one that waits may wait for hours. Invariant: a
//! call that ends within [`WORK_MAX`] makes at most one timer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;

use super::{Arriving, PAUSE, Permit, WORK_MAX};
use crate::engine::permit::{self, Said};
use crate::rpc::edge::answer;
use crate::rpc::edge::later::{self, Answered, Call};
use crate::rpc::edge::method::Class;

/// A call at work.
pub(super) struct Work<K> {
    class: Class,
    tasks: TaskTracker,
    at_work: Arc<Semaphore>,
    stage: Stage,
    /// Kept until the answer is sent or given up.
    kept: Option<K>,
    /// For the next moment at which something changes without the call.
    timer: Option<Pin<Box<Sleep>>>,
}

enum Stage {
    /// It waits for its request.
    Arriving(Arriving),
    /// It waits for a permit.
    Queued(Call, Pin<Box<dyn Future<Output = Permit> + Send>>),
    /// It works with a permit.
    Working {
        call: Call,
        permit: Permit,
        start: Instant,
        /// Whether it has said that it waits.
        is_waiting: bool,
    },
    /// It waits without a permit.
    Released(Call),
    /// It was refused.
    Refused(Permit, Box<http::Response<Body>>),
    /// It was answered.
    Over,
}

impl<K: Send + Unpin + 'static> Work<K> {
    pub(super) fn on(
        tasks: TaskTracker,
        at_work: Arc<Semaphore>,
        class: Class,
        arriving: Arriving,
        kept: K,
    ) -> Self {
        let stage = Stage::Arriving(arriving);
        Self { class, tasks, at_work, stage, kept: Some(kept), timer: None }
    }

    /// Begins an answer.
    fn begun(
        &mut self,
        answer: http::Response<Body>,
        cx: &mut Context<'_>,
    ) -> http::Response<Body> {
        answer::begun(answer, self.kept.take(), cx)
    }

    /// Waits until this moment.
    fn poll_until(&mut self, moment: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(moment)));
        if timer.deadline() != moment {
            timer.as_mut().reset(moment);
        }
        timer.as_mut().poll(cx)
    }

    /// Polls the call, which works with a permit.
    fn poll_working(
        &mut self,
        mut call: Call,
        permit: Permit,
        (start, was_waiting): (Instant, bool),
        cx: &mut Context<'_>,
    ) -> Poll<Answered> {
        let (answered, said) = permit::watched(|| later::poll(&mut call, cx));
        let is_waiting = was_waiting || said == Said::Release;
        match answered {
            Poll::Ready(Ok(answer)) if is_refusal(&answer) => {
                self.timer = None;
                self.stage = Stage::Refused(permit, Box::new(answer));
                self.poll_refused(cx)
            }
            Poll::Ready(answered) => {
                self.stage = Stage::Over;
                let answered = answered.map(|answer| self.begun(answer, cx));
                // Otherwise it is dropped, and so released after a pause.
                if said != Said::Keep {
                    permit.release();
                }
                Poll::Ready(answered)
            }
            Poll::Pending => {
                // Not before the pause that a refusal, or a caller that goes away, costs.
                let held = match self.class {
                    Class::LongPoll | Class::ClientStream | Class::Job if is_waiting => PAUSE,
                    Class::LongPoll | Class::ClientStream | Class::Job => WORK_MAX,
                    Class::Short | Class::Page | Class::Stream | Class::Watch => WORK_MAX,
                };
                if self.poll_until(start + held, cx).is_ready() {
                    permit.release();
                    (self.stage, self.timer) = (Stage::Released(call), None);
                } else {
                    self.stage = Stage::Working { call, permit, start, is_waiting };
                }
                Poll::Pending
            }
        }
    }

    fn poll_refused(&mut self, cx: &mut Context<'_>) -> Poll<Answered> {
        let end =
            self.timer.as_ref().map_or_else(|| Instant::now() + PAUSE, |timer| timer.deadline());
        ready!(self.poll_until(end, cx));
        let Stage::Refused(permit, answer) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Poll::Pending;
        };
        let answer = self.begun(*answer, cx);
        permit.release();
        Poll::Ready(Ok(answer))
    }
}

impl<K: Send + Unpin + 'static> Future for Work<K> {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answered> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.stage, Stage::Over) {
                Stage::Arriving(mut arriving) => match arriving.as_mut().poll(cx) {
                    Poll::Ready(call) => {
                        this.stage = match Permit::try_taken(&this.tasks, &this.at_work, PAUSE) {
                            Some(permit) => working(call, permit),
                            None => {
                                let (tasks, of) = (this.tasks.clone(), Arc::clone(&this.at_work));
                                Stage::Queued(call, Box::pin(Permit::taken(tasks, of, PAUSE)))
                            }
                        };
                    }
                    Poll::Pending => {
                        this.stage = Stage::Arriving(arriving);
                        return Poll::Pending;
                    }
                },
                Stage::Queued(call, mut taken) => match taken.as_mut().poll(cx) {
                    Poll::Ready(permit) => this.stage = working(call, permit),
                    Poll::Pending => {
                        this.stage = Stage::Queued(call, taken);
                        return Poll::Pending;
                    }
                },
                Stage::Working { call, permit, start, is_waiting } => {
                    return this.poll_working(call, permit, (start, is_waiting), cx);
                }
                Stage::Released(mut call) => {
                    let Poll::Ready(answered) = later::poll(&mut call, cx) else {
                        this.stage = Stage::Released(call);
                        return Poll::Pending;
                    };
                    return Poll::Ready(answered.map(|answer| this.begun(answer, cx)));
                }
                Stage::Refused(permit, answer) => {
                    this.stage = Stage::Refused(permit, answer);
                    return this.poll_refused(cx);
                }
                // It is not polled after it was answered.
                Stage::Over => return Poll::Pending,
            }
        }
    }
}

fn working(call: Call, permit: Permit) -> Stage {
    Stage::Working { call, permit, start: Instant::now(), is_waiting: false }
}

/// Returns whether the answer is a status and nothing else.
fn is_refusal(answer: &http::Response<Body>) -> bool {
    answer.headers().get(Status::GRPC_STATUS).is_some_and(|code| code != "0")
}
