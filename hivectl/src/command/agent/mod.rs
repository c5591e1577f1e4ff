//! `hivectl agent`: one agent.

use clap::{Args, Subcommand};
use hive_core::agent::DEFAULT_TOOL_GROUPS;
use hive_core::message::OPERATOR;
use hive_proto::v1::{CreateAgentRequest, Policy, SetParentRequest};

use super::turn::order::{AFTER_HELP, Target};
use crate::connect::{Admin, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::output::note;
use crate::view;
use crate::{complete, fetch};

mod retire;
mod set_policy;
mod stop;

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Show all that is known of an agent
    Show(Show),
    /// Create an agent at run time
    Create(Create),
    Start(stop::Start),
    Stop(stop::Stop),
    /// Hand back the agent's running turn and start its harness again
    #[command(after_long_help = AFTER_HELP)]
    Restart(Target),
    /// Retire an agent: its mail is kept, its connections are closed; with --purge, only what it
    /// sent is kept
    Retire(retire::Retire),
    /// Move an agent in the tree
    SetParent(SetParent),
    SetPolicy(set_policy::SetPolicy),
}

impl Agent {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        match self {
            Self::Show(show) => show.run(context).await?,
            Self::Create(create) => create.run(context).await?,
            Self::Start(start) => start.run(context).await?,
            Self::Stop(stop) => stop.run(context).await?,
            Self::Restart(target) => target.restart(context).await?,
            Self::Retire(retire) => return retire.run(context).await,
            Self::SetParent(set_parent) => set_parent.run(context).await?,
            Self::SetPolicy(set_policy) => set_policy.run(context).await?,
        }
        Ok(Exit::Ok)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The name of the agent
    #[arg(add = complete::agents())]
    name: String,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        context.out.one(&fetch::agent::<view::agent::Agent>(&broker, self.name).await?)
    }
}

/// Create an agent at run time.
///
/// Under `hivectl up` its harness starts at once. Without it start one yourself:
/// `HIVE_SOCKET=<its socket> hive serve`.
#[derive(Args, Debug)]
pub(crate) struct Create {
    /// The name of the agent
    name: String,
    /// The parent of the agent [default: none, so that the agent answers to the operator]
    #[arg(long, value_name = "NAME", add = complete::agents())]
    parent: Option<String>,
    /// The purpose of the agent
    #[arg(long)]
    role: Option<String>,
    /// The model it runs on
    #[arg(long)]
    model: Option<String>,
    /// A tool group that it gets; may be repeated [default: messaging, inbox, meta, execution]
    #[arg(long = "tool-group", value_name = "GROUP", add = complete::tool_groups())]
    tool_groups: Vec<String>,
    /// An agent that it may send to, besides its parent; may be repeated [default: everyone]
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
        context.out.one::<view::agent::Agent>(&require(response.agent, "agent")?)?;
        note(&format!("its socket is {}", response.socket_path));
        Ok(())
    }

    /// Returns the policy, if an option names a part of it; other parts have their defaults.
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

#[derive(Args, Debug)]
pub(crate) struct SetParent {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The new parent; `operator` makes the agent a root
    #[arg(add = complete::agents_and_operator())]
    parent: String,
    /// Refuse the change if the agent no longer has this etag, which `hivectl agent show --json`
    /// prints
    #[arg(long, value_name = "ETAG")]
    etag: Option<String>,
}

impl SetParent {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let parent = if self.parent == OPERATOR { String::new() } else { self.parent };
        let etag = self.etag.unwrap_or_default();
        let request = SetParentRequest { request_id: request_id(), name: self.name, parent, etag };
        let response = broker.change(broker.admin(), request, Admin::set_parent).await?;
        context.out.one::<view::agent::Agent>(&require(response.agent, "agent")?)
    }
}
