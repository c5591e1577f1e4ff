//! `hivectl topology`: the tree of agents, with what they do.

use clap::Args;

use super::loose_ends;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::fetch;
use crate::view::topology::{drawn, roots};

/// The tree of agents, with state, unread mail, loose ends and status text.
#[derive(Args, Debug)]
pub(crate) struct Topology {}

impl Topology {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let Self {} = self;
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
        Ok(Exit::Ok)
    }
}
