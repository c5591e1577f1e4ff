//! One end of the link: packets of bounded size, each with at most one descriptor.
//!
//! Invariant: each descriptor beyond the first one of a packet is closed. A packet that cannot be
//! read is reported and skipped; the link continues.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd, ioctl_fionbio};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use super::{PACKET_BYTES_MAX, ToBroker, ToUp};

/// Maximum descriptors of one packet. The kernel closes those beyond it, and the packet is refused.
const DESCRIPTORS_MAX: usize = 4;

/// Why a packet was not sent or not received.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The kernel returned an error.
    #[error("the link of hivectl up and hived failed")]
    Io(#[from] io::Error),
    /// The packet to send is too long.
    #[error("a packet of {0} bytes is longer than the {PACKET_BYTES_MAX} of the link; shorten it")]
    TooLong(usize),
    /// The received data is not a packet; the link continues.
    #[error("the packet is refused: {0}")]
    Garbage(String),
    /// The other end was closed.
    #[error("the other end of the link was closed")]
    Closed,
}

/// One end of the link.
#[derive(Debug)]
pub struct Link {
    /// A socket of the type SEQPACKET; tokio's type is used only for readiness.
    socket: UnixDatagram,
}

/// Creates both ends of a link. No started program inherits them.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

impl Link {
    /// Takes over one end; from now on no started program inherits it. Needs a runtime of tokio.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        fcntl_setfd(&socket, fcntl_getfd(&socket)? | FdFlags::CLOEXEC)?;
        let kind = (sockopt::socket_domain(&socket)?, sockopt::socket_type(&socket)?);
        if kind != (AddressFamily::UNIX, SocketType::SEQPACKET) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is no unix socket of the type SEQPACKET",
            ));
        }
        ioctl_fionbio(&socket, true)?;
        Ok(Self { socket: UnixDatagram::from_std(socket.into())? })
    }

    /// Sends a packet, with a descriptor if one is given.
    pub async fn send<P: Serialize>(
        &self,
        packet: &P,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), LinkError> {
        let bytes = serde_json::to_vec(packet).map_err(io::Error::from)?;
        if bytes.len() > PACKET_BYTES_MAX {
            return Err(LinkError::TooLong(bytes.len()));
        }
        let sent = self.socket.async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let attached: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
            if !attached.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&attached)) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            Ok(sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?)
        });
        match sent.await {
            Ok(_) => Ok(()),
            Err(error) if is_closed(&error) => Err(LinkError::Closed),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for a packet. [`LinkError::Closed`] is the end; after [`LinkError::Garbage`] the next
    /// call waits for the next packet. A dropped call loses nothing.
    pub async fn recv<P: DeserializeOwned>(&self) -> Result<(P, Option<OwnedFd>), LinkError> {
        let received =
            self.socket.async_io(Interest::READABLE, || Ok(receive(self.socket.as_fd())?)).await;
        let (bytes, mut descriptors, flags) = match received {
            Ok(received) => received,
            Err(error) if is_closed(&error) => return Err(LinkError::Closed),
            Err(error) => return Err(error.into()),
        };
        let garbage = |why: String| Err(LinkError::Garbage(why));
        if flags.contains(ReturnFlags::TRUNC) || bytes.len() > PACKET_BYTES_MAX {
            return garbage(format!("it is longer than {PACKET_BYTES_MAX} bytes"));
        }
        if bytes.is_empty() && descriptors.is_empty() {
            return Err(LinkError::Closed);
        }
        if flags.contains(ReturnFlags::CTRUNC) || descriptors.len() > 1 {
            return garbage("it carries more than one descriptor".to_owned());
        }
        match serde_json::from_slice(&bytes) {
            Ok(packet) => Ok((packet, descriptors.pop())),
            Err(error) => garbage(format!("it is not one that this version knows: {error}")),
        }
    }

    /// Sends a packet to the broker and waits for its answer. Calls must not overlap: answers come
    /// in the order of the packets.
    pub async fn ask(
        &self,
        packet: &ToBroker,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<ToUp, LinkError> {
        self.send(packet, descriptor).await?;
        Ok(self.recv::<ToUp>().await?.0)
    }
}

type Received = (Vec<u8>, Vec<OwnedFd>, ReturnFlags);

/// Receives one packet with its descriptors, none of which a started program inherits.
fn receive(socket: BorrowedFd<'_>) -> rustix::io::Result<Received> {
    let mut bytes = vec![0; PACKET_BYTES_MAX + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    bytes.truncate(received.bytes);
    Ok((bytes, descriptors, received.flags))
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests;
