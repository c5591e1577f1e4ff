//! Policies: a forbidden call is refused on the agent's socket, for any client, and the operator
//! sees the attempt.

use hive_core::agent::TOOL_GROUPS;
use hive_core::reason::Reason;
use hive_proto::convert::IntoWire as _;
use hive_proto::status;
use hive_proto::v1::event::Facts;
use hive_proto::v1::*;
use hive_tests::rig::{Rig, Watch, fresh_id, request};
use prost::Message;
use rustix::process::Signal;
use tonic::Status;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

use crate::authority_table::{Row, TABLE};
use crate::calls::{
    answer, ask, asked, call, did, done, loose_ends, names, refused, remind, reminded, send,
    set_policy,
};
use crate::expected::group_of;
use crate::rows;
use crate::scene::{Scene, Things};

/// A hive, its operator, and the operator's watch.
pub(crate) struct Stage {
    pub(crate) rig: Rig,
    pub(crate) operator: Channel,
    watch: Watch,
}

impl Stage {
    pub(crate) async fn set(config: &str) -> Self {
        let mut rig = Rig::new(config);
        rig.start_broker().await;
        let (operator, watch) = (rig.operator().await.channel(), rig.watch().await);
        Self { rig, operator, watch }
    }

    pub(crate) async fn agent(&self, name: &str) -> Channel {
        self.rig.agent(name).await.channel()
    }

    /// Changes a policy; returns it without its etag.
    pub(crate) async fn policy(&self, name: &str, fields: &[&str], policy: Policy) -> Policy {
        let set: SetPolicyResponse = done(&self.operator, &set_policy(name, fields, policy)).await;
        let policy = set.agent.and_then(|agent| agent.policy).expect("a policy");
        Policy { etag: String::new(), ..policy }
    }

    /// Asserts that a call is refused, that the operator sees an event of it with these words, and
    /// that nothing else changed.
    pub(crate) async fn refused(
        &mut self,
        agent: &str,
        request: &impl Message,
        reason: Reason,
        words: &str,
    ) -> Status {
        let (channel, before) = (self.agent(agent).await, self.rig.on_disk());
        let refusal = refused(&channel, request, reason).await;
        assert!(refusal.message().contains(words), "`{words}` is not in `{}`", refusal.message());
        let event = self.watch.kind(agent, EventKind::Refused).await;
        assert!(
            event.detail.ends_with(refusal.message()),
            "`{}` ends with `{}`",
            event.detail,
            refusal.message()
        );
        let facts = CallRefused { reason: reason.into_wire().into() };
        assert_eq!(event.facts, Some(Facts::Refused(facts)));
        let mut after = self.rig.on_disk();
        let logged = after.get_mut("event").expect("a table").pop();
        assert!(
            logged
                .is_some_and(|row| row.contains(&format!("sequence=Integer({});", event.sequence)))
        );
        assert_eq!(hive_tests::rig::on_disk::changes(&before, &after), [""; 0]);
        refusal
    }
}

#[tokio::test]
async fn without_a_tool_group_its_calls_are_refused_and_no_others() {
    for (group, calls) in [
        ("messaging", 4),
        ("inbox", 4),
        ("meta", 4),
        ("lifecycle", 3),
        ("diagnostics", 2),
        ("approvals", 1),
    ] {
        let scene = Scene::set().await;
        let rest: Vec<&str> = TOOL_GROUPS.into_iter().filter(|other| *other != group).collect();
        for name in ["bob", "cyd", "dan"] {
            let policy = Policy { tool_groups: names(&rest), ..Policy::default() };
            let request = set_policy(name, &["tool_groups"], policy);
            did(&scene.channel("operator"), &request).await;
        }
        let mut watch = scene.rig.watch_from_now().await;
        let on_agents = TABLE.iter().filter(|row| row.agent);
        let (of_group, others): (Vec<&Row>, Vec<&Row>) =
            on_agents.partition(|row| group_of(row) == Some(group));
        assert!(of_group.len() >= calls, "{group}");
        for row in of_group {
            let owner = scene.owner(row);
            // About another agent: an agent may always read about itself.
            let things = Things { agent: "ada".to_owned(), ..owner.clone() };
            let before = scene.on_disk();
            let answer = scene.call(&owner.agent, row, &things).await;
            rows::refused(row, "one without the group", answer, Reason::CapabilityMissing);
            scene.refusal_logged(&before, row.method);
            let event = watch.kind(&owner.agent, EventKind::Refused).await;
            assert!(
                event.detail.contains(&format!("tool group `{group}`")),
                "{}: {}",
                row.method,
                event.detail
            );
        }
        for row in others {
            let owner = scene.owner(row);
            if let Err(refusal) = scene.call(&owner.agent, row, owner).await {
                assert_ne!(
                    status::reason(&refusal),
                    Some(Reason::CapabilityMissing),
                    "{}: {refusal:?}",
                    row.method
                );
            }
        }
        let cyd = scene.channel("cyd");
        did(&cyd, &GetSelfRequest {}).await;
        did(&cyd, &GetAgentRequest { name: "cyd".to_owned() }).await;
    }
}

#[tokio::test]
async fn mail_and_questions_go_to_allowed_recipients_and_the_parent_only() {
    let config = "[agents.boss]\n[agents.ada]\nparent = \"boss\"\nallowed_recipients = [\"bob\"]\n\
                  [agents.bob]\n[agents.cyd]\n[agents.root]\nallowed_recipients = [\"bob\"]\n";
    let mut stage = Stage::set(config).await;
    let (ada, root, cyd) =
        (stage.agent("ada").await, stage.agent("root").await, stage.agent("cyd").await);
    for to in ["bob", "boss", "<parent>"] {
        did(&ada, &send(to, "hello")).await;
        asked(&ada, to, "well?").await;
    }
    // The parent of a root is the operator.
    for to in ["bob", "operator", "<parent>"] {
        did(&root, &send(to, "hello")).await;
        asked(&root, to, "well?").await;
    }
    let denied = Reason::RecipientNotAllowed;
    for to in ["cyd", "operator", "ada"] {
        let words = format!("`{to}`; allowed are: bob, <parent>");
        stage.refused("ada", &send(to, "hello"), denied, &words).await;
        stage.refused("ada", &ask(to, "well?"), denied, &words).await;
    }
    stage.refused("root", &send("cyd", "hello"), denied, "allowed are: bob, operator").await;
    // No list of recipients contains everyone.
    stage.refused("ada", &send("*", "hello"), denied, "`*`").await;
    // The target of a question may answer, whichever agent asked.
    let question = asked(&cyd, "ada", "may you?").await;
    did(&ada, &answer(question, "this I may")).await;
    // None of it reached any recipient.
    for name in ["cyd", "operator"] {
        let mut mail = stage.rig.operator().await.deliveries(name, &[]).await;
        mail.retain(|delivery| {
            delivery.message.as_ref().is_some_and(|message| message.body.contains("ada asks"))
        });
        assert_eq!(mail, [], "{name}");
    }
}

#[tokio::test]
async fn open_items_are_listed_for_the_parent_and_for_granted_agents() {
    let config = "[agents.ada]\n[agents.bob]\nparent = \"ada\"\n[agents.cyd]\nparent = \"bob\"\n";
    let mut stage = Stage::set(config).await;
    let (ada, bob, cyd) =
        (stage.agent("ada").await, stage.agent("bob").await, stage.agent("cyd").await);
    let mut own = Vec::new();
    for channel in [&ada, &bob, &cyd] {
        own.push(reminded(channel, "one of mine").await);
    }
    let list = async |channel: &Channel, agent: &str| -> Vec<u64> {
        let listed: ListLooseEndsResponse = done(channel, &loose_ends(agent)).await;
        listed.loose_ends.into_iter().map(|loose_end| loose_end.id).collect()
    };
    assert_eq!(list(&ada, "").await, [own[0]]);
    assert_eq!(list(&ada, "ada").await, [own[0]]);
    assert_eq!(list(&ada, "bob").await, [own[1]], "her child");
    for (who, whose) in [("ada", "cyd"), ("bob", "ada"), ("cyd", "ada"), ("cyd", "bob")] {
        let words = format!(
            "`{whose}` is not your direct child; for others you need the capability `query_agent_state`"
        );
        stage.refused(who, &loose_ends(whose), Reason::NotYourChild, &words).await;
    }
    let granted = Policy { capabilities: names(&["query_agent_state"]), ..Policy::default() };
    stage.policy("cyd", &["capabilities"], granted).await;
    assert_eq!((list(&cyd, "ada").await, list(&cyd, "bob").await), (vec![own[0]], vec![own[1]]));
    // The capability is for reading: only the owner may close.
    let close = CancelLooseEndRequest {
        request_id: fresh_id(),
        kind: LooseEndKind::Reminder.into(),
        id: own[0],
    };
    refused(&cyd, &close, Reason::ReminderNotFound).await;
    // The operator's open questions are shown to no agent.
    refused(&cyd, &loose_ends("operator"), Reason::AgentNotFound).await;
    stage.policy("cyd", &["capabilities"], Policy::default()).await;
    stage.refused("cyd", &loose_ends("bob"), Reason::NotYourChild, "`bob`").await;
    assert_eq!(list(&stage.operator, "").await, own, "the operator sees every agent's");
}

#[tokio::test]
async fn the_rate_binds_messages_questions_reminders_and_wakes_together() {
    let config = "[agents.ada]\nlimits.sends_per_minute_max = 1\n[agents.bob]\n[agents.cyd]\nlimits.sends_per_minute_max = 1\n";
    let mut stage = Stage::set(config).await;
    let (ada, bob) = (stage.agent("ada").await, stage.agent("bob").await);
    did(&ada, &send("bob", "the one of this minute")).await;
    let refusal = stage
        .refused("ada", &send("bob", "too much"), Reason::RateLimited, "at most 1 message a minute")
        .await;
    let wait = |refusal: &Status| {
        refusal
            .get_details_retry_info()
            .and_then(|info| info.retry_delay)
            .expect("how long")
            .as_secs()
    };
    assert!((1..=60).contains(&wait(&refusal)), "{refusal:?}");
    // A fleet at its limit must not fill the log: one refusal per minute is kept.
    let before = stage.rig.on_disk();
    for refusal in [
        refused(&ada, &ask("bob", "too much?"), Reason::RateLimited).await,
        refused(&ada, &remind("too much"), Reason::RateLimited).await,
    ] {
        assert!((1..=60).contains(&wait(&refusal)), "{refusal:?}");
    }
    stage.rig.unchanged(&before, "a further refusal");
    // A co-process's message counts as its agent's.
    let wake = || request::wake("ci", "built");
    let cyd = stage.agent("cyd").await;
    did(&cyd, &wake()).await;
    let refusal =
        stage.refused("cyd", &wake(), Reason::RateLimited, "at most 1 message a minute").await;
    assert!((1..=60).contains(&wait(&refusal)), "{refusal:?}");
    for number in 0..20 {
        did(&bob, &send("ada", format!("number {number}, others go on"))).await;
    }
}

#[tokio::test]
async fn stored_bytes_questions_and_reminders_are_bound_for_each_agent() {
    let mut stage = Stage::set("[agents.ada]\n[agents.bob]\n[agents.cyd]\n[agents.dan]\n").await;
    let one = |field: &str| Policy {
        sender_stored_bytes_max: (field == "sender_stored_bytes_max").then_some(10),
        questions_open_max: (field == "questions_open_max").then_some(1),
        reminders_pending_max: (field == "reminders_pending_max").then_some(1),
        ..Policy::default()
    };
    for (agent, field) in [
        ("ada", "sender_stored_bytes_max"),
        ("bob", "questions_open_max"),
        ("cyd", "reminders_pending_max"),
    ] {
        stage.policy(agent, &[field], one(field)).await;
    }
    let (ada, bob, cyd, dan) = (
        stage.agent("ada").await,
        stage.agent("bob").await,
        stage.agent("cyd").await,
        stage.agent("dan").await,
    );

    let first: SendMessageResponse = done(&ada, &send("dan", "ten bytes!")).await;
    let refusal = stage.refused("ada", &send("dan", "!"), Reason::StorageFull, "10 bytes").await;
    assert!(
        refusal.get_details_retry_info().is_some_and(|info| info.retry_delay.is_some()),
        "{refusal:?}"
    );
    let key = Some(DeliveryKey { agent: "dan".to_owned(), message_id: first.message_id });
    let drop_it = DropDeliveryRequest { request_id: fresh_id(), key };
    did(&stage.operator, &drop_it).await;
    did(&ada, &send("dan", "room again")).await;

    let question = asked(&bob, "dan", "one?").await;
    let refusal = stage
        .refused("bob", &ask("dan", "two?"), Reason::QuestionLimit, "1 open question; at most 1")
        .await;
    assert!(refusal.get_details_retry_info().is_none(), "time alone does not help: {refusal:?}");
    did(&dan, &answer(question, "yes")).await;
    asked(&bob, "dan", "two?").await;

    let reminder = reminded(&cyd, "one").await;
    let refusal = stage
        .refused("cyd", &remind("two"), Reason::ReminderLimit, "1 pending reminder; at most 1")
        .await;
    assert!(refusal.get_details_retry_info().is_none(), "{refusal:?}");
    let cancel = CancelReminderRequest { request_id: fresh_id(), reminder_id: reminder };
    did(&cyd, &cancel).await;
    reminded(&cyd, "two").await;

    // The limit applies to no other agent.
    for number in 0..3 {
        did(&dan, &send("ada", "more than ten bytes")).await;
        asked(&dan, "bob", &format!("number {number}?")).await;
        reminded(&dan, &format!("number {number}")).await;
    }
}

#[tokio::test]
async fn the_variable_for_pending_reminders_limits_every_agent() {
    let mut rig = Rig::new("[broker.limits]\nreminders_pending_max = 9\n[agents.ada]\n");
    let mut command = rig.broker_command();
    command.env("HIVE_REMIND_MAX_PENDING_PER_AGENT", "2");
    rig.start_broker_by(command).await;
    let ada = rig.agent("ada").await.channel();
    let told: GetServerInfoResponse = done(&ada, &GetServerInfoRequest::default()).await;
    assert_eq!(told.limits.expect("bounds").reminders_pending_max, 2);
    reminded(&ada, "one").await;
    reminded(&ada, "two").await;
    refused(&ada, &remind("three"), Reason::ReminderLimit).await;
}

#[tokio::test]
async fn a_policy_is_changed_field_by_field_and_holds_from_the_next_call_on() {
    let mut stage = Stage::set("[agents.ada]\n[agents.bob]\n[agents.cyd]\n").await;
    let ada = stage.agent("ada").await;
    let full = Policy {
        tool_groups: names(&["messaging", "meta"]),
        allowed_recipients: names(&["bob"]),
        capabilities: names(&["query_agent_state"]),
        sends_per_minute_max: Some(100),
        sender_stored_bytes_max: Some(1000),
        questions_open_max: Some(3),
        reminders_pending_max: Some(4),
        grants: names(&["create_agent", "own_schedules"]),
        children_max: Some(2),
        schedules_max: Some(6),
        etag: String::new(),
    };
    did(&ada, &send("cyd", "while I may")).await;
    assert_eq!(stage.policy("ada", &[], full.clone()).await, full, "without a mask all of it");
    stage.refused("ada", &send("cyd", "no more"), Reason::RecipientNotAllowed, "`cyd`").await;
    stage.refused("ada", &remind("no more"), Reason::CapabilityMissing, "tool group `inbox`").await;

    // Only the fields that the mask names, and to their defaults if unset.
    let other = Policy {
        questions_open_max: Some(9),
        allowed_recipients: names(&["cyd"]),
        ..Policy::default()
    };
    let wanted = Policy { allowed_recipients: names(&["cyd"]), ..full.clone() };
    assert_eq!(stage.policy("ada", &["allowed_recipients"], other).await, wanted);
    did(&ada, &send("cyd", "again")).await;
    stage.refused("ada", &send("bob", "not to him"), Reason::RecipientNotAllowed, "`bob`").await;
    let wanted = Policy { allowed_recipients: Vec::new(), questions_open_max: None, ..wanted };
    assert_eq!(
        stage.policy("ada", &["questions_open_max", "allowed_recipients"], Policy::default()).await,
        wanted
    );
    let default: Policy = stage.policy("bob", &[], Policy::default()).await;
    assert_eq!(default.tool_groups, ["messaging", "inbox", "meta", "execution"]);
    assert_eq!(
        stage.policy("ada", &["tool_groups"], Policy::default()).await.tool_groups,
        default.tool_groups
    );
    reminded(&ada, "once more").await;

    // A change of policy is an event, and a repeated request is done once.
    let request = set_policy(
        "ada",
        &["reminders_pending_max"],
        Policy { reminders_pending_max: Some(5), ..Policy::default() },
    );
    did(&stage.operator, &request).await;
    let before = stage.rig.on_disk();
    let again: SetPolicyResponse = done(&stage.operator, &request).await;
    assert_eq!(
        again.agent.and_then(|agent| agent.policy).and_then(|policy| policy.reminders_pending_max),
        Some(5)
    );
    stage.rig.unchanged(&before, "a request said twice");
    let changed =
        |event: &Event| event.agent == "ada" && event.detail == "policy: reminders_pending_max";
    let event = stage.watch.until("the change is an event", changed).await;
    assert_eq!(event.kind(), EventKind::AgentChanged);
}

#[tokio::test]
async fn a_field_set_at_run_time_stays_until_the_file_changes_it() {
    let config = "[agents.ada]\nallowed_recipients = [\"bob\"]\nlimits.questions_open_max = 5\n[agents.bob]\n";
    let mut stage = Stage::set(config).await;
    let set = Policy {
        allowed_recipients: names(&["cyd"]),
        questions_open_max: Some(8),
        ..Policy::default()
    };
    stage.policy("ada", &["allowed_recipients", "questions_open_max"], set).await;
    stage.rig.stop_broker().await;
    stage.rig.start_broker().await;
    let policy =
        async |rig: &Rig| rig.operator().await.get_agent("ada").await.policy.expect("a policy");
    let kept = policy(&stage.rig).await;
    assert_eq!((kept.allowed_recipients, kept.questions_open_max), (names(&["cyd"]), Some(8)));
    stage.rig.configure("[agents.ada]\nallowed_recipients = [\"bob\"]\nlimits.questions_open_max = 6\n[agents.bob]\n");
    stage.rig.broker().signal(Signal::HUP);
    stage.rig.broker().says("the configuration file was read again").await;
    let kept = policy(&stage.rig).await;
    assert_eq!((kept.allowed_recipients, kept.questions_open_max), (names(&["cyd"]), Some(6)));
}

#[tokio::test]
async fn endless_refusals_do_not_fill_the_log() {
    let stage =
        Stage::set("[agents.ada]\nallowed_recipients = [\"bob\"]\n[agents.bob]\n[agents.cyd]\n")
            .await;
    let ada = stage.agent("ada").await;
    for number in 0..200 {
        let answer = call(&ada, &send("cyd", format!("{number}"))).await.map(drop);
        assert_eq!(
            answer.map_err(|refusal| status::reason(&refusal)),
            Err(Some(Reason::RecipientNotAllowed))
        );
    }
    let list = ListEventsRequest { page_size: 500, ..ListEventsRequest::default() };
    let listed: ListEventsResponse = done(&stage.operator, &list).await;
    let logged = listed.events.iter().filter(|event| event.kind() == EventKind::Refused).count();
    // 60 per minute, and those allowed again during the run.
    assert!((60..150).contains(&logged), "{logged}");
}
