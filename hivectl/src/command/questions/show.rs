//! `hivectl questions show`: one question in full.

use clap::Args;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::question::Question;

/// Show a question with its options and its outcome.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The question
    #[arg(add = complete::questions())]
    id: u64,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let question: Question = fetch::question(&context.broker().await?, self.id).await?;
        context.out.one(&question)
    }
}
