//! `hivectl drain`: end the broker in good order.

use clap::Args;
use hive_proto::v1::DrainRequest;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::done::Done;

/// Shut the broker down in good order: new work is refused, what was accepted is on disk, then its
/// process ends.
#[derive(Args, Debug)]
pub(crate) struct Drain {}

impl Drain {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let Self {} = self;
        let broker = context.broker().await?;
        // A drain has no request id: to drain twice is to drain.
        broker.read(broker.admin().drain(DrainRequest {})).await?;
        context.out.one(&Done {
            done: "draining",
            sentence: "the broker is shutting down".to_owned(),
            ..Done::default()
        })?;
        Ok(Exit::Ok)
    }
}
