//! `hivectl topology`: the tree of agents, with their states.

use super::loose_ends;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::topology::{drawn, roots};

pub(crate) async fn run(context: &mut Context) -> Result<(), Failure> {
    let broker = context.broker().await?;
    let agents = fetch::agents(&broker, false, fetch::ALL).await?;
    let loose_ends = loose_ends::counts(&broker).await?;
    let roots = roots(agents, &loose_ends, &context.out.style);
    if context.out.json {
        context.out.each(&roots)?;
    } else {
        let tree = drawn(&roots, &loose_ends, &context.out.style);
        context.out.line(&tree)?;
    }
    Ok(())
}
