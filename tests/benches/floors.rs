//! Floors: what this machine can do at all, with nothing of Hive in between.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::sample::{Sample, micros};

/// Bytes of one message on the floors' wires, about as many as a short message of Hive has with its
/// frame.
const MESSAGE: [u8; 256] = [7; 256];

/// One byte block there and back over a unix socket, in microseconds.
pub(crate) fn round_trip(dir: &Path, count: usize) -> anyhow::Result<Sample> {
    let path = dir.join("echo");
    drop(std::fs::remove_file(&path));
    let listener = UnixListener::bind(&path)?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut conn, _) = listener.accept()?;
        let mut buffer = MESSAGE;
        while conn.read_exact(&mut buffer).is_ok() {
            conn.write_all(&buffer)?;
        }
        Ok(())
    });
    let mut conn = UnixStream::connect(&path)?;
    let mut buffer = MESSAGE;
    let mut sample = Sample::default();
    for _ in 0..count {
        let start = Instant::now();
        conn.write_all(&buffer)?;
        conn.read_exact(&mut buffer)?;
        sample.push(micros(start.elapsed()));
    }
    drop(conn);
    echo.join().map_err(|_| anyhow::anyhow!("the echo panicked"))??;
    Ok(sample)
}

/// An append of 4 KiB and its sync, in microseconds.
pub(crate) fn append_sync(dir: &Path, count: usize) -> anyhow::Result<Sample> {
    let mut file = File::create(dir.join("append"))?;
    let block = [7u8; 4096];
    let mut sample = Sample::default();
    for _ in 0..count {
        let start = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        sample.push(micros(start.elapsed()));
    }
    Ok(sample)
}

/// Messages a second that producers with one outstanding send each get accepted by a thread that
/// appends what waits and syncs it.
pub(crate) fn group_commit(dir: &Path, producers: usize, span: Duration) -> anyhow::Result<f64> {
    let path = dir.join("group");
    drop(std::fs::remove_file(&path));
    let listener = UnixListener::bind(&path)?;
    let (queue, waiting) = mpsc::channel::<UnixStream>();
    let mut file = File::create(dir.join("log"))?;
    let committer = std::thread::spawn(move || -> std::io::Result<()> {
        while let Ok(first) = waiting.recv() {
            let mut batch = vec![first];
            batch.extend(waiting.try_iter());
            for _ in &batch {
                file.write_all(&MESSAGE)?;
            }
            file.sync_data()?;
            for mut conn in batch {
                // A producer that has had enough is gone.
                if conn.write_all(&[1]).is_err() {
                    continue;
                }
            }
        }
        Ok(())
    });
    let until = Instant::now() + span;
    let clients: Vec<_> = (0..producers)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || -> std::io::Result<u64> {
                let mut conn = UnixStream::connect(path)?;
                let mut count = 0;
                while Instant::now() < until {
                    conn.write_all(&MESSAGE)?;
                    conn.read_exact(&mut [0])?;
                    count += 1;
                }
                Ok(count)
            })
        })
        .collect();
    let mut readers = Vec::new();
    for _ in 0..producers {
        let (mut conn, _) = listener.accept()?;
        let queue = queue.clone();
        readers.push(std::thread::spawn(move || -> std::io::Result<()> {
            let mut buffer = MESSAGE;
            while conn.read_exact(&mut buffer).is_ok() {
                if queue.send(conn.try_clone()?).is_err() {
                    break;
                }
            }
            Ok(())
        }));
    }
    drop(queue);
    let mut accepted = 0;
    for client in clients {
        accepted += client.join().map_err(|_| anyhow::anyhow!("a producer panicked"))??;
    }
    for reader in readers {
        reader.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??;
    }
    committer.join().map_err(|_| anyhow::anyhow!("the committer panicked"))??;
    #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
    Ok(accepted as f64 / span.as_secs_f64())
}

/// The server that `w5` compares a start with: it listens, answers one byte, and ends.
pub(crate) fn echo_server() -> anyhow::Result<()> {
    let path = std::env::var_os("ECHO_SOCKET")
        .ok_or_else(|| anyhow::anyhow!("ECHO_SOCKET names the socket"))?;
    let listener = UnixListener::bind(path)?;
    let (mut conn, _) = listener.accept()?;
    let mut byte = [0];
    conn.read_exact(&mut byte)?;
    Ok(conn.write_all(&byte)?)
}
