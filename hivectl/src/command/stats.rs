//! `hivectl stats`: the turns of the last time in numbers.

use std::time::Duration;

use clap::Args;
use hive_proto::v1::GetTurnStatsRequest;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::span::{span, wire};
use crate::view::turn_stats::TurnStats;

const AFTER_HELP: &str = "\
Examples:
  hivectl stats                     who did what in the last 24 hours, and what it cost
  hivectl stats ada --window 7d     ada's week: outcomes, durations, tools, what woke it
  hivectl stats --json | jq .total.usage.cost_micro_usd";

/// Outcomes and cost of turns: a table of all agents, or all about one.
///
/// Only ended turns count. For one agent it shows outcomes, kinds, durations, tokens and cost, the
/// tools that were called, what woke it, and turns and cost over time. Turns that the hive no
/// longer keeps are not counted.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Stats {
    /// The agent [default: all agents]
    #[arg(add = complete::agents())]
    agent: Option<String>,
    /// Length of the window up to now, as 90m, 24h or 7d; at most 366d
    #[arg(long, value_name = "SPAN", default_value = "24h", value_parser = span)]
    window: Duration,
}

impl Stats {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let Self { agent, window } = self;
        let broker = context.broker().await?;
        let request = GetTurnStatsRequest {
            agent: agent.clone().unwrap_or_default(),
            window: Some(wire(window)),
        };
        let response = broker.read(broker.turns().get_turn_stats(request)).await?;
        context.out.one(&TurnStats::new(agent, response))
    }
}
