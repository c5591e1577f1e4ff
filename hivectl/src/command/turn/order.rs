//! `hivectl turn cancel|new-session|model|restart`: commands to a harness.
//!
//! A command is a row in the broker: it outlives a harness that is away, and `hivectl events` tells when it was carried out.

use clap::Args;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::{CancelTurn, Command, RestartHarness, SendCommandRequest, SetModel, StartNewSession};

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::done::Done;

/// Cancel an agent's open turn; its mail is held until you release or drop it.
#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// Whose
    #[arg(add = complete::agents())]
    agent: String,
    /// Only if this turn is the open one
    #[arg(long, value_name = "ID", default_value_t = 0, hide_default_value = true, add = complete::open_turns())]
    turn: u64,
}

/// Begin the agent's next turn with a fresh conversation.
#[derive(Args, Debug)]
pub(crate) struct NewSession {
    /// Whose
    #[arg(add = complete::agents())]
    agent: String,
}

/// Run the agent on another model from its next turn on.
#[derive(Args, Debug)]
pub(crate) struct Model {
    /// Whose
    #[arg(add = complete::agents())]
    agent: String,
    /// A model's name or alias, as claude takes it
    model: String,
}

/// Hand back the agent's running turn and start its harness anew.
#[derive(Args, Debug)]
pub(crate) struct Restart {
    /// Whose
    #[arg(add = complete::agents())]
    agent: String,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let order = Order::CancelTurn(CancelTurn { turn_id: self.turn });
        give(context, self.agent, order, "told to cancel its turn").await
    }
}

impl NewSession {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        give(context, self.agent, Order::StartNewSession(StartNewSession {}), "told to begin a new session").await
    }
}

impl Model {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let words = format!("told to run on {} from the next turn on", self.model);
        give(context, self.agent, Order::SetModel(SetModel { model: self.model }), &words).await
    }
}

impl Restart {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        give(context, self.agent, Order::RestartHarness(RestartHarness {}), "told to start anew").await
    }
}

async fn give(context: &mut Context, agent: String, order: Order, words: &str) -> Result<Exit, Failure> {
    let broker = context.broker().await?;
    let response = broker
        .change(|request_id| {
            let command = Command { id: 0, create_time: None, command: Some(order.clone()) };
            let request = SendCommandRequest { request_id, agent: agent.clone(), command: Some(command) };
            let mut admin = broker.admin();
            async move { admin.send_command(request).await }
        })
        .await?;
    let sentence = format!("{agent} is {words} (command {})", response.command_id);
    let done = Done { done: "commanded", agent: Some(agent), command_id: Some(response.command_id), sentence, ..Done::default() };
    context.out.one(&done)?;
    Ok(Exit::Ok)
}
