//! `hivectl agent set-parent`: move an agent in the tree.

use clap::Args;
use hive_core::message::OPERATOR;
use hive_proto::v1::SetParentRequest;

use crate::complete;
use crate::connect::{Admin, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::view::agent::Agent;

/// Move an agent in the tree.
#[derive(Args, Debug)]
pub(crate) struct SetParent {
    /// Which agent
    #[arg(add = complete::agents())]
    name: String,
    /// Its new parent; `operator` makes it a root
    #[arg(add = complete::agents_and_operator())]
    parent: String,
}

impl SetParent {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let parent = if self.parent == OPERATOR { String::new() } else { self.parent };
        let request = SetParentRequest { request_id: request_id(), name: self.name, parent };
        let response = broker.change(broker.admin(), request, Admin::set_parent).await?;
        context.out.one::<Agent>(&require(response.agent, "agent")?)
    }
}
