//! `hivectl questions --follow`: open questions, then new and closed ones.
//!
//! Invariant: each question that is shown open is shown again when it is closed, also if that
//! happens while the broker is unreachable.

use std::collections::BTreeSet;

use hive_proto::v1::WatchQuestionsRequest;

use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::feed::questions::{QuestionFeed, Step};
use crate::fetch::{self, Whose};
use crate::interrupt::until_interrupted;
use crate::output::note;
use crate::view::question::Question;

pub(super) async fn run(
    context: &mut Context,
    broker: &Broker,
    whose: Whose,
) -> Result<(), Failure> {
    until_interrupted(follow(context, broker, whose)).await.unwrap_or(Ok(()))
}

async fn follow(context: &mut Context, broker: &Broker, whose: Whose) -> Result<(), Failure> {
    let Whose { asker, target } = whose;
    let mut feed = QuestionFeed::open(
        context,
        broker,
        WatchQuestionsRequest { asker, target, question_id: 0 },
    )
    .await?;
    // Questions that were shown as open, and the subset that the present snapshot has not named
    // yet.
    let mut open = BTreeSet::new();
    let mut untold = BTreeSet::new();
    loop {
        match feed.next().await? {
            Step::Question(question) => {
                let question = Question::from(*question);
                untold.remove(&question.id);
                let news = if question.is_open() {
                    open.insert(question.id)
                } else {
                    open.remove(&question.id)
                };
                // A question that was asked and closed between two reads was never shown open; its
                // outcome is shown anyway.
                if news || !question.is_open() {
                    context.out.one_as(&question, Question::progress)?;
                }
            }
            Step::Again => untold.clone_from(&open),
            Step::SnapshotComplete => {
                if open.is_empty() {
                    note("no questions yet; waiting");
                }
                closed_meanwhile(context, &mut open, &mut untold).await?;
            }
        }
    }
}

/// Shows the outcome of those that a new snapshot no longer has.
async fn closed_meanwhile(
    context: &mut Context,
    open: &mut BTreeSet<u64>,
    untold: &mut BTreeSet<u64>,
) -> Result<(), Failure> {
    if untold.is_empty() {
        return Ok(());
    }
    let broker = context.broker().await?;
    while let Some(id) = untold.pop_first() {
        let question = fetch::question::<Question>(&broker, id).await?;
        if !question.is_open() && open.remove(&id) {
            context.out.one_as(&question, Question::progress)?;
        }
    }
    Ok(())
}
