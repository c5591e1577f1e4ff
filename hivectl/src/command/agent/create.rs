//! `hivectl agent create`: a new agent at run time.

use clap::Args;
use hive_core::agent::DEFAULT_TOOL_GROUPS;
use hive_proto::v1::{CreateAgentRequest, Policy};

use crate::complete;
use crate::connect::{Admin, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::output::note;
use crate::view::agent::Agent;

/// Create an agent at run time.
///
/// Under `hivectl up` its harness starts at once. Without it start one yourself:
/// `HIVE_SOCKET=<its socket> hive serve`.
#[derive(Args, Debug)]
pub(crate) struct Create {
    /// Its name
    name: String,
    /// Its parent [default: none, so that it answers to the operator]
    #[arg(long, value_name = "NAME", add = complete::agents())]
    parent: Option<String>,
    /// What it is for
    #[arg(long)]
    role: Option<String>,
    /// The model it runs on
    #[arg(long)]
    model: Option<String>,
    /// A tool group that it gets; may be repeated [default: messaging, inbox, meta, execution]
    #[arg(long = "tool-group", value_name = "GROUP", add = complete::tool_groups())]
    tool_groups: Vec<String>,
    /// Whom it may send to, besides its parent; may be repeated [default: everyone]
    #[arg(long = "allow", value_name = "NAME", add = complete::agents())]
    allowed_recipients: Vec<String>,
    /// A further right; may be repeated
    #[arg(long = "capability", value_name = "WORD", add = complete::capabilities())]
    capabilities: Vec<String>,
    /// Take over the name and the kept mail of a retired agent
    #[arg(long)]
    adopt: bool,
}

impl Create {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let request = CreateAgentRequest {
            request_id: request_id(),
            policy: self.policy(),
            name: self.name,
            parent: self.parent.unwrap_or_default(),
            role: self.role.unwrap_or_default(),
            model: self.model.unwrap_or_default(),
            adopt: self.adopt,
        };
        let response = broker.change(broker.admin(), request, Admin::create_agent).await?;
        context.out.one::<Agent>(&require(response.agent, "agent")?)?;
        note(&format!("its socket is {}", response.socket_path));
        Ok(())
    }

    /// The policy, if anything was said about it; what was not said is the default.
    fn policy(&self) -> Option<Policy> {
        if self.tool_groups.is_empty()
            && self.allowed_recipients.is_empty()
            && self.capabilities.is_empty()
        {
            return None;
        }
        let tool_groups = if self.tool_groups.is_empty() {
            DEFAULT_TOOL_GROUPS.map(str::to_owned).to_vec()
        } else {
            self.tool_groups.clone()
        };
        Some(Policy {
            tool_groups,
            allowed_recipients: self.allowed_recipients.clone(),
            capabilities: self.capabilities.clone(),
            ..Policy::default()
        })
    }
}
