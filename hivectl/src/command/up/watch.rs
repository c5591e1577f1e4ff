//! One line per agent, printed when it changes: driven by the event log, told by the agents' own records.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::command::agents;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::feed::Feed;
use crate::output::note;
use crate::output::text::visible_line;
use crate::view::agent::Agent;

/// Events come in bursts; this long a burst is gathered before the agents are read.
const BURST: Duration = Duration::from_millis(100);

/// Prints the lines until it is aborted.
pub(super) async fn run(mut context: Context) {
    if let Err(failure) = lines(&mut context).await {
        note(&format!("the state of the agents cannot be followed any more: {failure}"));
    }
}

async fn lines(context: &mut Context) -> Result<(), Failure> {
    let broker = context.broker().await?;
    let (mut feed, _) = Feed::open(context, &broker, "", None).await?;
    let mut printed = BTreeMap::new();
    loop {
        show(context, &broker, &mut printed).await?;
        // What happened does not matter: the agents are read again.
        feed.next().await?;
        let deadline = tokio::time::Instant::now() + BURST;
        while let Ok(step) = tokio::time::timeout_at(deadline, feed.next()).await {
            step?;
        }
    }
}

async fn show(context: &mut Context, broker: &Broker, printed: &mut BTreeMap<String, String>) -> Result<(), Failure> {
    let agents = match agents::list(broker, false).await {
        Ok(agents) => agents,
        // The broker restarts; the feed tells when it is back.
        Err(Failure::Refused(status)) if crate::connect::transport_was_lost(&status) => return Ok(()),
        Err(failure) => return Err(failure),
    };
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
    if agent.ready_count > 0 {
        line.push_str(&format!("  {} unread", agent.ready_count));
    }
    if agent.dead_count > 0 {
        line.push_str(&format!("  {}", style.bad(&format!("{} dead", agent.dead_count))));
    }
    if let Some(status) = &agent.status_text {
        line.push_str(&format!("  \"{}\"", visible_line(status)));
    }
    line
}
