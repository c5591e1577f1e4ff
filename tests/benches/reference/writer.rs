//! The writer: one thread that owns the database and commits what is queued, together.
//!
//! Invariant: nothing is answered, and nothing enters an inbox, before the commit of its batch.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::inbox::{Inbox, Inboxes};
use crate::wire::{Message, SendRequest};

/// Maximum jobs of one commit.
const BATCH: usize = 1024;

/// What the thread does.
#[derive(Debug)]
pub(crate) enum Job {
    /// Inserts a message; the answer is its id.
    Send { request: SendRequest, inbox: Arc<Inbox>, answer: oneshot::Sender<u64> },
    /// Deletes messages.
    Ack { ids: Vec<u64>, answer: oneshot::Sender<()> },
}

/// Opens the database, puts its rows into the inboxes, and starts the thread. Called in a runtime.
pub(crate) fn start(path: &Path, inboxes: &Inboxes) -> anyhow::Result<Sender<Job>> {
    let conn = Connection::open(path)?;
    // No other process has the file, so the log needs no locks and no shared memory.
    conn.pragma_update_and_check(None, "locking_mode", "exclusive", |_| Ok(()))?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "cache_size", -4096)?;
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY, inbox TEXT NOT NULL, body BLOB NOT NULL)",
    )?;
    let last = load(&conn, inboxes)?;
    let ((queue, jobs), (committed, batches)) = (channel(), unbounded_channel());
    tokio::spawn(answer(batches));
    std::thread::Builder::new().name("writer".to_owned()).spawn(move || {
        if let Err(error) = write(&conn, &jobs, &committed, last) {
            // The answers of the batch are dropped, and all later ones: the callers get an error.
            drop(std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{error}\n")));
        }
    })?;
    Ok(queue)
}

/// Puts the stored messages into their inboxes; returns the last id.
fn load(conn: &Connection, inboxes: &Inboxes) -> anyhow::Result<u64> {
    let mut last = 0;
    let mut rows = conn.prepare("SELECT id, inbox, body FROM message ORDER BY id")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        last = u64::try_from(id)?;
        let body: Vec<u8> = row.get(2)?;
        let name = row.get_ref(1)?.as_str()?;
        inboxes.of(name).push(Message { id: last, body: body.into() });
    }
    Ok(last)
}

/// An answer that waits for the commit.
enum Done {
    Sent { message: Message, inbox: Arc<Inbox>, answer: oneshot::Sender<u64> },
    Acked(oneshot::Sender<()>),
}

/// Commits what is queued, one batch after the other.
fn write(
    conn: &Connection,
    jobs: &Receiver<Job>,
    committed: &UnboundedSender<Vec<Done>>,
    mut last: u64,
) -> anyhow::Result<()> {
    let mut begin = conn.prepare("BEGIN IMMEDIATE")?;
    let mut commit = conn.prepare("COMMIT")?;
    let mut insert = conn.prepare("INSERT INTO message (id, inbox, body) VALUES (?1, ?2, ?3)")?;
    let mut delete = conn.prepare("DELETE FROM message WHERE id = ?1")?;
    while let Ok(first) = jobs.recv() {
        let mut done = Vec::new();
        begin.execute([])?;
        for job in std::iter::once(first).chain(jobs.try_iter()).take(BATCH) {
            match job {
                Job::Send { request: SendRequest { to, body }, inbox, answer } => {
                    last += 1;
                    insert.execute((i64::try_from(last)?, to, &*body))?;
                    let message = Message { id: last, body };
                    done.push(Done::Sent { message, inbox, answer });
                }
                Job::Ack { ids, answer } => {
                    for id in ids {
                        delete.execute([i64::try_from(id)?])?;
                    }
                    done.push(Done::Acked(answer));
                }
            }
        }
        commit.execute([])?;
        if committed.send(done).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Answers committed batches. One task does this, because to wake it once is cheaper for the thread
/// than to wake the tasks of all callers.
async fn answer(mut batches: UnboundedReceiver<Vec<Done>>) {
    while let Some(batch) = batches.recv().await {
        for done in batch {
            // A caller that is gone needs no answer.
            match done {
                Done::Sent { message, inbox, answer } => {
                    let _ = answer.send(message.id);
                    inbox.push(message);
                }
                Done::Acked(answer) => {
                    let _ = answer.send(());
                }
            }
        }
    }
}
