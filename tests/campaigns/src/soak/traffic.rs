//! The traffic: deeds chosen by the seed, and the account of their expected results.
//!
//! Invariant: an accepted message stays in the account until its recipient has it, and what is left
//! at the end is a violation.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::wake_service_client::WakeServiceClient;
use hive_proto::v1::{AckDeliveryRequest, DeliveryKey, ListDeadLettersRequest, WakeRequest};
use hive_tests::rig::{Client, PATIENCE, fresh_id, request};
use rand::{RngExt as _, SeedableRng as _};
use rand_xorshift::XorShiftRng;
use tokio::time::interval;
use tonic::Status;

use super::cast::Cast;
use super::player::Player;

/// The interval between checks of the account after the traffic.
const LOOK: Duration = Duration::from_millis(200);

/// The expected result of a deed, at a player.
#[derive(Clone, Debug)]
enum Owed {
    Message(u64),
    /// An answer to this message.
    Reply(u64),
    /// A message with this text.
    Words(String),
}

#[derive(Debug)]
pub(super) struct Traffic {
    dice: XorShiftRng,
    clients: Vec<Client>,
    players: Vec<Player>,
    operator: Client,
    sends: Vec<Duration>,
    on_their_way: Vec<(usize, u64, Instant)>,
    owed: Vec<(usize, Owed)>,
    deeds: u64,
    counts: BTreeMap<String, u64>,
    complaints: Vec<String>,
}

impl Traffic {
    pub(super) async fn new(seed: u64, cast: &Cast) -> Self {
        let players = cast.players.iter().map(|name| Player::new(cast.socket(name))).collect();
        let mut traffic = Self {
            dice: XorShiftRng::seed_from_u64(seed),
            clients: Vec::new(),
            players,
            operator: cast.operator().await,
            sends: Vec::new(),
            on_their_way: Vec::new(),
            owed: Vec::new(),
            deeds: 0,
            counts: BTreeMap::new(),
            complaints: Vec::new(),
        };
        traffic.back(cast).await;
        traffic
    }

    /// Reconnects all clients after a restart of the broker.
    pub(super) async fn back(&mut self, cast: &Cast) {
        self.operator = cast.operator().await;
        self.clients.clear();
        for name in &cast.players {
            self.clients.push(cast.agent(name).await);
        }
    }

    pub(super) fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn complain(&mut self, what: String) {
        self.complaints.push(what);
    }

    /// Does one deed.
    pub(super) async fn deed(&mut self, cast: &Cast) {
        self.deeds += 1;
        let (place, other) = (self.one_of(&cast.players), self.one_of(&cast.players));
        let worker = cast.workers[self.one_of(&cast.workers)].clone();
        let token = format!("soak-{}.", self.deeds);
        let chance = self.dice.random_range(0..100);
        let done = match chance {
            0..35 => self.tell_player(place, other, &cast.players[other], &token).await,
            35..55 => self.tell_worker(place, &worker, &token).await,
            55..60 => self.operator.try_send(&worker, &token).await.map(drop),
            60..68 => self.ask(place, &worker, &token).await,
            68..76 => self.ask_operator(place, &token).await,
            76..84 => self.remind(place, &token).await,
            84..90 => self.wake(place, &token).await,
            90..93 => match cast.guests.first() {
                Some(guest) => self.operator.try_send(guest, &token).await.map(drop),
                None => Ok(()),
            },
            _ => self.read().await,
        };
        if let Err(refusal) = done {
            self.complain(format!("deed {} ({chance}) was refused: {refusal:?}", self.deeds));
        }
    }

    fn one_of(&mut self, names: &[String]) -> usize {
        self.dice.random_range(0..names.len())
    }

    async fn tell_player(
        &mut self,
        place: usize,
        other: usize,
        name: &str,
        token: &str,
    ) -> Result<(), Status> {
        let start = Instant::now();
        let id = self.clients[place].try_send(name, token).await?.message_id;
        self.sends.push(start.elapsed());
        self.on_their_way.push((other, id, start));
        self.owed.push((other, Owed::Message(id)));
        self.count("messages between players");
        Ok(())
    }

    async fn tell_worker(&mut self, place: usize, worker: &str, token: &str) -> Result<(), Status> {
        let id = self.clients[place].try_send(worker, token).await?.message_id;
        self.owed.push((place, Owed::Reply(id)));
        self.count("messages to workers");
        Ok(())
    }

    async fn ask(&mut self, place: usize, whom: &str, token: &str) -> Result<(), Status> {
        let id = self.question(place, whom, token).await?;
        self.owed.push((place, Owed::Words(format!("question {id}"))));
        self.count("questions to workers");
        Ok(())
    }

    async fn ask_operator(&mut self, place: usize, token: &str) -> Result<(), Status> {
        let id = self.question(place, "operator", token).await?;
        let words = format!("so be it with {token}");
        let answer = request::answer(id, &words);
        QuestionServiceClient::new(self.operator.channel()).answer_question(answer).await?;
        self.owed.push((place, Owed::Words(words)));
        self.count("questions to the operator");
        Ok(())
    }

    async fn question(&self, place: usize, whom: &str, token: &str) -> Result<u64, Status> {
        let request = request::ask(whom, &format!("And {token}?"));
        let asked =
            QuestionServiceClient::new(self.clients[place].channel()).ask_question(request).await?;
        Ok(asked.into_inner().question.unwrap_or_default().id)
    }

    async fn remind(&mut self, place: usize, token: &str) -> Result<(), Status> {
        let seconds = self.dice.random_range(1..6);
        let request =
            request::remind(token, Due::Delay(prost_types::Duration { seconds, nanos: 0 }));
        ReminderServiceClient::new(self.clients[place].channel()).create_reminder(request).await?;
        self.owed.push((place, Owed::Words(token.to_owned())));
        self.count("reminders");
        Ok(())
    }

    async fn wake(&mut self, place: usize, token: &str) -> Result<(), Status> {
        let (label, coalescing_key) = ("clock".to_owned(), String::new());
        let request =
            WakeRequest { request_id: fresh_id(), label, body: token.to_owned(), coalescing_key };
        WakeServiceClient::new(self.clients[place].channel()).wake(request).await?;
        self.owed.push((place, Owed::Words(token.to_owned())));
        self.count("wakes");
        Ok(())
    }

    /// Reads all of the operator's mail.
    async fn read(&mut self) -> Result<(), Status> {
        for delivery in self.operator.deliveries("", &[]).await {
            let key = DeliveryKey {
                agent: "operator".to_owned(),
                message_id: delivery.message.map_or(0, |message| message.id),
            };
            let ack = AckDeliveryRequest { target: Some(Target::Key(key)) };
            InboxServiceClient::new(self.operator.channel()).ack_delivery(ack).await?;
            self.count("messages read by the operator");
        }
        Ok(())
    }

    /// Returns the delays since the last sample: of sends, and from a send to its receive.
    pub(super) fn delays(&mut self) -> (Vec<Duration>, Vec<Duration>) {
        let mut wakes = Vec::new();
        let players = &self.players;
        self.on_their_way.retain(|(place, id, start)| match players[*place].had().at.get(id) {
            Some(taken) => {
                wakes.push(*taken - *start);
                false
            }
            None => true,
        });
        (std::mem::take(&mut self.sends), wakes)
    }

    /// Waits until all expected results have come, and no worker has mail; returns what did not
    /// happen in time.
    pub(super) async fn settle(&mut self, cast: &Cast) -> Vec<String> {
        let settled = async {
            let mut look = interval(LOOK);
            loop {
                look.tick().await;
                self.strike_off();
                let mut left = self.owed.len();
                for name in &cast.workers {
                    left += self.operator.deliveries(name, &[]).await.len();
                }
                if left == 0 {
                    return;
                }
            }
        };
        let in_time = tokio::time::timeout(2 * PATIENCE, settled).await.is_ok();
        let mut wrong = std::mem::take(&mut self.complaints);
        if !in_time {
            wrong.push(format!(
                "{} things never came, such as {:?}",
                self.owed.len(),
                &self.owed[..self.owed.len().min(5)]
            ));
            for name in &cast.workers {
                let left = self.operator.deliveries(name, &[]).await;
                wrong.extend(left.first().map(|first| {
                    format!("{name} has {} unsettled, such as {first:?}", left.len())
                }));
            }
        }
        let dead = ListDeadLettersRequest { page_size: 5, ..ListDeadLettersRequest::default() };
        match self.operator.admin().list_dead_letters(dead).await {
            Ok(listed) => wrong.extend(
                listed
                    .into_inner()
                    .deliveries
                    .iter()
                    .map(|dead| format!("a dead letter: {dead:?}")),
            ),
            Err(refusal) => wrong.push(format!("dead letters are not listed: {refusal}")),
        }
        wrong
    }

    /// Removes arrived results from the account.
    fn strike_off(&mut self) {
        let had: Vec<_> = self.players.iter().map(Player::had).collect();
        let words: Vec<String> = had.iter().map(|had| had.bodies.join("\n")).collect();
        self.owed.retain(|(place, due)| match due {
            Owed::Message(id) => !had[*place].at.contains_key(id),
            Owed::Reply(id) => !had[*place].replies_to.contains_key(id),
            Owed::Words(text) => !words[*place].contains(text.as_str()),
        });
    }

    /// Ends the traffic; returns the number of deeds, and the figures.
    pub(super) async fn end(mut self) -> (u64, BTreeMap<String, u64>) {
        let twice: usize = self
            .players
            .iter()
            .map(|player| player.had().replies_to.values().filter(|count| **count > 1).count())
            .sum();
        self.counts.insert("messages answered twice".to_owned(), twice as u64);
        (self.deeds, self.counts)
    }
}
