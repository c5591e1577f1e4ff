//! `hivectl send`: mail as the operator.

use clap::Args;
use hive_core::message::OPERATOR;
use hive_core::name::AgentName;
use hive_proto::v1::recipient::To;
use hive_proto::v1::{EveryoneRecipient, Recipient, SendMessageRequest};

use crate::complete;
use crate::connect::{Messages, request_id, traced};
use crate::context::Context;
use crate::error::Failure;
use crate::input::text_or_stdin;
use crate::output::note;
use crate::view::receipt::Receipt;

/// Send mail as the operator.
///
/// The message is on the broker's disk when this command ends well.
#[derive(Args, Debug)]
pub(crate) struct Send {
    /// An agent, or `*` for everyone
    #[arg(add = complete::agents())]
    to: String,
    /// The text; `-` reads it from stdin, without one final line break
    #[arg(allow_hyphen_values = true)]
    body: String,
    /// The message this one answers; that marks it as read, too
    #[arg(long, value_name = "ID", add = complete::mail())]
    reply_to: Option<u64>,
}

impl Send {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let to = Some(recipient(&self.to)?);
        let body = text_or_stdin(self.body)?;
        if body.is_empty() {
            return Err(Failure::BodyEmpty);
        }
        let in_reply_to = self.reply_to.unwrap_or(0);
        let broker = context.broker().await?;
        let request = SendMessageRequest { request_id: request_id(), to, body, in_reply_to };
        let response = broker
            .change(broker.messages(), request, async |client: &mut Messages, request| {
                client.send_message(traced(request)).await
            })
            .await?;
        let receipt = Receipt::from(response);
        context.out.one(&receipt)?;
        if !receipt.skipped_agents.is_empty() {
            note(&format!(
                "left out, because their inboxes are full: {}",
                receipt.skipped_agents.join(", ")
            ));
        }
        Ok(())
    }
}

fn recipient(text: &str) -> Result<Recipient, Failure> {
    let to = match text {
        OPERATOR => return Err(Failure::ToOneself),
        "*" => To::Everyone(EveryoneRecipient {}),
        name => {
            let checked = AgentName::parse(name);
            checked.map_err(|error| Failure::BadRecipient {
                text: name.to_owned(),
                why: error.to_string(),
            })?;
            To::Agent(name.to_owned())
        }
    };
    Ok(Recipient { to: Some(to) })
}
