//! Lines of stdin, read by a thread of their own: a process that ends does not wait for the next
//! one.

use std::io::BufRead as _;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Lines as they come; nothing more where stdin has ended.
pub(super) fn lines() -> UnboundedReceiver<String> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
