//! `hivectl questions cancel`: withdraw open questions.

use clap::Args;
use hive_proto::v1::CancelQuestionRequest;

use crate::command::each::change_each;
use crate::complete;
use crate::connect::{Questions, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::view::question::Closed;

/// Withdraw open questions, whoever asked them; the other side is told.
#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The questions
    #[arg(required = true, value_name = "ID", add = complete::questions())]
    ids: Vec<u64>,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        change_each(context, self.ids, async |question_id| {
            let request = CancelQuestionRequest { request_id: request_id(), question_id };
            let response =
                broker.change(broker.questions(), request, Questions::cancel_question).await?;
            Ok(Some(Closed(require(response.question, "question")?)))
        })
        .await
    }
}
