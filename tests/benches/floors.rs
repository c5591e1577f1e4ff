//! Floors: what this machine can do at all, with nothing of Hive in between.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;

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
