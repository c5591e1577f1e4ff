//! The link over a real pair of sockets.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

use super::*;
use crate::supervisor::Reached;

fn links() -> (Link, Link) {
    let (up, broker) = pair().expect("a pair of sockets");
    (Link::new(up).expect("a link"), Link::new(broker).expect("a link"))
}

fn sandbox(agent: &str) -> ToBroker {
    ToBroker::Sandbox { agent: agent.to_owned() }
}

/// Sends bytes that no `Link` would send.
fn send_raw(link: &Link, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(descriptors.is_empty() || control.push(SendAncillaryMessage::ScmRights(descriptors)));
    sendmsg(&link.socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
        .expect("it is sent");
}

/// Returns whether each copy of the pipe's writing end is closed.
async fn all_closed(read: OwnedFd) -> bool {
    let mut read = Receiver::from_owned_fd(read).expect("a pipe");
    let mut bytes = [0; 8];
    matches!(tokio::time::timeout(Duration::from_secs(10), read.read(&mut bytes)).await, Ok(Ok(0)))
}

#[tokio::test]
async fn packets_and_descriptors_arrive_in_order() {
    let (up, broker) = links();
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe");
    up.send(&sandbox("ada"), Some(write.as_fd())).await.expect("sent");
    drop(write);
    up.send(&ToBroker::Complete, None).await.expect("sent");
    let (packet, descriptor) = broker.recv::<ToBroker>().await.expect("a packet");
    assert_eq!(packet, sandbox("ada"));
    let descriptor = descriptor.expect("a descriptor");
    assert!(fcntl_getfd(&descriptor).expect("open").contains(FdFlags::CLOEXEC));
    File::from(descriptor).write_all(b"x").expect("it is the pipe");
    assert_eq!(rustix::io::read(&read, &mut [0; 8]), Ok(1));
    let (packet, descriptor) = broker.recv::<ToBroker>().await.expect("a packet");
    assert!(packet == ToBroker::Complete && descriptor.is_none());
}

#[tokio::test]
async fn an_answer_follows_its_packet() {
    let (up, broker) = links();
    let packet = ToBroker::Isolation {
        agent: "ada".to_owned(),
        reached: Reached::Partly,
        notes: vec!["the socket @/tmp/.X11-unix/X0 can be reached".to_owned()],
        accepted: true,
    };
    let answer = async {
        let (received, _) = broker.recv::<ToBroker>().await.expect("a packet");
        assert_eq!(received, packet);
        broker
            .send(&ToUp::Refused { why: "there is no such agent".to_owned() }, None)
            .await
            .expect("sent");
    };
    let (asked, ()) = tokio::join!(up.ask(&packet, None), answer);
    assert_eq!(
        asked.expect("an answer"),
        ToUp::Refused { why: "there is no such agent".to_owned() }
    );
}

#[tokio::test]
async fn a_packet_that_cannot_be_read_is_refused_and_the_next_one_is_read() {
    let (up, broker) = links();
    let long = vec![b' '; PACKET_BYTES_MAX + 1];
    for (bytes, wanted) in [
        (&b"{\"kind\":\"unknown\"}"[..], "it is not one that this version knows"),
        (b"\0\xff", "it is not one that this version knows"),
        (b"{\"kind\":\"sandbox\"}", "missing field `agent`"),
        (&long, "it is longer than 65536 bytes"),
    ] {
        send_raw(&up, bytes, &[]);
        let refused = broker.recv::<ToBroker>().await.expect_err("garbage").to_string();
        assert!(
            refused.starts_with("the packet is refused: ") && refused.contains(wanted),
            "{refused}"
        );
    }
    up.send(&ToBroker::Complete, None).await.expect("sent");
    assert_eq!(broker.recv::<ToBroker>().await.expect("a packet").0, ToBroker::Complete);
}

#[tokio::test]
async fn descriptors_that_are_too_many_are_closed() {
    for count in [2, DESCRIPTORS_MAX, 12] {
        let (up, broker) = links();
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe");
        let attached = vec![write.as_fd(); count];
        send_raw(&up, br#"{"kind":"sandbox","agent":"ada"}"#, &attached);
        drop(attached);
        drop(write);
        let refused = broker.recv::<ToBroker>().await.expect_err("too many").to_string();
        assert_eq!(refused, "the packet is refused: it carries more than one descriptor");
        assert!(all_closed(read).await, "{count}");
    }
}

#[tokio::test]
async fn a_descriptor_of_garbage_is_closed() {
    let (up, broker) = links();
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe");
    send_raw(&up, b"garbage", &[write.as_fd()]);
    drop(write);
    assert!(matches!(broker.recv::<ToBroker>().await, Err(LinkError::Garbage(_))));
    assert!(all_closed(read).await);
}

#[tokio::test]
async fn the_end_of_one_end_is_the_end_of_the_link() {
    let (up, broker) = links();
    drop(up);
    assert!(matches!(broker.recv::<ToBroker>().await, Err(LinkError::Closed)));
    assert!(matches!(broker.send(&ToUp::Done, None).await, Err(LinkError::Closed)));
}

#[tokio::test]
async fn what_is_too_long_is_not_sent() {
    let (up, _broker) = links();
    let refused = up.send(&sandbox(&"a".repeat(PACKET_BYTES_MAX)), None).await;
    assert!(matches!(refused, Err(LinkError::TooLong(length)) if length > PACKET_BYTES_MAX));
}

#[tokio::test]
async fn another_kind_of_socket_is_no_link() {
    let (one, _other) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .expect("a pair");
    assert!(Link::new(one).is_err());
}
