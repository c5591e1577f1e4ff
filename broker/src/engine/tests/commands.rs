//! Commands to a harness: rows, replayed until they are acknowledged.

use hive_core::id::{CommandId, TurnId};

use super::*;

async fn command_bob(hive: &Hive, wanted: NewCommand) -> Result<CommandId, Refusal> {
    hive.engine()
        .create_command(caller("operator"), hive.request("Tell"), name("bob"), wanted)
        .await
}

async fn open_commands_of_bob(hive: &Hive, after: u64) -> Vec<(CommandId, Order)> {
    let key = hive.row("bob").await.key;
    let commands = hive.engine().open_commands(key, after).await.expect("read");
    commands.into_iter().map(|command| (command.id, command.order)).collect()
}

#[tokio::test]
async fn a_command_is_replayed_until_a_harness_has_acknowledged_it() {
    let mut hive = Hive::new(&["bob"]).await;
    // No harness is attached, so the command waits.
    let first =
        command_bob(&hive, NewCommand::Order(Order::StartNewSession)).await.expect("created");
    let second =
        command_bob(&hive, NewCommand::Order(Order::RestartHarness)).await.expect("created");
    let both = vec![(first, Order::StartNewSession), (second, Order::RestartHarness)];
    assert_eq!(open_commands_of_bob(&hive, 0).await, both);
    hive.crash().await;
    assert_eq!(open_commands_of_bob(&hive, 0).await, both);
    assert_eq!(open_commands_of_bob(&hive, first.get()).await, both[1..]);
    let harness = hive.attach("bob").await;
    let ack =
        |id| hive.engine().ack_command(caller("bob"), harness.token.clone(), id, String::new());
    ack(first).await.expect("closed");
    ack(first).await.expect("a second ack is accepted");
    assert_eq!(open_commands_of_bob(&hive, 0).await, both[1..]);
    hive.engine()
        .ack_command(caller("bob"), harness.token.clone(), second, "no".to_owned())
        .await
        .expect("a refusal by the harness closes it too");
    assert!(open_commands_of_bob(&hive, 0).await.is_empty());
    assert_eq!(hive.count_events(EventKind::CommandClosed).await, 2);
}

#[tokio::test]
async fn a_turn_begins_with_the_commands_that_were_given_before_it() {
    let hive = Hive::new(&["bob"]).await;
    let harness = hive.attach("bob").await;
    let closed =
        command_bob(&hive, NewCommand::Order(Order::StartNewSession)).await.expect("created");
    hive.engine()
        .ack_command(caller("bob"), harness.token.clone(), closed, String::new())
        .await
        .expect("closed");
    let open = command_bob(&hive, NewCommand::Order(Order::CompactSession)).await.expect("created");
    hive.send("operator", "bob", "work").await;
    let run = hive.begin(&harness).await;
    let commands: Vec<_> =
        run.begun().commands.iter().map(|command| (command.id, command.order.clone())).collect();
    assert_eq!(commands, [(open, Order::CompactSession)]);
}

#[tokio::test]
async fn only_the_present_session_of_the_right_agent_closes_a_command() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let id = command_bob(&hive, NewCommand::Order(Order::StartNewSession)).await.expect("created");
    let older = hive.attach("bob").await;
    let newer = hive.try_attach("bob", "", true).await.expect("it takes over");
    let alices = hive.attach("alice").await;
    let ack = async |who: &str, token: &str| {
        hive.engine()
            .ack_command(caller(who), token.to_owned(), id, String::new())
            .await
            .map_err(|refusal| refusal.reason())
    };
    assert_eq!(ack("bob", &older.token).await, Err(Reason::SessionLost));
    assert_eq!(ack("alice", &newer.token).await, Err(Reason::SessionLost));
    assert_eq!(ack("alice", &alices.token).await, Err(Reason::CommandNotFound));
    assert_eq!(open_commands_of_bob(&hive, 0).await.len(), 1);
    assert_eq!(ack("bob", &newer.token).await, Ok(()));
}

#[tokio::test]
async fn a_cancel_gets_the_id_of_the_open_turn_and_no_other_is_accepted() {
    let hive = Hive::new(&["alice", "bob"]).await;
    assert_eq!(reason(command_bob(&hive, NewCommand::CancelOpenTurn).await), Reason::TurnNotFound);
    hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    let other = TurnId::new(run.id.get() + 1).expect("a number");
    let wrong = command_bob(&hive, NewCommand::Order(Order::CancelTurn(other))).await;
    assert_eq!(reason(wrong), Reason::TurnNotFound);
    let id = command_bob(&hive, NewCommand::CancelOpenTurn).await.expect("created");
    assert_eq!(open_commands_of_bob(&hive, 0).await, [(id, Order::CancelTurn(run.id))]);
    hive.end(&run, Outcome::Cancelled).await;
}

#[tokio::test]
async fn the_attached_harness_hears_of_a_command_at_once() {
    let hive = Hive::new(&["bob"]).await;
    let harness = hive.attach("bob").await;
    let hints = hive.engine().hints().agent(harness.attachment().agent());
    let told = hints.changed.notified();
    tokio::pin!(told);
    told.as_mut().enable();
    command_bob(&hive, NewCommand::Order(Order::StartNewSession)).await.expect("created");
    tokio::time::timeout(Duration::from_secs(30), told).await.expect("it is hinted");
}

#[tokio::test]
async fn a_model_with_an_invalid_name_is_refused_and_a_valid_one_is_stored() {
    let hive = Hive::new(&["bob"]).await;
    for model in ["", "--dangerous", "a\nb"] {
        let refusal =
            command_bob(&hive, NewCommand::Order(Order::SetModel(model.to_owned()))).await;
        assert_eq!(reason(refusal), Reason::FieldInvalid, "{model:?}");
    }
    command_bob(&hive, NewCommand::Order(Order::SetModel("large".to_owned())))
        .await
        .expect("created");
    assert_eq!(hive.agent("bob").await.model, "large");
}

#[tokio::test]
async fn a_command_said_twice_is_one_command() {
    let hive = Hive::new(&["bob"]).await;
    let key = request("Tell", "c1", 1);
    let order = || NewCommand::Order(Order::RestartHarness);
    let first = hive
        .engine()
        .create_command(caller("operator"), key.clone(), name("bob"), order())
        .await
        .expect("created");
    let again = hive
        .engine()
        .create_command(caller("operator"), key, name("bob"), order())
        .await
        .expect("answered again");
    assert_eq!(first, again);
    assert_eq!(open_commands_of_bob(&hive, 0).await.len(), 1);
}
