//! `hivectl reminders cancel`: withdraw pending reminders.

use clap::Args;
use hive_proto::v1::CancelReminderRequest;

use crate::command::each::change_each;
use crate::complete;
use crate::connect::{Reminders, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::view::reminder::Reminder;

/// Withdraw pending reminders, whoever set them.
#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The reminders
    #[arg(required = true, value_name = "ID", add = complete::reminders())]
    ids: Vec<u64>,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        change_each(context, self.ids, async |reminder_id| {
            let request = CancelReminderRequest { request_id: request_id(), reminder_id };
            let response =
                broker.change(broker.reminders(), request, Reminders::cancel_reminder).await?;
            Ok(Some(require::<_, Reminder>(response.reminder, "reminder")?))
        })
        .await
    }
}
