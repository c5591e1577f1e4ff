//! `hivectl agent retire`: retire an agent, or purge it.

use std::time::Duration;

use clap::Args;
use hive_proto::v1::{Agent, Purge, RetireAgentRequest, RetireAgentResponse};

use crate::complete;
use crate::connect::{Admin, Broker, request_id};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::feed::Feed;
use crate::fetch;
use crate::input;
use crate::interrupt::until_interrupted;
use crate::output::note;
use crate::output::text::visible_line;
use crate::view::counted;
use crate::view::done::Done;

/// Maximum wait until directories are deleted, without --timeout.
const DELETION_PATIENCE: Duration = Duration::from_secs(60);

/// Retire an agent: its mail is kept, its leases go back, its connections are closed, its children
/// move to its parent.
///
/// With --purge only what it sent is kept. Its unsettled mail, dead letters included, is dropped.
/// The `hivectl up` that runs it deletes its directories, and its name is free. A new agent of that
/// name inherits nothing. A retired agent can be purged, too.
#[derive(Args, Debug)]
pub(crate) struct Retire {
    /// The name of the agent
    #[arg(add = complete::agents())]
    name: String,
    /// Drop its unsettled mail, delete its directories, and free its name; asks first
    #[arg(long)]
    purge: bool,
    /// Do not ask
    #[arg(long, requires = "purge")]
    yes: bool,
    /// Refuse if the agent no longer has this etag, which `hivectl agent show --json` prints
    #[arg(long, value_name = "ETAG")]
    etag: Option<String>,
}

impl Retire {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let name = visible_line(&self.name);
        let asks = self.purge && !self.yes;
        if asks && !input::is_terminal() {
            return Err(Failure::NotConfirmed {
                instead: "add --yes to do it without being asked",
            });
        }
        let broker = context.broker().await?;
        let mut etag = self.etag;
        if asks {
            if etag.is_none() {
                // The agent that is there now is the one that the question is about.
                etag = Some(fetch::agent::<Agent>(&broker, self.name.clone()).await?.etag);
            }
            let question = format!(
                "Purge {name}? Its unsettled mail is dropped and its directories are deleted."
            );
            if !input::confirm(&question).await? {
                note(&format!("{name} is left as it is"));
                return Ok(Exit::Failure);
            }
        }
        // Before the purge, so that its end cannot be missed.
        let feed =
            if self.purge { Some(Feed::open(context, &broker, "", None).await?) } else { None };
        let request = RetireAgentRequest {
            request_id: request_id(),
            name: self.name.clone(),
            purge: self.purge,
            etag: etag.unwrap_or_default(),
        };
        let response = broker.change(broker.admin(), request, Admin::retire_agent).await?;
        let RetireAgentResponse { kept_count, dropped_count, purge_id } = response;
        let (done, sentence) = match feed {
            None => (
                "retired",
                format!(
                    "{name} is retired; {} kept",
                    counted(kept_count, "unsettled delivery is", "unsettled deliveries are")
                ),
            ),
            Some(feed) => {
                let dropped = counted(dropped_count, "delivery was", "deliveries were");
                let deleted = deleted(context, &broker, feed, purge_id).await?;
                let directories = match (purge_id, deleted) {
                    (0, _) => "delete its directories yourself, if it has any",
                    (_, true) => "its directories are deleted",
                    (_, false) => {
                        "its directories are not deleted yet; the output of the launcher says why"
                    }
                };
                ("purged", format!("{name} is purged; {dropped} dropped; {directories}"))
            }
        };
        context.out.one(&Done::new(done, Some(self.name), sentence))?;
        Ok(Exit::Ok)
    }
}

/// Waits until the directories of a purged agent are deleted; whether they are.
async fn deleted(
    context: &Context,
    broker: &Broker,
    mut feed: Feed,
    purge_id: u64,
) -> Result<bool, Failure> {
    if purge_id == 0 {
        return Ok(true);
    }
    note("waiting until its directories are deleted");
    let waited = async {
        loop {
            let left = fetch::purges::<Purge>(broker, fetch::ALL).await?;
            if left.iter().all(|purge| purge.id != purge_id) {
                return Ok(true);
            }
            // What happened does not matter: the list is read again.
            feed.next().await?;
        }
    };
    let patience = context.patience.unwrap_or(DELETION_PATIENCE);
    match until_interrupted(tokio::time::timeout(patience, waited)).await {
        Some(Ok(deleted)) => deleted,
        Some(Err(_)) | None => Ok(false),
    }
}
