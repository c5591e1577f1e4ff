//! A line for each agent, printed when the agent changes.
//!
//! Driven by the event log, read from the agents' own records.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::context::Context;
use crate::error::Failure;
use crate::feed::Feed;
use crate::fetch;
use crate::output::note;
use crate::output::text::visible_line;
use crate::view::agent::Agent;

/// Events come in bursts; this long a burst is gathered before the agents are read.
const BURST: Duration = Duration::from_millis(100);
/// Pause before the agents are followed again after a failure.
const AGAIN: Duration = Duration::from_secs(1);

/// Prints the lines, until it is aborted.
pub(crate) async fn run(mut context: Context) {
    let mut printed = BTreeMap::new();
    loop {
        if let Err(failure) = follow(&mut context, &mut printed).await {
            note(&format!("the agents cannot be followed; trying again: {failure}"));
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn follow(
    context: &mut Context,
    printed: &mut BTreeMap<String, String>,
) -> Result<(), Failure> {
    let broker = context.broker().await?;
    let mut feed = Feed::open(context, &broker, "", None).await?;
    loop {
        let Some(agents) = unless_away(fetch::agents(&broker, false, fetch::ALL).await)? else {
            // The event that led here arrives only once, so the feed does not lead here again.
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        show(context, agents, printed)?;
        // What happened does not matter: the agents are read again.
        feed.next().await?;
        let deadline = tokio::time::Instant::now() + BURST;
        while let Ok(step) = tokio::time::timeout_at(deadline, feed.next()).await {
            step?;
        }
    }
}

/// Returns `None` if the broker restarts.
fn unless_away<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Failure::Refused(status)) if hive_proto::status::is_of_connection(&status) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn show(
    context: &mut Context,
    agents: Vec<Agent>,
    printed: &mut BTreeMap<String, String>,
) -> Result<(), Failure> {
    printed.retain(|name, _| agents.iter().any(|agent| agent.name == *name));
    let width = agents.iter().map(|agent| agent.name.len()).max().unwrap_or(0);
    for agent in agents {
        let state = line(&agent, context);
        if printed.get(&agent.name) == Some(&state) {
            continue;
        }
        let now = context.out.style.clock();
        context.out.line(&format!("{now}  {:width$}  {state}", visible_line(&agent.name)))?;
        printed.insert(agent.name, state);
    }
    Ok(())
}

fn line(agent: &Agent, context: &Context) -> String {
    let style = &context.out.style;
    let mut line = agent.state_cell(style);
    if let Some(park) = &agent.park {
        line.push_str(&format!("  {}", style.bad(&park.line(style))));
    }
    line.push_str(&agent.news("", style));
    line
}
