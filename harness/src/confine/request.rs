//! The request of `hive confine` to the harness: a command line, an environment, and the
//! descriptors of the standard streams.
//!
//! ```text
//!   length of the rest: u32, with the descriptors | count of words: u32 | word NUL ... | NAME=VALUE NUL ...
//! ```
//!
//! Invariant: a request is read completely or not at all, and received descriptors are closed on
//! exec.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;

/// Longest request, in bytes: Linux's limit for arguments and environment of one program.
pub const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Number of standard streams.
const STREAMS: usize = 3;
const LENGTH_BYTES: usize = 4;

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub command: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
}

impl Request {
    /// Sends the request, with the standard streams of the program.
    pub async fn send(
        &self,
        stream: &mut UnixStream,
        streams: [BorrowedFd<'_>; STREAMS],
    ) -> io::Result<()> {
        let text = self.encode();
        let length = u32::try_from(text.len()).ok().filter(|_| text.len() <= REQUEST_BYTES_MAX);
        let length = length
            .ok_or_else(|| invalid("the arguments and the environment are too long"))?
            .to_le_bytes();
        let sent = stream.async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            beside.push(SendAncillaryMessage::ScmRights(&streams));
            Ok(sendmsg(&*stream, &[IoSlice::new(&length)], &mut beside, SendFlags::NOSIGNAL)?)
        });
        if sent.await? != LENGTH_BYTES {
            return Err(invalid("the length was cut"));
        }
        stream.write_all(&text).await
    }

    /// Receives a request, with the standard streams of the program.
    pub async fn receive(stream: &mut UnixStream) -> io::Result<(Self, [OwnedFd; STREAMS])> {
        let mut length = [0; LENGTH_BYTES];
        let mut streams: Vec<OwnedFd> = Vec::new();
        let received = stream.async_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let received = recvmsg(
                &*stream,
                &mut [IoSliceMut::new(&mut length)],
                &mut beside,
                RecvFlags::CMSG_CLOEXEC,
            )?;
            for message in beside.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    streams.extend(descriptors);
                }
            }
            Ok(received.bytes)
        });
        if received.await? != LENGTH_BYTES {
            return Err(invalid("there is no length"));
        }
        let streams = <[OwnedFd; STREAMS]>::try_from(streams)
            .map_err(|_| invalid("there are not three descriptors"))?;
        let length = usize::try_from(u32::from_le_bytes(length))
            .ok()
            .filter(|length| *length <= REQUEST_BYTES_MAX);
        let mut text = vec![0; length.ok_or_else(|| invalid("it is too long"))?];
        stream.read_exact(&mut text).await?;
        Ok((Self::parse(&text).ok_or_else(|| invalid("it is no command line"))?, streams))
    }

    fn encode(&self) -> Vec<u8> {
        let Self { command, environment } = self;
        let mut text = u32::try_from(command.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
        for word in command {
            text.extend([word.as_bytes(), b"\0"].concat());
        }
        for (name, value) in environment {
            text.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
        }
        text
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let (count, rest) = text.split_first_chunk()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok().filter(|count| *count > 0)?;
        let mut words: Vec<&[u8]> = rest.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
        if words.len() < count {
            return None;
        }
        let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let pair = |bytes: &&[u8]| {
            // A name may begin with `=`.
            let at = bytes.iter().skip(1).position(|byte| *byte == b'=')? + 1;
            Some((owned(&bytes[..at]), owned(&bytes[at + 1..])))
        };
        let environment = words.split_off(count).iter().map(pair).collect::<Option<_>>()?;
        Some(Self { command: words.into_iter().map(owned).collect(), environment })
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Write as _};

    use proptest::prelude::*;

    use super::*;

    fn word() -> impl Strategy<Value = OsString> {
        prop::collection::vec(1_u8.., 0..8).prop_map(OsString::from_vec)
    }

    fn pair() -> impl Strategy<Value = (OsString, OsString)> {
        let name = prop::collection::vec(1_u8.., 1..8).prop_map(|mut name| {
            name.iter_mut().skip(1).filter(|byte| **byte == b'=').for_each(|byte| *byte = b'_');
            OsString::from_vec(name)
        });
        (name, word())
    }

    proptest! {
        #[test]
        fn a_request_is_read_as_it_was_written(
            command in prop::collection::vec(word(), 1..5),
            environment in prop::collection::vec(pair(), 0..5),
        ) {
            let request = Request { command, environment };
            prop_assert_eq!(Request::parse(&request.encode()), Some(request));
        }

        #[test]
        fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Request::parse(&bytes);
        }
    }

    #[tokio::test]
    async fn the_streams_arrive_with_the_request() {
        let (mut here, mut there) = UnixStream::pair().expect("a pair");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let (input, error) =
            (File::open("/dev/null").expect("there"), File::open("/dev/zero").expect("there"));
        // Longer than the buffers of the socket.
        let value = OsString::from("x".repeat(1024 * 1024));
        let request = Request {
            command: vec!["a".into(), "".into()],
            environment: vec![("A".into(), value)],
        };
        let streams = [&input, &error].map(|file| std::os::fd::AsFd::as_fd(file));
        let send =
            request.send(&mut here, [streams[0], std::os::fd::AsFd::as_fd(&writer), streams[1]]);
        let (sent, received) = tokio::join!(send, Request::receive(&mut there));
        sent.expect("sent");
        let (read, [_, output, _]) = received.expect("received");
        assert_eq!(read, request);
        drop(writer);
        File::from(output).write_all(b"hello").expect("written");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "hello");
    }

    #[tokio::test]
    async fn an_invalid_request_is_refused() {
        for bytes in [&b""[..], b"\x04\0", b"\x04\0\0\0\x01\0\0\0", b"\xff\xff\xff\xff"] {
            let (mut here, mut there) = UnixStream::pair().expect("a pair");
            here.write_all(bytes).await.expect("written");
            drop(here);
            assert!(Request::receive(&mut there).await.is_err(), "{bytes:?}");
        }
    }
}
