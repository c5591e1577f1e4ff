//! `hivectl agent set-policy`: change what an agent may do.
//!
//! Invariant: only fields that the command line names change; the request lists them.

use std::fmt::Display;
use std::str::FromStr;

use clap::{ArgGroup, Args};
use hive_proto::v1::{Policy, SetPolicyRequest};
use prost_types::FieldMask;

use crate::complete;
use crate::connect::{Admin, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::view::agent::Agent;

/// The word that resets a field to its default.
const DEFAULT: &str = "default";

/// Change what an agent may do, from its next call on.
///
/// The tools that it is offered change with its next turn. Fields that no option names stay as they
/// are. `default` as a tool group or a number resets that field to its default; for a number that
/// is the hive's limit. An option replaces a whole list. A script that reads a list and adds to it
/// passes the etag that it has read, so that it undoes no change of others.
#[derive(Args, Debug)]
#[command(override_usage = "hivectl agent set-policy [OPTIONS] <NAME>")]
#[command(group = ArgGroup::new("change").required(true).multiple(true).args([
    "tool_groups", "allowed_recipients", "allow_everyone", "capabilities", "no_capabilities", "sends_per_minute", "questions_open",
    "reminders_pending", "grants", "no_grants", "children", "schedules", "stored_bytes",
]))]
pub(crate) struct SetPolicy {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// A tool group that the agent gets, in place of its present ones; may be repeated. Groups:
    /// messaging, inbox, meta, execution, web_tools, lifecycle, approvals, diagnostics,
    /// scheduling
    #[arg(long = "tool-group", value_name = "GROUP", add = complete::tool_groups_or_default())]
    tool_groups: Vec<String>,
    /// An agent that it may send to and ask, besides its parent, in place of the present ones; may
    /// be repeated
    #[arg(long = "allow", value_name = "NAME", add = complete::agents())]
    allowed_recipients: Vec<String>,
    /// Let the agent send to everyone; the default
    #[arg(long, conflicts_with = "allowed_recipients")]
    allow_everyone: bool,
    /// A further right, in place of its present ones; may be repeated. `query_agent_state` lets it
    /// read the loose ends of all agents, `manage_subtree` start, stop and read the
    /// logs of all agents below it; `read_host_journal` lets it read the journal of units that
    /// hive.toml names
    #[arg(long = "capability", value_name = "WORD", add = complete::capabilities())]
    capabilities: Vec<String>,
    /// Give the agent no further rights; the default
    #[arg(long, conflicts_with = "capabilities")]
    no_capabilities: bool,
    /// Messages, questions and reminders that it may send per minute, at least 1
    #[arg(long, value_name = "COUNT")]
    sends_per_minute: Option<Quota<u32>>,
    /// Open questions that it may have asked, at least 1
    #[arg(long, value_name = "COUNT")]
    questions_open: Option<Quota<u32>>,
    /// Pending reminders that it may have, at least 1
    #[arg(long, value_name = "COUNT")]
    reminders_pending: Option<Quota<u32>>,
    /// What it may do without asking you: `create_agent`, `own_schedules`, or `action:NAME` for an
    /// action of hive.toml; may be repeated, and replaces the grants
    #[arg(long = "grant", value_name = "GRANT", add = complete::grants())]
    grants: Vec<String>,
    /// Take all grants away
    #[arg(long, conflicts_with = "grants")]
    no_grants: bool,
    /// Agents below it that it may create by a grant, at least 1
    #[arg(long, value_name = "COUNT")]
    children: Option<Quota<u32>>,
    /// Schedules of its own that have not ended, at least 1
    #[arg(long, value_name = "COUNT")]
    schedules: Option<Quota<u32>>,
    /// Bytes of unsettled bodies that it may have stored, at least 1
    #[arg(long, value_name = "BYTES")]
    stored_bytes: Option<Quota<u64>>,
    /// Refuse the change if the policy no longer has this etag, the `policy.etag` that `hivectl
    /// agent show --json` prints
    #[arg(long, value_name = "ETAG")]
    etag: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quota<N>(Option<N>);

impl<N: FromStr<Err: Display>> FromStr for Quota<N> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == DEFAULT {
            return Ok(Self(None));
        }
        text.parse()
            .map(|number| Self(Some(number)))
            .map_err(|error: N::Err| format!("give a number or `{DEFAULT}`: {error}"))
    }
}

impl SetPolicy {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let (policy, paths) = self.change();
        let request = SetPolicyRequest {
            request_id: request_id(),
            name: self.name,
            policy: Some(policy),
            update_mask: Some(FieldMask { paths }),
        };
        let response = broker.change(broker.admin(), request, Admin::set_policy).await?;
        context.out.one_as(&require(response.agent, "agent")?, Agent::policy)
    }

    /// Returns the new values, and the names of the fields that change.
    fn change(&self) -> (Policy, Vec<String>) {
        let mut paths = Vec::new();
        let mut changes = |path: &str, named: bool| {
            if named {
                paths.push(path.to_owned());
            }
        };
        changes("tool_groups", !self.tool_groups.is_empty());
        changes("allowed_recipients", self.allow_everyone || !self.allowed_recipients.is_empty());
        changes("capabilities", self.no_capabilities || !self.capabilities.is_empty());
        changes("sends_per_minute_max", self.sends_per_minute.is_some());
        changes("sender_stored_bytes_max", self.stored_bytes.is_some());
        changes("questions_open_max", self.questions_open.is_some());
        changes("reminders_pending_max", self.reminders_pending.is_some());
        changes("grants", self.no_grants || !self.grants.is_empty());
        changes("children_max", self.children.is_some());
        changes("schedules_max", self.schedules.is_some());
        let policy = Policy {
            // None are the default ones; an agent may be called `default`, but no group is.
            tool_groups: if self.tool_groups == [DEFAULT] {
                Vec::new()
            } else {
                self.tool_groups.clone()
            },
            allowed_recipients: self.allowed_recipients.clone(),
            capabilities: self.capabilities.clone(),
            sends_per_minute_max: number(self.sends_per_minute),
            sender_stored_bytes_max: number(self.stored_bytes),
            questions_open_max: number(self.questions_open),
            reminders_pending_max: number(self.reminders_pending),
            grants: self.grants.clone(),
            children_max: number(self.children),
            schedules_max: number(self.schedules),
            etag: self.etag.clone().unwrap_or_default(),
        };
        (policy, paths)
    }
}

fn number<N>(quota: Option<Quota<N>>) -> Option<N> {
    quota.and_then(|Quota(number)| number)
}
