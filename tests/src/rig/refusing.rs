//! Starts that are expected to fail, and programs beside the hive's own.

use tokio::process::Command;

use super::{Process, Rig, Said, look};

/// Runs a program to its end.
pub async fn run(command: Command) -> Said {
    look::say(command, "").await
}

impl Rig {
    /// Starts a broker that has to refuse to start, and gives its last words.
    pub async fn refused_broker(&self) -> String {
        self.refused_broker_by(self.broker_command()).await
    }

    /// Starts the broker by a command of [`Rig::broker_command`], and returns its error output.
    pub async fn refused_broker_by(&self, command: Command) -> String {
        let said = run(command).await;
        assert_eq!(said.code, 1, "hived refuses to start: {}", said.stderr);
        said.stderr
    }

    /// Keeps a further program beside the harnesses, under a name of its own; it ends with the rig.
    pub fn spawn(&mut self, name: &str, command: Command) {
        let process = Process::spawn(name, command, &self.path(format!("{name}.log")));
        assert!(self.harnesses.insert(name.to_owned(), process).is_none(), "{name} runs already");
    }
}
