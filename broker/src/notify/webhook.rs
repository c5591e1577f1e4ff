//! A webhook that notifies the operator: one POST per item.

use hive_export::post::{NoPoster, PostError, Poster};

use super::{NotifyError, SetUpError, item};
use crate::engine::mail::outbox::Item;

/// The webhook of the configuration.
#[derive(Debug)]
pub(super) struct Webhook(Poster);

impl Webhook {
    /// Returns a webhook at this URL.
    pub(super) fn new(url: &str) -> Result<Self, SetUpError> {
        Ok(Self(Poster::new(url).map_err(|error| match error {
            NoPoster::Url(error) => SetUpError::Url(error),
            NoPoster::NoCertificates(error) => SetUpError::NoCertificates(error),
        })?))
    }

    /// Posts an item, and waits for the answer.
    pub(super) async fn post(&self, item: &Item) -> Result<(), NotifyError> {
        let answered = self.0.post("application/json", item::json(item).into_bytes()).await;
        let answer = answered.map_err(|error| match error {
            PostError::NotReached { host, reason } => NotifyError::NotReached { host, reason },
            PostError::NoAnswer { host, limit } => NotifyError::NoAnswer { host, limit },
        })?;
        let status = answer.status;
        if status.is_success() {
            Ok(())
        } else {
            Err(NotifyError::Refused { host: self.0.host(), status })
        }
    }
}
