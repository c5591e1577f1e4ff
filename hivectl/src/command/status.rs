//! `hivectl status`: how the broker is, and what needs attention.

use clap::Args;
use hive_proto::v1::GetBrokerStatusRequest;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::fetch;
use crate::view::status::Status;

/// How the broker is, and what needs attention.
///
/// Ends with exit code 8 if something does: the database cannot be written, the broker is draining,
/// an agent starts no turns or has mail but no harness, mail is held or dead, or agents are not
/// isolated, or partly, and the configuration does not accept that.
#[derive(Args, Debug)]
pub(crate) struct StatusCommand {}

impl StatusCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let Self {} = self;
        let broker = context.broker().await?;
        let response =
            broker.read(broker.admin().get_broker_status(GetBrokerStatusRequest {})).await?;
        let agents = match fetch::agents(&broker, false, fetch::ALL).await {
            Ok(agents) => agents,
            // A broker that cannot use its database can still say so, and that is what somebody is
            // here for.
            Err(_) if !response.storage_ok => Vec::new(),
            Err(failure) => return Err(failure),
        };
        let status = Status::new(response, &agents, &context.out.style);
        context.out.one(&status)?;
        Ok(if status.findings.is_empty() { Exit::Ok } else { Exit::Findings })
    }
}
