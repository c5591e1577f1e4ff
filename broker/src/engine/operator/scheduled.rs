//! Backups of a schedule, and mail to the operator if they fail.
//!
//! The time of the last backup is in its name, so a restart neither forgets one that is due nor
//! makes one too many. Invariant: the operator gets one notice for each cause of a failure, and one
//! when it has ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hive_core::message::{OPERATOR, SystemKind};
use hive_core::time::WallTime;
use tokio_util::sync::CancellationToken;

use crate::engine::background::BACKUP;
use crate::engine::mail::notice::{self, Notice};
use crate::engine::mail::text::quoted;
use crate::engine::{Engine, Refusal};
use crate::store::archive::{self, ArchiveError};
use crate::store::backup::CopyError;
use crate::store::{AgentKey, message};

/// The subject of the notices.
const SUBJECT: &str = "backup";
/// The text of the notice that ends a failure.
const WORKS: &str = "Backups are made again.";
/// Longest pause after a failure.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(600);
/// Pause while another backup is made.
const OTHER_PAUSE: Duration = Duration::from_secs(1);

/// The backups that the broker makes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backups {
    /// Time from one to the next.
    pub every: Duration,
    /// How many are kept.
    pub keep: u32,
    /// The directory in which they are kept.
    pub dir: PathBuf,
}

impl Engine {
    /// Makes a backup if one is due. Returns when to call this again; `None` once `stop` is
    /// cancelled.
    pub async fn make_due_backup(
        &self,
        backups: &Backups,
        stop: &CancellationToken,
    ) -> Option<WallTime> {
        match self.make_if_due(backups, stop).await {
            Ok(next) => {
                self.task_succeeded(BACKUP);
                Some(next)
            }
            Err(ArchiveError::Copy(CopyError::Stopped)) => None,
            Err(ArchiveError::Copy(CopyError::UnderWay)) => {
                Some(self.clock.now().wall.after(OTHER_PAUSE))
            }
            Err(error) => {
                // The notice first: the failure is shown when the notice is there.
                self.backup_failed(&error).await;
                self.task_failed(BACKUP, &error);
                Some(self.clock.now().wall.after(backups.every.min(RETRY_PAUSE_MAX)))
            }
        }
    }

    async fn make_if_due(
        &self,
        backups: &Backups,
        stop: &CancellationToken,
    ) -> Result<WallTime, ArchiveError> {
        let now = self.clock.now().wall;
        let (dir, keep) = (backups.dir.clone(), backups.keep);
        let look = move || {
            archive::remove_leftovers(&dir);
            // One from the future is of a clock that was set back since.
            let last = archive::list(&dir)?.into_iter().rfind(|(time, _)| *time <= now);
            // Again, so that old ones that stay are a failure until they are gone.
            archive::prune(&dir, keep, last.as_ref().map(|(_, path)| path.as_path()))?;
            Ok::<_, ArchiveError>(last.map(|(time, _)| time))
        };
        let last = self.store.blocking(look).await.map_err(CopyError::Store)??;
        let due = last.map_or(now, |last| last.after(backups.every));
        if due > now {
            return Ok(due);
        }
        let path = self.store.archive(&backups.dir, backups.keep, stop.clone()).await?;
        tracing::info!(path = %path.display(), "a backup was made");
        self.backup_succeeded().await;
        Ok(now.after(backups.every))
    }

    /// Notifies the operator of a failure, unless the last notice says the same.
    async fn backup_failed(&self, error: &ArchiveError) {
        let body = format!(
            "A backup of the schedule failed; it is tried again, and earlier backups are kept. The error is:\n\n{}",
            quoted(&error.to_string())
        );
        // Figures, such as the room on a disk, are no other cause.
        let cause = |text: &str| text.replace(|char: char| char.is_ascii_digit(), "");
        let is_news =
            move |last: Option<&str>, body: &str| last.map(cause).as_deref() != Some(&*cause(body));
        self.notify_about_backups(body, is_news).await;
    }

    /// Notifies the operator that backups work again, if the last notice said that they do not.
    async fn backup_succeeded(&self) {
        let is_news = |last: Option<&str>, body: &str| last.is_some_and(|last| last != body);
        self.notify_about_backups(WORKS.to_owned(), is_news).await;
    }

    async fn notify_about_backups(
        &self,
        body: String,
        is_news: impl FnOnce(Option<&str>, &str) -> bool + Send + 'static,
    ) {
        let limits = Arc::clone(&self.limits);
        let sent = self.store.write(move |tx| {
            let notice = Notice::about(OPERATOR, AgentKey::OPERATOR, SystemKind::Problem, &body);
            let notice = Notice { subject: Some(SUBJECT), ..notice };
            let last = message::last_notice(tx, notice.to, &notice.key().0)?;
            if is_news(last.as_ref().map(|(_, sent)| sent.as_str()), &body) {
                notice::send(tx, &limits, notice)?;
            }
            Ok::<_, Refusal>(())
        });
        if let Err(error) = sent.await {
            // The status of the task has the failure, too.
            tracing::warn!(%error, "the operator was not notified about the backups");
        }
    }
}
