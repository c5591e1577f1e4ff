//! `hivectl backup`: a copy of the database of a running broker.
//!
//! What it is not: an archive. One call makes one file; the caller decides how many to keep.

mod error;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use hive_proto::v1::{BackupRequest, BackupResponse};
use tonic::Streaming;

pub(crate) use self::error::BackupError;

use crate::connect::patiently;
use crate::context::Context;
use crate::error::Failure;
use crate::interrupt::until_interrupted;
use crate::new_file::Unfinished;
use crate::output::note;
use crate::output::progress::Progress;
use crate::view::backup::Backup as Made;

/// Copy the database while the broker runs, into one file.
///
/// The copy holds everything that was accepted before the call. Sending and receiving go on while
/// it is made. The broker first makes it beside its database, so that disk needs room for it. The
/// file is private (0600), and it is either whole or absent. `hivectl restore` puts it in place of
/// a database. Live turn output is not part of it, and the search index is built again.
#[derive(Args, Debug)]
pub(crate) struct Backup {
    /// The file to write; `-` for stdout
    path: PathBuf,
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
}

impl Backup {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let begin = Instant::now();
        if self.path.as_os_str() == "-" {
            return self.to_stdout(context).await;
        }
        let work = async {
            let mut file = Unfinished::begin(&self.path, self.force).map_err(BackupError::from)?;
            let mut pieces = Pieces::ask(context).await?;
            while let Some(chunk) = pieces.next().await? {
                file.write(&chunk).map_err(BackupError::from)?;
            }
            file.finish().map_err(BackupError::from)?;
            Ok::<_, Failure>(pieces.bytes)
        };
        let bytes =
            until_interrupted(work).await.unwrap_or(Err(BackupError::Interrupted.into()))?;
        context.out.one(&Made::new(&self.path, bytes, begin.elapsed()))?;
        if !context.out.json {
            note(HOW_TO_RESTORE);
        }
        Ok(())
    }

    async fn to_stdout(&self, context: &mut Context) -> Result<(), Failure> {
        if context.out.json {
            return Err(BackupError::NoRoomForJson.into());
        }
        if context.out.style.terminal {
            return Err(BackupError::Terminal.into());
        }
        let work = async {
            let mut pieces = Pieces::ask(context).await?;
            while let Some(chunk) = pieces.next().await? {
                // Without a reader there is no backup, so a closed pipe is an error here.
                let unwritable = |source| BackupError::Unwritable {
                    path: Path::new("stdout").to_path_buf(),
                    source,
                };
                context.out.bytes(&chunk).map_err(unwritable)?;
            }
            Ok::<_, Failure>(())
        };
        until_interrupted(work).await.unwrap_or(Err(BackupError::Interrupted.into()))?;
        note(HOW_TO_RESTORE);
        Ok(())
    }
}

const HOW_TO_RESTORE: &str = "to restore: stop hived, run `hivectl restore FILE` with the --config or --state-dir of hived, and start hived";

struct Pieces {
    stream: Streaming<BackupResponse>,
    patience: Option<Duration>,
    progress: Progress,
    bytes: u64,
    total: u64,
}

impl Pieces {
    /// Asks the broker for a backup. It answers when the copy is made, which takes as long as the
    /// database is large.
    async fn ask(context: &Context) -> Result<Self, Failure> {
        let broker = context.broker().await?;
        let progress = Progress::begin("the broker copies its database ...");
        let patience = context.patience;
        let stream =
            patiently(patience, broker.admin().backup(BackupRequest {})).await??.into_inner();
        Ok(Self { stream, patience, progress, bytes: 0, total: 0 })
    }

    /// Returns the next piece; `None` once all of it came.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(BackupResponse { chunk, total_bytes }) =
            patiently(self.patience, self.stream.message()).await??
        else {
            let Self { bytes, total, .. } = *self;
            let whole = bytes == total && total > 0;
            return if whole {
                Ok(None)
            } else {
                Err(BackupError::Incomplete { bytes, total }.into())
            };
        };
        (self.bytes, self.total) = (self.bytes + chunk.len() as u64, total_bytes);
        self.progress.show(&format!(
            "{} of {} MiB",
            self.bytes >> 20,
            self.total.div_ceil(1 << 20)
        ));
        Ok(Some(chunk))
    }
}
