//! `hivectl questions cancel`: withdraw open questions.

use clap::Args;
use hive_proto::v1::CancelQuestionRequest;

use crate::complete;
use crate::connect::{Broker, Questions, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::question::Closed;

/// Withdraw open questions, whoever asked them; the other side is told.
#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The questions
    #[arg(required = true, value_name = "ID", add = complete::questions())]
    ids: Vec<u64>,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let mut closed = Vec::with_capacity(self.ids.len());
        let ended = self.cancel(&broker, &mut closed).await;
        context.out.outcome(&closed, ended)?;
        Ok(Exit::Ok)
    }

    async fn cancel(self, broker: &Broker, closed: &mut Vec<Closed>) -> Result<(), Failure> {
        for question_id in self.ids {
            let request = CancelQuestionRequest { request_id: request_id(), question_id };
            let response =
                broker.change(broker.questions(), request, Questions::cancel_question).await?;
            closed.push(Closed(require(response.question, "question")?));
        }
        Ok(())
    }
}
