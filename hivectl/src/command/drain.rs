//! `hivectl drain`: shut the broker down.

use hive_proto::v1::DrainRequest;

use crate::context::Context;
use crate::error::Failure;
use crate::view::done::Done;

pub(crate) async fn run(context: &mut Context) -> Result<(), Failure> {
    let broker = context.broker().await?;
    // A drain has no request id, because a second one changes nothing.
    broker.read(broker.admin().drain(DrainRequest {})).await?;
    context.out.one(&Done::new("draining", None, "the broker is shutting down".to_owned()))
}
