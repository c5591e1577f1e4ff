//! Commands of the operator to a harness. The broker stores a command until a harness has
//! acknowledged it, so it survives a lost connection and a restart.

use crate::engine::error::{HarnessError, TurnError};
use hive_core::agent::is_model_name;
use hive_core::caller::Caller;
use hive_core::command::{Command, Order};
use hive_core::event::{AgentChange, AgentChanged, CommandClosed, CommandGiven};
use hive_core::id::CommandId;
use hive_core::limits::{ERROR_BYTES_MAX, MODEL_CHARS_MAX};
use hive_core::name::AgentName;
use hive_core::turn::MAIN_CONVERSATION;

use crate::engine::actor::session;
use crate::engine::turn::kick;
use crate::engine::{Engine, Refusal, actor};
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Tx, agent, command, turn};

/// A command of the operator to a harness.
#[derive(Clone, Debug)]
pub enum NewCommand {
    /// An order.
    Order(Order),
    /// Cancels the open turn; the broker fills in its id.
    CancelOpenTurn,
}

impl Engine {
    /// Creates a command for a harness.
    pub async fn create_command(
        &self,
        caller: Caller,
        request: RequestKey,
        name: AgentName,
        wanted: NewCommand,
    ) -> Result<CommandId, Refusal> {
        self.check_open()?;
        if let NewCommand::Order(Order::SetModel(model)) = &wanted
            && !is_model_name(model)
        {
            let problem = format!(
                "a model's name has 1 to {MODEL_CHARS_MAX} printable characters and does not begin with `-`"
            );
            return Err(Refusal::Field { field: "command.set_model.model", problem });
        }
        let who = caller.name().to_owned();
        self.command(caller, request, move |tx| {
            let mut row = (*actor::active(tx, name.as_str())?).clone();
            let open_turn = turn::open_of(tx, row.key, MAIN_CONVERSATION)?.map(|turn| turn.id);
            let order = match wanted {
                NewCommand::CancelOpenTurn => Order::CancelTurn(
                    open_turn.ok_or_else(|| TurnError::NoneOpen { agent: row.name.clone() })?,
                ),
                NewCommand::Order(Order::CancelTurn(id)) if open_turn != Some(id) => {
                    return Err(Refusal::from(TurnError::NotFound { id }));
                }
                NewCommand::Order(order) => order,
            };
            if order == Order::RestartHarness {
                actor::check_started(&row)?;
            }
            if let Order::SetModel(model) = &order {
                return set_model(tx, &mut row, model, &who);
            }
            give(tx, &row, &order, &who)
        })
        .await
    }

    /// Returns the open commands of an agent with an id above `after`.
    pub async fn open_commands(
        &self,
        agent: AgentKey,
        after: u64,
    ) -> Result<Vec<Command>, Refusal> {
        self.store.read(move |conn, _| Ok(command::open(conn, agent, after)?)).await
    }

    /// Closes a command. Its effects happen once, however often a harness closes it.
    pub async fn ack_command(
        &self,
        caller: Caller,
        session_token: String,
        id: CommandId,
        error: String,
    ) -> Result<(), Refusal> {
        self.check_open()?;
        if error.len() > ERROR_BYTES_MAX {
            let problem =
                format!("it has {} bytes; at most {ERROR_BYTES_MAX} are allowed", error.len());
            return Err(Refusal::Field { field: "error", problem });
        }
        let (limits, presences) =
            (std::sync::Arc::clone(&self.limits), std::sync::Arc::clone(&self.presences));
        self.store
            .write(move |tx| {
                let me = session(tx, &caller, &session_token)?;
                presences.touch(me.key, &session_token, tx.now.boot);
                match command::is_closed(tx, me.key, id)? {
                    None => Err(Refusal::from(HarnessError::CommandNotFound { id })),
                    Some(true) => Ok(()),
                    Some(false) => {
                        command::close(tx, id, &error)?;
                        let detail = if error.is_empty() {
                            format!("command {id}: done")
                        } else {
                            format!("command {id}: refused: {error}")
                        };
                        let done = error.is_empty();
                        let closed = CommandClosed { done, command_id: Some(id) };
                        log(tx, Fact::about(closed, me.key).detail(&detail));
                        if done && command::order(tx, me.key, id)? == Some(Order::RestartHarness) {
                            kick::on_order(tx, &limits, &me)?;
                        }
                        Ok(())
                    }
                }
            })
            .await
    }
}

/// Stores another model of an agent, and orders its harness to use it.
pub(crate) fn set_model(
    tx: &Tx<'_>,
    row: &mut AgentRow,
    model: &str,
    who: &str,
) -> Result<CommandId, Refusal> {
    check_available(row, model, "command.set_model.model")?;
    model.clone_into(&mut row.model);
    agent::update(tx, row)?;
    log(tx, Fact::about(AgentChanged { change: AgentChange::Model }, row.key).detail("model"));
    give(tx, row, &Order::SetModel(model.to_owned()), who)
}

/// Stores an order for a harness.
fn give(tx: &Tx<'_>, row: &AgentRow, order: &Order, who: &str) -> Result<CommandId, Refusal> {
    let id = CommandId::new(tx.next_id()).expect("the sequence begins with 1");
    command::insert(tx, id, row.key, order, who)?;
    let detail = format!("command {id}: {order}, by {who}");
    let given = CommandGiven { kind: order.kind(), command_id: Some(id) };
    log(tx, Fact::about(given, row.key).detail(&detail));
    Ok(id)
}

/// Refuses a model that is not in the agent's `available_models`; an empty list allows every model.
pub(crate) fn check_available(
    row: &AgentRow,
    model: &str,
    field: &'static str,
) -> Result<(), Refusal> {
    let models = &row.available_models;
    if models.is_empty() || models.iter().any(|known| known == model) {
        return Ok(());
    }
    let (name, models) = (&row.name, models.join(", "));
    let problem = format!(
        "`{name}` may be switched to {models}; add others to `available_models` in hive.toml"
    );
    Err(Refusal::Field { field, problem })
}
