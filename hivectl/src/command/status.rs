//! `hivectl status`: how the broker is, and what needs attention.

use hive_proto::v1::GetBrokerStatusRequest;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::fetch;
use crate::view::status::Status;

pub(crate) async fn run(context: &mut Context) -> Result<Exit, Failure> {
    let broker = context.broker().await?;
    let response = broker.read(broker.admin().get_broker_status(GetBrokerStatusRequest {})).await?;
    let agents = match fetch::agents(&broker, false, fetch::ALL).await {
        Ok(agents) => agents,
        // Without its database the broker still reports its own status.
        Err(_) if !response.storage_ok => Vec::new(),
        Err(failure) => return Err(failure),
    };
    let status = Status::new(response, &agents, &context.out.style);
    context.out.one(&status)?;
    Ok(if status.findings.is_empty() { Exit::Ok } else { Exit::Findings })
}
