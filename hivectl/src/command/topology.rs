//! `hivectl topology`: the tree of agents, with what they do.

use clap::Args;

use super::agents;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::topology::{drawn, roots};

/// The tree of agents, with state, unread mail and status text.
#[derive(Args, Debug)]
pub(crate) struct Topology {}

impl Topology {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let Self {} = self;
        let agents = agents::list(&context.broker().await?, false).await?;
        let roots = roots(agents, &context.out.style);
        if context.out.json {
            context.out.each(&roots)?;
        } else {
            let tree = drawn(&roots, &context.out.style);
            context.out.line(&tree)?;
        }
        Ok(Exit::Ok)
    }
}
