//! `hivectl dead-letters show`: one dead letter in full.

use clap::Args;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::delivery::Delivery;

/// Show a dead letter, with the last error and the end of the turn's output.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The message
    #[arg(add = complete::dead_letters())]
    id: u64,
    /// Whose inbox, where it died in several
    #[arg(long, value_name = "NAME", add = complete::agents())]
    agent: Option<String>,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let agent = self.agent.as_deref();
        let broker = context.broker().await?;
        let letters: Vec<Delivery> =
            fetch::dead_letters(&broker, agent.unwrap_or_default(), fetch::ALL).await?;
        let key = super::the_one(&letters, self.id, agent)?;
        for letter in letters
            .iter()
            .filter(|letter| letter.message.id == key.message_id && letter.agent == key.agent)
        {
            context.out.one(letter)?;
        }
        Ok(())
    }
}
