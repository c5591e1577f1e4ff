//! The start of the broker, as a service manager makes it: with a socket for its readiness.
//!
//! Invariant: a start ends with a broker that is ready, or with the exit status of one that is not.

use std::process::ExitStatus;

use tokio::net::UnixDatagram;
use tokio::process::Command;

use super::{Process, Rig, soon};

impl Rig {
    /// Starts a broker that may end before it is ready; the error is its exit status.
    pub async fn try_start_broker_by(&mut self, mut broker: Command) -> Result<(), ExitStatus> {
        let notify = self.path("notify");
        drop(std::fs::remove_file(&notify));
        let ready = UnixDatagram::bind(&notify).expect("a socket for readiness");
        // The broker may be another user's.
        std::fs::set_permissions(&notify, std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .expect("it is ours");
        broker.env("NOTIFY_SOCKET", &notify);
        let mut broker = Process::spawn("hived", broker, &self.path("hived.log"));
        self.said.clear();
        let mut word = [0; 512];
        loop {
            let length = tokio::select! {
                heard = soon("hived is ready", ready.recv(&mut word)) => heard.expect("a word of hived"),
                status = broker.wait() => return Err(status),
            };
            let word = String::from_utf8_lossy(&word[..length]);
            if word.starts_with("READY=1") {
                break;
            }
            self.said.push(word.into_owned());
        }
        self.broker = Some(broker);
        Ok(())
    }

    /// Returns what the broker told its service manager at its last start, before it was ready.
    pub fn said_before_ready(&self) -> &[String] {
        &self.said
    }
}
