//! Strangers: a user who may not use an agent's socket, and connects to it as fast as it can.
//!
//! Each connection asks for its own agent, and is dropped for a later one, so that all places of
//! strangers are taken all the time. Its thread is nice, as that of the flooder. Invariant: between
//! `cut` and the next `go` it has no connection.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;

use std::io::Write as _;

use hive_tests::rig::{host, soon};
use tokio::sync::watch;

/// A uid that exists on no host.
const STRANGER: u32 = 48_212;
/// Connections that are open at the same time: more than an agent's socket has places.
const OPEN: usize = 128;
/// The begin of a connection of HTTP/2: the preface and empty settings.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Cut,
    Go,
    End,
}

#[derive(Debug)]
pub(crate) struct Strangers {
    wish: watch::Sender<Wish>,
    /// The number of connections so far, and of those that are open.
    made: watch::Receiver<(u64, usize)>,
    thread: Option<JoinHandle<()>>,
}

impl Strangers {
    /// Creates strangers of this socket, on a thread with this nice value; only root can. They wait
    /// for `go`.
    pub(crate) fn new(socket: PathBuf, nice: i32) -> Self {
        let (wish, wishes) = watch::channel(Wish::Cut);
        let (count, made) = watch::channel((0, 0));
        let thread = std::thread::spawn(move || {
            host::as_user(STRANGER, move || async move {
                let own = rustix::thread::gettid();
                rustix::process::setpriority_process(Some(own), nice)
                    .expect("every process may be nicer");
                connect(socket, wishes, count).await;
            });
        });
        Self { wish, made, thread: Some(thread) }
    }

    pub(crate) fn go(&self) {
        self.wish.send_replace(Wish::Go);
    }

    /// Waits until all places are taken, and taken again.
    pub(crate) async fn run(&mut self) {
        let goal = self.made.borrow().0 + 2 * OPEN as u64;
        soon("strangers connect", self.made.wait_for(|(made, _)| *made >= goal))
            .await
            .expect("the strangers live");
    }

    /// Pauses them, and waits until they have no connection.
    pub(crate) async fn cut(&mut self) {
        self.wish.send_replace(Wish::Cut);
        soon("the strangers leave", self.made.wait_for(|(_, open)| *open == 0))
            .await
            .expect("the strangers live");
    }

    /// Returns the number of connections so far.
    pub(crate) fn made(&self) -> u64 {
        self.made.borrow().0
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        self.wish.send_replace(Wish::End);
        // A panic there has failed the test already, by a wait without an end.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

async fn connect(
    socket: PathBuf,
    mut wishes: watch::Receiver<Wish>,
    count: watch::Sender<(u64, usize)>,
) {
    let mut open = VecDeque::with_capacity(OPEN);
    loop {
        let wish = *wishes.borrow_and_update();
        match wish {
            Wish::End => return,
            Wish::Cut => {
                open.clear();
                count.send_modify(|(_, open)| *open = 0);
                if wishes.changed().await.is_err() {
                    return;
                }
            }
            Wish::Go => {
                if open.len() == OPEN {
                    open.pop_front();
                }
                // A full backlog lets it wait here.
                let mut stream = UnixStream::connect(&socket).expect("the mode lets it in");
                // The broker may have closed it already.
                drop(stream.write_all(BEGIN));
                open.push_back(stream);
                let now = open.len();
                count.send_modify(|(made, open)| (*made, *open) = (*made + 1, now));
            }
        }
    }
}
