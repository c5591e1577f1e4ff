//! `hivectl agent remove`: retire an agent.

use clap::Args;
use hive_proto::v1::RemoveAgentRequest;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::done::Done;

/// Retire an agent: its mail is kept, its leases go back, its connections are closed, its children move to its parent.
#[derive(Args, Debug)]
pub(crate) struct Remove {
    /// Its name
    #[arg(add = complete::agents())]
    name: String,
}

impl Remove {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let response = broker
            .change(|request_id| {
                let request = RemoveAgentRequest { request_id, name: self.name.clone() };
                let mut admin = broker.admin();
                async move { admin.remove_agent(request).await }
            })
            .await?;
        let sentence = match response.kept_count {
            1 => format!("{} is retired; 1 unsettled delivery is kept", self.name),
            count => format!("{} is retired; {count} unsettled deliveries are kept", self.name),
        };
        context.out.one(&Done { done: "retired", agent: Some(self.name), sentence, ..Done::default() })?;
        Ok(Exit::Ok)
    }
}
