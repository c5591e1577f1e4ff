//! The file that a unix socket made when it was bound, as the kernel knows it (`sock_diag(7)`).
//!
//! The name of a socket stays when another one is bound to the same path, so names prove nothing.
//! Invariant: an answer that is not about this socket is an error.

use std::io;
use std::os::fd::AsFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`: the type of the request and of its answer.
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR`: the type of an answer that is an error.
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `UDIAG_SHOW_VFS`: asks for the file.
const SHOW_FILE: u32 = 2;
/// `UNIX_DIAG_VFS`: the attribute with the file.
const FILE: u16 = 1;
/// Bytes of the header of a message, of a request, of an answer, and of the head of an attribute.
const HEADER: usize = 16;
const QUERY: usize = 24;
const ANSWER: usize = 16;
const ATTRIBUTE: usize = 4;

/// Returns the lower 32 bits of the inode number of a socket's file; `None` if it is not bound to a
/// file.
pub(super) fn file_inode(socket: impl AsFd) -> io::Result<Option<u32>> {
    let number = rustix::fs::fstat(socket)?.st_ino;
    let number = u32::try_from(number).map_err(|_| io::ErrorKind::InvalidData)?;
    let kernel = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&kernel, &query(number), SendFlags::empty())?;
    let mut answer = [0; 4096];
    let (length, _) = recv(&kernel, &mut answer[..], RecvFlags::empty())?;
    file_in(answer.get(..length).unwrap_or_default(), number)
}

/// The request for the file of the socket with this number.
fn query(number: u32) -> Vec<u8> {
    let mut query = Vec::with_capacity(HEADER + QUERY);
    let length = u32::try_from(HEADER + QUERY).unwrap_or(u32::MAX);
    query.extend(length.to_ne_bytes());
    query.extend([BY_FAMILY.to_ne_bytes(), REQUEST.to_ne_bytes()].concat());
    query.extend([0; 8]);
    query.extend([1, 0, 0, 0]);
    let any = u32::MAX;
    for field in [any, number, SHOW_FILE, any, any] {
        query.extend(field.to_ne_bytes());
    }
    query
}

/// Finds the file in an answer about the socket with this number.
fn file_in(answer: &[u8], number: u32) -> io::Result<Option<u32>> {
    let malformed =
        || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is not known");
    let at = |place: usize| {
        let bytes = answer.get(place..place + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let half = |place: usize| {
        let bytes = answer.get(place..place + 2)?;
        Some(u16::from_ne_bytes(bytes.try_into().ok()?))
    };
    match half(4).ok_or_else(malformed)? {
        BY_FAMILY => {}
        ERROR => {
            let code = at(HEADER).ok_or_else(malformed)?.cast_signed();
            return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
        }
        _ => return Err(malformed()),
    }
    // The number of the socket is after four bytes of family, type, state and padding.
    if at(HEADER + 4) != Some(number) {
        return Err(malformed());
    }
    let mut place = HEADER + ANSWER;
    while let (Some(length), Some(kind)) = (half(place), half(place + 2)) {
        if kind == FILE {
            return at(place + ATTRIBUTE).map(Some).ok_or_else(malformed);
        }
        // Attributes begin at multiples of four bytes.
        place += usize::from(length).max(ATTRIBUTE).next_multiple_of(4);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_knows_its_file_also_when_another_one_is_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let inode = || std::fs::symlink_metadata(&path).expect("a file").ino() & 0xffff_ffff;
        let first = UnixListener::bind(&path).expect("a socket");
        let of_first = inode();
        assert_eq!(file_inode(&first).expect("known").map(u64::from), Some(of_first));
        // The inode of a file that is gone may be used again, so it stays under another name.
        std::fs::rename(&path, dir.path().join("old")).expect("renamed");
        let second = UnixListener::bind(&path).expect("a socket");
        assert_eq!(file_inode(&first).expect("known").map(u64::from), Some(of_first));
        assert_eq!(file_inode(&second).expect("known").map(u64::from), Some(inode()));
        assert_ne!(of_first, inode());
        let (pair, _other) = UnixStream::pair().expect("a pair");
        assert_eq!(file_inode(&pair).expect("known"), None);
    }

    #[test]
    fn broken_answers_are_errors() {
        for bytes in [&[][..], &[0; 8], &[0; 40], &query(7)] {
            assert!(file_in(bytes, 8).is_err(), "{bytes:?}");
        }
        let mut refused = query(7);
        refused[4..6].copy_from_slice(&ERROR.to_ne_bytes());
        refused[HEADER..HEADER + 4].copy_from_slice(&(-2_i32).to_ne_bytes());
        let error = file_in(&refused, 7).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
