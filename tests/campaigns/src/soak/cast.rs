//! The participants: a broker, workers with a harness each, players without, and temporary guests.
//!
//! Invariant: every stopped program shuts down cleanly and is started again before the next deed.

use std::path::PathBuf;
use std::time::Duration;

use hive_proto::v1::CreateAgentRequest;
use hive_tests::rig::{Client, HarnessOptions, Rig, clock, fresh_id, soon, strays};
use hive_tests::scripted::script::{Rule, Step};
use serde_json::json;

use super::sample::{self, Sample};
use super::traffic::Traffic;
use super::{Options, aging};

/// Days of retention for settled mail in the soak's hive. A night makes rows older by a little more
/// than that.
const RETENTION_DAYS: i64 = 1;
const DAY_MS: i64 = 24 * 3600 * 1000;
/// Maximum number of guests at once.
const GUESTS_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct Cast {
    rig: Rig,
    pub(super) workers: Vec<String>,
    pub(super) players: Vec<String>,
    pub(super) guests: Vec<String>,
    came: usize,
    restarted: usize,
}

impl Cast {
    /// Starts all programs, and waits until the broker is ready and every harness attached.
    pub(super) async fn assemble(options: &Options) -> Self {
        let workers: Vec<String> =
            (0..options.workers).map(|number| format!("w{number}")).collect();
        let players: Vec<String> =
            (0..options.players).map(|number| format!("p{number}")).collect();
        let mut config = format!(
            "[hive]\nname = \"soak\"\n[broker]\nretention_days = {RETENTION_DAYS}\n[broker.limits]\nsends_per_minute_max = 100000\n\
             request_id_hours = 1\nturn_events_hours = 1\nturn_events_bytes_max = 4194304\n"
        );
        for name in workers.iter().chain(&players) {
            config.push_str(&format!("[agents.{name}]\n"));
        }
        let rig = Rig::new(&config);
        let mut cast = Self { rig, workers, players, guests: Vec::new(), came: 0, restarted: 0 };
        cast.start_broker().await;
        for name in cast.workers.clone() {
            cast.start_harness(&name);
        }
        let operator = cast.operator().await;
        for name in &cast.workers {
            operator.does(name, hive_proto::v1::HarnessState::Idle).await;
        }
        cast
    }

    async fn start_broker(&mut self) {
        let mut command = self.rig.broker_command();
        command.env("HIVE_LOG", "warn");
        self.rig.start_broker_by(command).await;
    }

    fn start_harness(&mut self, name: &str) {
        let step = |tool: &str, input| Step::Tool { tool: tool.to_owned(), input };
        // The claude answers a question; for other mail it acts as the friendly agent does.
        let answers = vec![
            step("answer", json!({"id": "$question", "answer": "so be it"})),
            Step::Text { text: "Answered.".to_owned() },
        ];
        let options = HarnessOptions {
            rules: vec![
                Rule { when: " for you".to_owned(), steps: answers },
                Rule { when: String::new(), steps: vec![Step::Duo { duo: true }] },
            ],
            env: [("HIVE_LOG", "warn"), ("HIVE_HEARTBEAT_SECS", "5")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..HarnessOptions::default()
        };
        self.rig.start_harness_with(name, &options);
    }

    pub(super) async fn operator(&self) -> Client {
        self.rig.operator().await
    }

    pub(super) async fn agent(&self, name: &str) -> Client {
        self.rig.agent(name).await
    }

    pub(super) fn socket(&self, name: &str) -> PathBuf {
        self.rig.agent_socket(name)
    }

    /// Takes a sample of the host and the database.
    pub(super) async fn look(&mut self, at: Duration, traffic: &mut Traffic) -> Sample {
        let broker = self.rig.broker().pid();
        let harnesses: Vec<_> =
            self.workers.iter().map(|name| self.rig.harness(name).pid()).collect();
        let processes = strays(self.rig.dir()).len() as u64;
        let (sends, wakes) = traffic.delays();
        sample::take(at, broker, &harnesses, processes, &self.rig.path("state"), &sends, &wakes)
    }

    /// Restarts one harness, and adds or removes a guest.
    pub(super) async fn change(&mut self, traffic: &mut Traffic) {
        let name = self.workers[self.restarted % self.workers.len()].clone();
        self.restarted += 1;
        self.rig.stop_harness(&name).await;
        self.start_harness(&name);
        traffic.count("harnesses restarted");
        let operator = self.operator().await;
        if self.guests.len() < GUESTS_MAX && !self.came.is_multiple_of(3) || self.guests.is_empty()
        {
            // A few names in rotation: a guest that is created again adopts the mail left over.
            let name = format!("g{}", self.came % (2 * GUESTS_MAX));
            if !self.guests.contains(&name) {
                let adopt = self.came >= 2 * GUESTS_MAX;
                let request = CreateAgentRequest {
                    request_id: fresh_id(),
                    name: name.clone(),
                    adopt,
                    ..CreateAgentRequest::default()
                };
                match operator.admin().create_agent(request).await {
                    Ok(_) => self.guests.push(name),
                    Err(refusal) => traffic.complain(format!("{name} could not come: {refusal}")),
                }
            }
            traffic.count("guests came");
        } else {
            let name = self.guests.remove(0);
            let request = hive_tests::rig::request::retire_agent(&name);
            if let Err(refusal) = operator.admin().retire_agent(request).await {
                traffic.complain(format!("{name} could not go: {refusal}"));
            }
            traffic.count("guests went");
        }
        self.came += 1;
    }

    /// Stops the broker, makes rows older than `day` older than the retention, and starts the
    /// broker again.
    pub(super) async fn night(&mut self, day: Duration, traffic: &mut Traffic) {
        self.rig.stop_broker().await;
        let log = self.rig.read("hived.log");
        if log.contains("panicked") {
            traffic.complain(format!("the broker panicked: {log}"));
        }
        let before = clock::in_millis(-i64::try_from(day.as_millis()).unwrap_or(i64::MAX));
        let before = before.seconds * 1000 + i64::from(before.nanos) / 1_000_000;
        if let Err(error) =
            aging::age(&self.rig.path("state/hive.db"), before, RETENTION_DAYS * DAY_MS + DAY_MS)
        {
            traffic.complain(format!("the database could not be aged: {error}"));
        }
        self.start_broker().await;
        traffic.count("broker restarted");
        traffic.back(self).await;
    }

    /// Shuts everything down cleanly; returns what was left over.
    pub(super) async fn end(self) -> Vec<String> {
        let log = self.rig.read("hived.log");
        let dir = self.rig.dir().to_path_buf();
        // Asserts that each program exits successfully and that no process is left.
        soon("the hive ends", tokio::spawn(async move { Box::pin(self.rig.end()).await }))
            .await
            .err()
            .map(|error| format!("the hive did not end well: {error}"))
            .into_iter()
            .chain(log.contains("panicked").then(|| format!("the broker panicked: {log}")))
            .chain(dir.exists().then(|| format!("{} is left", dir.display())))
            .collect()
    }
}
