//! `hivectl reminders cancel`: withdraw pending reminders.

use clap::Args;
use hive_proto::v1::CancelReminderRequest;

use crate::complete;
use crate::connect::{Broker, Reminders, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::reminder::Reminder;

/// Withdraw pending reminders, whoever set them.
#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The reminders
    #[arg(required = true, value_name = "ID", add = complete::reminders())]
    ids: Vec<u64>,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let mut cancelled = Vec::with_capacity(self.ids.len());
        let ended = self.cancel(&broker, &mut cancelled).await;
        context.out.outcome(&cancelled, ended)?;
        Ok(Exit::Ok)
    }

    async fn cancel(self, broker: &Broker, cancelled: &mut Vec<Reminder>) -> Result<(), Failure> {
        for reminder_id in self.ids {
            let request = CancelReminderRequest { request_id: request_id(), reminder_id };
            let response =
                broker.change(broker.reminders(), request, Reminders::cancel_reminder).await?;
            cancelled.push(require(response.reminder, "reminder")?);
        }
        Ok(())
    }
}
