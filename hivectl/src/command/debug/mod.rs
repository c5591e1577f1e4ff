//! `hivectl debug`: what helps to find a fault of Hive itself.

mod bundle;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Debug {
    Bundle(bundle::Bundle),
}

impl Debug {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        match self {
            Self::Bundle(bundle) => bundle.run(context).await,
        }
    }
}
