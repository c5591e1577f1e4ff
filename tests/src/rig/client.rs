//! A plain client of the contract, for journeys: short calls for what they do again and again, and
//! the channel for everything else.

use hive_proto::PROCESS_TOKEN_KEY;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::topology_service_client::TopologyServiceClient;
use hive_proto::v1::turn_history_service_client::TurnHistoryServiceClient;
use hive_proto::v1::watch_turn_response::Step;
use hive_proto::v1::{
    Agent, Delivery, DeliveryState, GetAgentRequest, GetTurnRequest, HarnessState,
    ListDeliveriesRequest, ListMessagesRequest, ListTurnsRequest, Message, OperatorRecipient,
    ParentRecipient, Recipient, SendMessageResponse, SystemKind, Turn, WatchTurnRequest, recipient,
};
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::{request, soon};

#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    process_token: Option<String>,
}

pub fn fresh_id() -> String {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).expect("random numbers");
    format!("test-{:016x}", u64::from_ne_bytes(bytes))
}

pub fn process_token() -> String {
    format!("{}-{}", fresh_id(), fresh_id())
}

/// A recipient as it is written in a test: a name, `operator`, `<parent>` or `*`.
pub fn to(text: &str) -> Option<Recipient> {
    let to = match text {
        "operator" => recipient::To::Operator(OperatorRecipient {}),
        "<parent>" => recipient::To::Parent(ParentRecipient {}),
        "*" => recipient::To::Everyone(hive_proto::v1::EveryoneRecipient {}),
        name => recipient::To::Agent(name.to_owned()),
    };
    Some(Recipient { to: Some(to) })
}

impl Client {
    /// A client without a process.
    pub fn new(channel: Channel) -> Self {
        Self { channel, process_token: None }
    }

    /// Returns this client as a claude process with this token.
    #[must_use]
    pub fn with_process(&self, token: &str) -> Self {
        Self { channel: self.channel.clone(), process_token: Some(token.to_owned()) }
    }

    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// A request with the process token, if there is one.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.process_token {
            request
                .metadata_mut()
                .insert(PROCESS_TOKEN_KEY, token.parse().expect("a token is plain text"));
        }
        request
    }

    /// Sends a message; the receipt or the refusal.
    pub async fn try_send(
        &self,
        recipient: &str,
        body: &str,
    ) -> Result<SendMessageResponse, Status> {
        let request = request::send(recipient, body);
        Ok(MessageServiceClient::new(self.channel())
            .send_message(self.request(request))
            .await?
            .into_inner())
    }

    pub async fn send(&self, recipient: &str, body: &str) -> u64 {
        self.try_send(recipient, body).await.expect("the message is accepted").message_id
    }

    /// Deliveries of an inbox (empty: one's own) in these states (none: all unsettled).
    pub async fn deliveries(&self, agent: &str, states: &[DeliveryState]) -> Vec<Delivery> {
        let states = states.iter().map(|state| i32::from(*state)).collect();
        let request = ListDeliveriesRequest {
            page_size: 500,
            page_token: String::new(),
            agent: agent.to_owned(),
            states,
        };
        let listed =
            InboxServiceClient::new(self.channel()).list_deliveries(self.request(request)).await;
        listed.expect("deliveries are listed").into_inner().deliveries
    }

    /// The unsettled notices of a kind in an inbox.
    pub async fn notices(&self, agent: &str, kind: SystemKind) -> Vec<Message> {
        let unsettled = self.deliveries(agent, &[]).await.into_iter();
        let messages = unsettled.filter_map(|delivery| delivery.message);
        messages.filter(|message| message.system_kind() == kind).collect()
    }

    /// The lines that a turn has printed, as far as they are kept.
    pub async fn lines(&self, turn_id: u64) -> Vec<String> {
        let request = WatchTurnRequest { turn_id, ..WatchTurnRequest::default() };
        let watched = TurnHistoryServiceClient::new(self.channel()).watch_turn(request).await;
        let mut stream = watched.expect("the turn is there").into_inner();
        let mut lines = Vec::new();
        while let Some(step) = stream.message().await.expect("the stream goes on") {
            if let Some(Step::Snapshot(part)) = step.step {
                lines.extend(part.events.into_iter().map(|event| event.line));
            }
        }
        lines
    }

    /// Returns a delivery in any state.
    pub async fn delivery(&self, agent: &str, message: u64) -> Delivery {
        let all: Vec<DeliveryState> =
            (1..=7).filter_map(|number| DeliveryState::try_from(number).ok()).collect();
        let found = self.deliveries(agent, &all).await.into_iter();
        let mut found = found
            .filter(|delivery| delivery.message.as_ref().is_some_and(|found| found.id == message));
        found.next().unwrap_or_else(|| panic!("message {message} is on its way to {agent}"))
    }

    /// All messages that the caller may see, oldest first.
    pub async fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut request = ListMessagesRequest { page_size: 500, ..ListMessagesRequest::default() };
        loop {
            let listed = MessageServiceClient::new(self.channel())
                .list_messages(self.request(request.clone()))
                .await;
            let page = listed.expect("messages are listed").into_inner();
            messages.extend(page.messages);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                messages.reverse();
                return messages;
            }
        }
    }

    /// The turns of an agent, oldest first.
    pub async fn turns(&self, agent: &str) -> Vec<Turn> {
        let request =
            ListTurnsRequest { page_size: 500, page_token: String::new(), agent: agent.to_owned() };
        let listed =
            TurnHistoryServiceClient::new(self.channel()).list_turns(self.request(request)).await;
        let mut turns = listed.expect("turns are listed").into_inner().turns;
        turns.reverse();
        turns
    }

    pub async fn turn(&self, id: u64) -> Turn {
        let found = TurnHistoryServiceClient::new(self.channel())
            .get_turn(self.request(GetTurnRequest { turn_id: id }))
            .await;
        found.expect("the turn is found").into_inner().turn.expect("a turn")
    }

    pub async fn get_agent(&self, name: &str) -> Agent {
        let request = GetAgentRequest { name: name.to_owned() };
        let found =
            TopologyServiceClient::new(self.channel()).get_agent(self.request(request)).await;
        found.expect("the agent is found").into_inner().agent.expect("an agent")
    }

    /// Waits until an agent's harness does this, as the broker shows it; the agent then. Such a
    /// change is no event, so it is asked for again and again.
    pub async fn does(&self, name: &str, state: HarnessState) -> Agent {
        let what = format!("{name} is {}", state.as_str_name());
        let seen = async {
            loop {
                let agent = self.get_agent(name).await;
                if agent.state() == state {
                    return agent;
                }
                tokio::task::yield_now().await;
            }
        };
        soon(&what, seen).await
    }

    /// The operator's tools.
    pub fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel())
    }
}
