//! Lines of stdin, read by a separate thread: a process that ends does not wait for the next line.

use std::io::BufRead as _;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Returns lines as they come; the channel closes when stdin ends.
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
