//! Sending a backup, piece by piece, as fast as its reader takes it.
//!
//! Invariant: the pieces are the file from its beginning, without a gap; a reader that got fewer
//! bytes than `total_bytes` has no backup.

use hive_proto::v1;
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::engine::Refusal;
use crate::engine::operator::backup::Backup;
use crate::rpc::Rpc;
use crate::spawn::spawn;

/// Bytes of a piece.
const PIECE_BYTES: usize = 256 * 1024;
/// Pieces that wait for the connection.
const PIECES_AHEAD: usize = 2;

type Piece = Result<v1::BackupResponse, Status>;

impl Rpc {
    /// Sends a backup until its end, its reader disconnects, or the broker drains.
    pub(in crate::rpc) fn in_pieces(&self, backup: Backup) -> ReceiverStream<Piece> {
        let (out, stream) = mpsc::channel(PIECES_AHEAD);
        let draining = self.engine.draining().clone();
        spawn(&self.streams, async move {
            tokio::select! {
                () = send(backup, &out) => {}
                // If the stream is full, it ends short of `total_bytes`, which is a failure too.
                () = draining.cancelled() => drop(out.try_send(Err(Refusal::Draining.into()))),
            }
        });
        ReceiverStream::new(stream)
    }
}

async fn send(mut backup: Backup, out: &mpsc::Sender<Piece>) {
    loop {
        let mut chunk = Vec::with_capacity(PIECE_BYTES);
        let mut next = (&mut backup.file).take(PIECE_BYTES as u64);
        let piece = match next.read_to_end(&mut chunk).await {
            Ok(0) => return,
            Ok(_) => Ok(v1::BackupResponse { chunk, total_bytes: backup.bytes }),
            Err(error) => {
                tracing::warn!(%error, "a backup could not be read");
                Err(Refusal::BackupUnread(error).into())
            }
        };
        let failed = piece.is_err();
        if out.send(piece).await.is_err() || failed {
            return;
        }
    }
}
