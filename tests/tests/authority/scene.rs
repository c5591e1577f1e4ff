//! A hive in which each agent has objects that another must not touch.
//!
//! `bob` has a harness with an open turn, `dan` one without, `cyd` leases mail as a plain consumer,
//! and `ada` has nothing: she is the stranger. Below `bob` and `cyd` there are two agents each; the
//! first one below `bob` runs on demand, and its harness has no work.

use std::collections::BTreeMap;

use hive_proto::v1::attach_response::Step;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_proto::v1::{
    AskQuestionResponse, AttachRequest, AttachResponse, BeginTurnRequest, BeginTurnResponse,
    CreateReminderResponse, EventKind, ListSchedulesRequest, ListSchedulesResponse,
    NackDeliveryRequest, ReceiveMessagesResponse, Refusal, SendCommandResponse,
    SettleDeliveriesResponse, StartAgentRequest, StartNewSession, StreamDeliveriesResponse,
    StreamMessagesResponse, TurnOutcome, settlement_result, stream_deliveries_response,
    stream_messages_response,
};
use hive_proto::{PROCESS_TOKEN_KEY, status};
use hive_tests::rig::call::session as in_metadata;
use hive_tests::rig::on_disk::{Tables, changes};
use hive_tests::rig::raw::{self, Answer};
use hive_tests::rig::{Client, Rig, fresh_id, process_token, request, soon};
use prost::Message as _;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::authority_table::{Proof, Row, TABLE};
use crate::calls::{asked, did, done, in_session, remind};
use crate::expected::settles;
use crate::{requests, search};

/// The objects of one agent. A missing number is 0 and a missing text empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Things {
    /// The agent that owns them.
    pub(crate) agent: String,
    /// A message in its inbox.
    pub(crate) message: u64,
    /// A message that is held.
    pub(crate) held: u64,
    /// A message that is a dead letter.
    pub(crate) dead: u64,
    pub(crate) session: String,
    /// The process token of its open turn.
    pub(crate) process: String,
    pub(crate) turn: u64,
    /// The lease token of `message`.
    pub(crate) lease: String,
    /// A command that it has not acknowledged.
    pub(crate) command: u64,
    /// A question that it was asked.
    pub(crate) owed: u64,
    /// A question that it asked.
    pub(crate) asked: u64,
    /// Another question that it asked.
    pub(crate) loose_end: u64,
    /// A reminder that it set.
    pub(crate) reminder: u64,
    /// A schedule of it.
    pub(crate) schedule: u64,
}

/// A text in every body that only its owner and the operator may see.
pub(crate) const SECRET: &str = "only for its owner's eyes";

/// The unit whose journal agents may read.
pub(crate) const JOURNAL_UNIT: &str = "nginx.service";

/// Returns the agents below an agent: one that is never stopped, and one that may be.
pub(crate) fn below(agent: &str) -> [String; 2] {
    ["child", "other"].map(|which| format!("{agent}-{which}"))
}

fn config() -> String {
    let with_groups = |name: &str| {
        let groups = hive_core::agent::TOOL_GROUPS;
        format!(
            "[agents.{name}]\ntool_groups = {groups:?}\ncapabilities = [\"read_host_journal\"]\n\
             grants = [\"own_schedules\"]\n"
        )
    };
    let child = |parent: &str| {
        below(parent).map(|name| format!("[agents.{name}]\nparent = {parent:?}\n")).concat()
    };
    let agents = ["ada", "bob", "cyd", "dan"].map(with_groups).concat();
    let journal = format!("[operator]\njournal_units = [{JOURNAL_UNIT:?}]\n");
    journal + &agents + &["bob", "cyd"].map(child).concat()
}

/// The whole hive, with the objects of each agent.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) rig: Rig,
    pub(crate) bob: Things,
    pub(crate) cyd: Things,
    pub(crate) dan: Things,
    /// The agent on demand.
    pub(crate) idle: Things,
    channels: BTreeMap<String, Channel>,
    attachments: Vec<Streaming<AttachResponse>>,
}

impl Scene {
    pub(crate) async fn set() -> Self {
        let mut rig = Rig::new(&config());
        rig.start_broker().await;
        let operator = rig.operator().await;
        let mut channels = BTreeMap::from([("operator".to_owned(), operator.channel())]);
        let [idle, _] = below("bob");
        for name in ["ada", "bob", "cyd", "dan", &idle] {
            channels.insert(name.to_owned(), rig.agent(name).await.channel());
        }
        let (bob, cyd, dan) = Default::default();
        let idle = Things { agent: idle, ..Things::default() };
        let attachments = Vec::new();
        let mut scene = Self { rig, bob, cyd, dan, idle, channels, attachments };
        scene.bob = scene.set_bob(&operator).await;
        scene.cyd = scene.set_cyd(&operator).await;
        scene.dan = scene.set_dan(&operator).await;
        scene.idle.session = scene.set_idle().await;
        search::ready(&operator.channel(), "ada").await;
        scene
    }

    async fn set_bob(&mut self, operator: &Client) -> Things {
        let session = self.attach("bob", AttachRequest::default()).await;
        let held = operator.send("bob", SECRET).await;
        let (cancelled, _) = self.begin("bob", &session).await;
        let end = request::end_turn(cancelled, TurnOutcome::Cancelled);
        let end = in_session(end, &session);
        did(&self.channel("bob"), &end).await;
        operator.send("bob", SECRET).await;
        let (turn, process) = self.begin("bob", &session).await;
        let message = operator.send("bob", SECRET).await;
        let order = request::order("bob", Order::StartNewSession(StartNewSession {}));
        let ordered: SendCommandResponse = done(&self.channel("operator"), &order).await;
        let command = ordered.command_id;
        let things = Things {
            agent: "bob".to_owned(),
            message,
            held,
            session,
            process,
            turn,
            command,
            ..Things::default()
        };
        self.with_open_things(things).await
    }

    async fn set_cyd(&mut self, operator: &Client) -> Things {
        let dead = operator.send("cyd", SECRET).await;
        let (_, lease_token) = self.lease("cyd").await;
        let nack =
            NackDeliveryRequest { lease_token, permanent: true, ..NackDeliveryRequest::default() };
        did(&self.channel("cyd"), &nack).await;
        operator.send("cyd", SECRET).await;
        let (message, lease) = self.lease("cyd").await;
        self.with_open_things(Things {
            agent: "cyd".to_owned(),
            message,
            dead,
            lease,
            ..Things::default()
        })
        .await
    }

    /// Returns the same agent with questions, a reminder and a schedule that only it and the
    /// operator know.
    async fn with_open_things(&self, things: Things) -> Things {
        let by_owner = |method, request| {
            let row = TABLE.iter().find(|row| row.method == method).expect("a row");
            send(self.channel(&things.agent), row, request, "", &things.process)
        };
        let to_operator = async || {
            let ask = request::ask("operator", SECRET).encode_to_vec();
            let asked = by_owner("AskQuestion", ask).await.expect("asked");
            asked.decode::<AskQuestionResponse>().question.expect("a question").id
        };
        let schedule = request::schedule(&things.agent, SECRET).encode_to_vec();
        by_owner("AskQuestion", schedule).await.expect("granted");
        let list = ListSchedulesRequest::default().encode_to_vec();
        let listed = by_owner("ListSchedules", list).await.expect("listed");
        let schedule = listed.decode::<ListSchedulesResponse>().schedules[0].id;
        let set = by_owner("CreateReminder", remind(SECRET).encode_to_vec()).await.expect("set");
        Things {
            owed: asked(&self.channel("operator"), &things.agent, SECRET).await,
            asked: to_operator().await,
            loose_end: to_operator().await,
            reminder: set.decode::<CreateReminderResponse>().reminder.expect("a reminder").id,
            schedule,
            ..things.clone()
        }
    }

    async fn set_dan(&mut self, operator: &Client) -> Things {
        let session = self.attach("dan", AttachRequest::default()).await;
        let message = operator.send("dan", SECRET).await;
        Things {
            agent: "dan".to_owned(),
            message,
            session,
            process: process_token(),
            ..Things::default()
        }
    }

    /// Returns the session of the agent on demand.
    async fn set_idle(&mut self) -> String {
        let (request_id, name) = (fresh_id(), self.idle.agent.clone());
        let start =
            StartAgentRequest { request_id, name, etag: String::new(), on_demand: Some(true) };
        did(&self.channel("operator"), &start).await;
        let name = self.idle.agent.clone();
        self.attach(&name, AttachRequest::default()).await
    }

    /// Returns a channel on the socket of an agent, or of `operator`.
    pub(crate) fn channel(&self, whose: &str) -> Channel {
        self.channels[whose].clone()
    }

    pub(crate) fn turns(&self, agent: &str) -> TurnServiceClient<Channel> {
        TurnServiceClient::new(self.channel(agent))
    }

    /// Attaches a harness and keeps it attached; returns its session.
    pub(crate) async fn attach(&mut self, agent: &str, request: AttachRequest) -> String {
        let mut stream =
            self.turns(agent).attach(request).await.expect("it may attach").into_inner();
        let first = soon("the harness is attached", stream.message())
            .await
            .expect("an answer")
            .expect("an answer");
        self.attachments.push(stream);
        match first.step {
            Some(Step::Attached(attached)) => attached.session_token,
            step => panic!("{step:?}"),
        }
    }

    /// Begins a turn; returns its id and its process token.
    pub(crate) async fn begin(&self, agent: &str, session: &str) -> (u64, String) {
        let process = process_token();
        let begin = BeginTurnRequest { process_token: process.clone(), ..request::begin() };
        let begin = in_session(begin, session);
        let begun: BeginTurnResponse = done(&self.channel(agent), &begin).await;
        (begun.turn.expect("a turn").id, process)
    }

    /// Leases a message as a consumer; returns its id and the lease token.
    pub(crate) async fn lease(&self, agent: &str) -> (u64, String) {
        let received: ReceiveMessagesResponse =
            done(&self.channel(agent), &request::receive()).await;
        let [leased] = &received.deliveries[..] else { panic!("{received:?}") };
        let message =
            leased.delivery.clone().and_then(|delivery| delivery.message).expect("a message");
        (message.id, leased.lease_token.clone())
    }

    /// Returns the agent whose objects a call of this RPC needs.
    pub(crate) fn owner(&self, row: &Row) -> &Things {
        match (row.service, row.method) {
            (_, "RedriveDelivery" | "Login") => &self.cyd,
            (_, method) if settles(method) => &self.cyd,
            (_, "BeginTurn") => &self.dan,
            (_, "Leave") => &self.idle,
            _ => &self.bob,
        }
    }

    /// Calls an RPC on one caller's socket with these objects.
    pub(crate) async fn call(
        &self,
        socket: &str,
        row: &Row,
        things: &Things,
    ) -> Result<Answer, Status> {
        self.call_by(socket, row, things, &things.process).await
    }

    /// The same, but with this process token; empty for none.
    pub(crate) async fn call_by(
        &self,
        socket: &str,
        row: &Row,
        things: &Things,
        process: &str,
    ) -> Result<Answer, Status> {
        let request = requests::of(row, things);
        send(self.channel(socket), row, request, &things.session, process).await
    }

    /// Returns every row of every table, as it is on disk.
    pub(crate) fn on_disk(&self) -> Tables {
        self.rig.on_disk()
    }

    /// Asserts that nothing has changed except that one refusal is in the log.
    pub(crate) fn refusal_logged(&self, before: &Tables, by: &str) {
        let changes = changes(before, &self.on_disk());
        let refusal = format!(";kind=Integer({});", i32::from(EventKind::Refused));
        let [logged] = &changes[..] else {
            panic!("{by} changed something, or was not logged: {changes:#?}")
        };
        assert!(logged.starts_with("+ event: ") && logged.contains(&refusal), "{by}: {logged}");
    }
}

/// Returns the rows about agents other than this one, of the tables about agents.
pub(crate) fn of_others(tables: &Tables, agent: &str) -> Vec<String> {
    let named = format!("name=Text(\"{agent}\");");
    let own = tables["agent"].iter().find(|row| row.contains(&named)).expect("the agent is there");
    let id = own.split_once(';').expect("the first column is the id").0.trim_start_matches("id=");
    let own = ["agent_id", "asker_id", "target_id"].map(|column| format!("{column}={id};"));
    let id = format!("id={id};");
    let is_about = |row: &str| row.contains("agent_id=") || row.contains("asker_id=");
    let about = |row: &&String| is_about(row) && !own.iter().any(|own| row.contains(own));
    let agents = tables["agent"].iter().filter(|row| !row.starts_with(&id));
    tables.values().flatten().filter(about).chain(agents).cloned().collect()
}

pub(crate) async fn send(
    channel: Channel,
    row: &Row,
    request: Vec<u8>,
    session: &str,
    process: &str,
) -> Result<Answer, Status> {
    let mut metadata = if row.proof == Proof::Session && !session.is_empty() {
        in_metadata(session)
    } else {
        MetadataMap::new()
    };
    if requests::shows_process(row) && !process.is_empty() {
        metadata.insert(PROCESS_TOKEN_KEY, process.parse().expect("a token is plain text"));
    }
    let (path, mut requests) = (path(row), vec![request]);
    if row.method == "StreamDeliveries" {
        requests.insert(0, requests::stream());
    }
    let answer = raw::call_with_all(&channel, &path, metadata, requests);
    let answer = soon(&format!("{} answers", row.method), answer).await?;
    in_part(row, answer).await
}

/// Turns the refusal of a part of a call into the refusal of the call.
async fn in_part(row: &Row, mut answer: Answer) -> Result<Answer, Status> {
    let refusal = match row.method {
        "StreamMessages" => match answer.decode::<StreamMessagesResponse>().answer {
            Some(stream_messages_response::Answer::Refusal(refusal)) => Some(refusal),
            _ => None,
        },
        "SettleDeliveries" => of_settlement(&answer.decode()),
        "StreamDeliveries" => {
            // The first message opens the stream.
            let next = answer.next().await?;
            let next = next.map(|next| StreamDeliveriesResponse::decode(&*next));
            match next.and_then(|next| next.expect("an answer").step) {
                Some(stream_deliveries_response::Step::Settled(settled)) => of_settlement(&settled),
                Some(step) => panic!("{step:?}"),
                // Not each step has an answer.
                None => None,
            }
        }
        _ => None,
    };
    refusal.map_or(Ok(answer), |refusal| Err(status::of_part(&refusal)))
}

fn of_settlement(settled: &SettleDeliveriesResponse) -> Option<Refusal> {
    // A list without entries has no results.
    match settled.results.first().and_then(|first| first.result.clone()) {
        Some(settlement_result::Result::Refusal(refusal)) => Some(refusal),
        _ => None,
    }
}

pub(crate) fn path(row: &Row) -> String {
    format!("/hive.v1.{}/{}", row.service, row.method)
}
