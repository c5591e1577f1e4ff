//! The table, row by row: the owner may call, a stranger may not, and the sockets serve the right
//! services.

use hive_core::reason::Reason;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::{
    AttachResponse, Event, ListEventsRequest, ListEventsResponse, ListMessagesRequest,
    ListMessagesResponse,
};
use hive_proto::{status, v1};
use hive_tests::rig::raw;
use hive_tests::rig::soon;
use prost::Message as _;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use crate::authority_table::{OPERATOR_ONLY, Row, TABLE};
use crate::expected::{Stranger, group_of, of_operator, of_owner, of_stranger};
use crate::scene::{SECRET, Scene, of_others, path};

/// Asserts that a call was refused for this reason.
pub(crate) fn refused(row: &Row, who: &str, answer: Result<raw::Answer, Status>, reason: Reason) {
    match answer {
        Ok(answer) => {
            panic!("{}.{} was answered to {who}: {:?}", row.service, row.method, answer.first)
        }
        Err(refusal) => {
            assert_eq!(
                status::reason(&refusal),
                Some(reason),
                "{}.{} to {who}: {refusal:?}",
                row.service,
                row.method
            );
            assert_eq!(
                refusal.code(),
                status::code(reason),
                "{}.{} to {who}",
                row.service,
                row.method
            );
        }
    }
}

#[tokio::test]
async fn the_owner_may_call_and_only_the_listed_rpcs_change_the_disk() {
    let shared = Scene::set().await;
    for row in TABLE.iter().filter(|row| row.agent) {
        // Reads may follow one another; a write gets its own hive.
        let own = if row.mutates { Some(Scene::set().await) } else { None };
        let scene = own.as_ref().unwrap_or(&shared);
        let before = scene.on_disk();
        let things = scene.owner(row);
        let answer = scene.call(&things.agent, row, things).await;
        if let Some(reason) = of_owner(row) {
            refused(row, "its owner", answer, reason);
            scene.rig.unchanged(&before, row.method);
            continue;
        }
        let answer = answer.unwrap_or_else(|refusal| {
            panic!("{}.{} to its owner: {refusal:?}", row.service, row.method)
        });
        // A takeover of a session by its own holder resumes it and writes nothing.
        let is_resumed = row.method == "Attach" && resumed(&answer);
        assert_eq!(
            scene.on_disk() != before,
            row.mutates && !is_resumed,
            "{}.{}",
            row.service,
            row.method
        );
    }
}

fn resumed(answer: &raw::Answer) -> bool {
    match answer.decode::<AttachResponse>().step {
        Some(Step::Attached(attached)) => attached.resumed,
        step => panic!("{step:?}"),
    }
}

#[tokio::test]
async fn a_stranger_with_foreign_ids_and_tokens_changes_nothing_and_learns_nothing() {
    let shared = Scene::set().await;
    for row in TABLE.iter() {
        // A stranger's act on her own objects must not affect later rows.
        let own = if of_stranger(row) == Stranger::OnOwn { Some(Scene::set().await) } else { None };
        let scene = own.as_ref().unwrap_or(&shared);
        let things = scene.owner(row);
        let before = scene.on_disk();
        let answer = scene.call("ada", row, things).await;
        match of_stranger(row) {
            Stranger::Refused(reason) => {
                if let Err(refusal) = &answer {
                    assert!(!refusal.message().contains(SECRET), "{refusal:?}");
                }
                refused(row, "a stranger", answer, reason);
                scene.rig.unchanged(&before, row.method);
            }
            Stranger::Logged(reason) => {
                if let Err(refusal) = &answer {
                    assert!(!refusal.message().contains(SECRET), "{refusal:?}");
                }
                refused(row, "a stranger", answer, reason);
                scene.refusal_logged(&before, row.method);
            }
            Stranger::Absent => {
                let refusal = answer.expect_err("agents have no such service");
                assert_eq!(
                    refusal.code(),
                    Code::Unimplemented,
                    "{}.{}: {refusal:?}",
                    row.service,
                    row.method
                );
                scene.rig.unchanged(&before, row.method);
            }
            Stranger::Public => {
                let answer = answer.unwrap_or_else(|refusal| {
                    panic!("{}.{}: {refusal:?}", row.service, row.method)
                });
                let text = String::from_utf8_lossy(answer.first.as_deref().unwrap_or_default())
                    .into_owned();
                let secrets = [SECRET, &things.session, &things.process, &things.lease];
                let told =
                    secrets.iter().any(|secret| !secret.is_empty() && text.contains(*secret));
                assert!(!told, "{}.{}: {text}", row.service, row.method);
                scene.rig.unchanged(&before, row.method);
            }
            Stranger::OnOwn => {
                let answer = answer.unwrap_or_else(|refusal| {
                    panic!("{}.{}: {refusal:?}", row.service, row.method)
                });
                if row.method == "Attach" {
                    assert!(!resumed(&answer), "another's session is not taken up");
                }
                assert_eq!(
                    of_others(&scene.on_disk(), "ada"),
                    of_others(&before, "ada"),
                    "{}.{} changed something of another",
                    row.service,
                    row.method
                );
            }
        }
    }
    // The attacked agent still works.
    let beat = TABLE.iter().find(|row| row.method == "Heartbeat").expect("a row");
    shared.call("bob", beat, &shared.bob).await.expect("bob's session lives");
}

#[tokio::test]
async fn the_operator_may_call_its_rpcs_and_its_socket_has_no_agent_rpcs() {
    let shared = Scene::set().await;
    for row in TABLE.iter() {
        let own = if row.mutates && row.operator { Some(Scene::set().await) } else { None };
        let scene = own.as_ref().unwrap_or(&shared);
        let things = scene.owner(row);
        let before = scene.on_disk();
        let answer = scene.call_by("operator", row, things, "").await;
        if !row.operator {
            let refusal = answer.expect_err("the operator's socket has no such service");
            assert_eq!(
                refusal.code(),
                Code::Unimplemented,
                "{}.{}: {refusal:?}",
                row.service,
                row.method
            );
            scene.rig.unchanged(&before, row.method);
        } else if let Some(reason) = of_operator(row) {
            refused(row, "the operator", answer, reason);
            scene.rig.unchanged(&before, row.method);
        } else {
            drop(answer.unwrap_or_else(|refusal| {
                panic!("{}.{} to the operator: {refusal:?}", row.service, row.method)
            }));
            // A drain also writes what the end of the process causes; the test below waits for
            // that.
            if row.method != "Drain" {
                assert_eq!(
                    scene.on_disk() != before,
                    row.mutates,
                    "{}.{}",
                    row.service,
                    row.method
                );
            }
        }
    }
}

#[tokio::test]
async fn a_drain_ends_the_broker_and_only_the_operator_can_ask_for_it() {
    let mut scene = Scene::set().await;
    let drain = TABLE
        .iter()
        .find(|row| OPERATOR_ONLY.contains(&row.service) && row.method == "Drain")
        .expect("a row");
    assert_eq!(
        scene.call("ada", drain, &scene.bob).await.expect_err("no such service").code(),
        Code::Unimplemented
    );
    scene.call("operator", drain, &scene.bob).await.expect("it drains");
    assert!(soon("the broker ends", scene.rig.broker().wait()).await.success());
}

#[tokio::test]
async fn without_a_name_an_agent_gets_its_own_and_only_that() {
    let scene = Scene::set().await;
    let ada = scene.channel("ada");
    let get =
        |path: &'static str, request: Vec<u8>| raw::call(&ada, path, MetadataMap::new(), request);
    for thread_of in [0, scene.bob.message] {
        let request =
            ListMessagesRequest { thread_of, ..ListMessagesRequest::default() }.encode_to_vec();
        let listed =
            get("/hive.v1.MessageService/ListMessages", request).await.expect("her own mail");
        assert_eq!(listed.decode::<ListMessagesResponse>().messages, []);
    }
    let listed =
        get("/hive.v1.EventService/ListEvents", ListEventsRequest::default().encode_to_vec())
            .await
            .expect("her events");
    let events = listed.decode::<ListEventsResponse>().events;
    assert!(
        !events.is_empty() && events.iter().all(|event: &Event| event.agent == "ada"),
        "{events:?}"
    );
    let listed = get("/hive.v1.TurnHistoryService/ListTurns", Vec::new()).await.expect("her turns");
    assert_eq!(listed.decode::<v1::ListTurnsResponse>().turns, []);
    let listed = get("/hive.v1.InboxService/ListDeliveries", Vec::new()).await.expect("her inbox");
    assert_eq!(listed.decode::<v1::ListDeliveriesResponse>().deliveries, []);
    let own = get("/hive.v1.TopologyService/GetSelf", Vec::new()).await.expect("herself");
    assert_eq!(own.decode::<v1::GetSelfResponse>().agent.expect("an agent").name, "ada");
}

#[test]
fn there_is_an_answer_for_every_row() {
    for row in TABLE.iter() {
        assert!(path(row).starts_with("/hive.v1."));
        let _ = (of_stranger(row), of_operator(row), of_owner(row));
        if row.agent {
            let _ = group_of(row);
        }
    }
}
