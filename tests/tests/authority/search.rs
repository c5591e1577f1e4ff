//! Searching: an agent finds what it sent, received, asked or was asked. Of anything else it cannot
//! even learn the number.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::search_hit::Hit;
use hive_proto::v1::*;
use hive_tests::rig::{Rig, request, soon};
use tonic::transport::Channel;

use crate::calls::{answer, asked, call, channels, did, done, refused, send, set_policy};

/// The results: `m` or `q`, and the number.
type Found = Vec<(char, u64)>;

fn query(words: &str, agent: &str) -> SearchMessagesRequest {
    SearchMessagesRequest {
        query: words.to_owned(),
        agent: agent.to_owned(),
        ..SearchMessagesRequest::default()
    }
}

fn ids(response: &SearchMessagesResponse) -> Found {
    let id = |hit: &SearchHit| match hit.hit.as_ref().expect("one of the two") {
        Hit::Message(message) => ('m', message.id),
        Hit::Question(question) => ('q', question.id),
    };
    response.hits.iter().map(id).collect()
}

async fn search(channel: &Channel, words: &str, agent: &str) -> Found {
    ids(&done(channel, &query(words, agent)).await)
}

/// Waits until a search of the operator's has the right answer. A further commit, which is about an
/// agent and changes nothing, precedes each further poll.
async fn finds(operator: &Channel, agent: &str, words: &str, is_right: impl Fn(&Found) -> bool) {
    soon("the index is where it should be", async {
        loop {
            match call(operator, &query(words, "")).await {
                Ok(found) if is_right(&ids(&found.decode())) => return,
                Ok(_) => {}
                // The index is being built.
                Err(refusal) => assert_eq!(
                    status::reason(&refusal),
                    Some(Reason::StorageUnavailable),
                    "{refusal:?}"
                ),
            }
            let nothing_new = set_policy(agent, &["capabilities"], Policy::default());
            did(operator, &nothing_new).await;
        }
    })
    .await;
}

/// Waits until searches are answered at all.
pub(crate) async fn ready(operator: &Channel, agent: &str) {
    finds(operator, agent, "anything", |_| true).await;
}

/// Waits until the operator finds a message. The index follows the mail in the order of the
/// commits, so all earlier mail is in it too.
async fn indexed(operator: &Channel, words: &str, id: u64) {
    finds(operator, "tick", words, |found| found.contains(&('m', id))).await;
}

async fn hive() -> (Rig, [Channel; 4]) {
    let mut rig =
        Rig::new("[agents.ada]\n[agents.bob]\nparent = \"ada\"\n[agents.cyd]\n[agents.tick]\n");
    rig.start_broker().await;
    let channels = channels(&rig).await;
    (rig, channels)
}

#[tokio::test]
async fn agents_find_their_own_and_the_operator_everything() {
    let (rig, [ada, bob, cyd, operator]) = hive().await;
    let told = async |channel: &Channel, to: &str| -> u64 {
        let sent: SendMessageResponse = done(channel, &send(to, "Zebra crossings, überall.")).await;
        sent.message_id
    };
    let to_bob = told(&ada, "bob").await;
    let to_ada = told(&operator, "ada").await;
    let to_operator = told(&cyd, "operator").await;
    let to_all = told(&bob, "*").await;
    let question = asked(&bob, "cyd", "Is the zebra striped?").await;
    // The mail that carries a question is found as the question; the mail with its outcome is found
    // like any other.
    did(&cyd, &answer(question, "Okapi.")).await;
    let outcome = rig
        .agent("bob")
        .await
        .messages()
        .await
        .into_iter()
        .rfind(|message| message.question_id == question);
    let outcome = outcome.expect("it was notified").id;
    let wake = request::wake("zoo", "A zebra ran away.");
    let woken: WakeResponse = done(&cyd, &wake).await;
    let last: SendMessageResponse = done(&operator, &send("tick", "sentinel")).await;
    indexed(&operator, "sentinel", last.message_id).await;

    let m = |id| ('m', id);
    let (q, outcome) = (('q', question), m(outcome));
    assert_eq!(search(&ada, "zebra", "").await, [m(to_all), m(to_ada), m(to_bob)]);
    assert_eq!(search(&ada, "zebra", "ada").await, [m(to_all), m(to_ada), m(to_bob)]);
    assert_eq!(search(&bob, "ZEBRA", "").await, [outcome, q, m(to_all), m(to_bob)]);
    assert_eq!(search(&cyd, "zeb*", "").await, [m(woken.message_id), q, m(to_all), m(to_operator)]);
    let all = [m(woken.message_id), outcome, q, m(to_all), m(to_operator), m(to_ada), m(to_bob)];
    assert_eq!(search(&operator, "zebra", "").await, all);
    assert_eq!(search(&operator, "zebra", "bob").await, [outcome, q, m(to_all), m(to_bob)]);
    assert_eq!(
        (search(&bob, "okapi", "").await, search(&cyd, "okapi", "").await),
        (vec![outcome], vec![]),
        "as it was sent"
    );
    assert_eq!(search(&operator, "zebra", "operator").await, [m(to_operator), m(to_ada)]);
    assert_eq!(
        search(&ada, "\"zebra crossings\" uberall", "").await,
        [m(to_all), m(to_ada), m(to_bob)]
    );
    assert_eq!(search(&ada, "sentinel", "").await, []);
    assert_eq!(search(&ada, "striped", "").await, [], "a question between two others");

    // Naming another agent does not give access to its mail, not even a child's.
    let before = rig.on_disk();
    for (channel, whose) in
        [(&ada, "bob"), (&ada, "operator"), (&cyd, "ada"), (&bob, "nobody-of-this-name")]
    {
        refused(channel, &query("zebra", whose), Reason::NotYours).await;
    }
    refused(&operator, &query("zebra", "adda"), Reason::AgentNotFound).await;
    rig.unchanged(&before, "a search");
}

#[tokio::test]
async fn pages_and_their_ends_reveal_nothing_about_other_agents() {
    let (_rig, [ada, bob, cyd, operator]) = hive().await;
    let mut own = Vec::new();
    for number in 0..3 {
        let to_bob = send("bob", format!("needle {number}"));
        let sent: SendMessageResponse = done(&ada, &to_bob).await;
        own.push(('m', sent.message_id));
        for _ in 0..4 {
            let between: SendMessageResponse =
                done(&cyd, &send("operator", format!("needle {number}"))).await;
            assert!(between.message_id > sent.message_id);
        }
    }
    own.reverse();
    let last: SendMessageResponse = done(&operator, &send("tick", "sentinel")).await;
    indexed(&operator, "sentinel", last.message_id).await;
    for channel in [&ada, &bob] {
        let (mut found, mut page_token) = (Vec::new(), String::new());
        for left in (0..3).rev() {
            let request = SearchMessagesRequest { page_size: 1, page_token, ..query("needle", "") };
            let page: SearchMessagesResponse = done(channel, &request).await;
            assert_eq!(page.hits.len(), 1);
            found.extend(ids(&page));
            page_token = page.next_page_token;
            assert_eq!(page_token.is_empty(), left == 0, "the last page says that it is the last");
        }
        assert_eq!(found, own);
    }
    // A token of another caller names a place, and returns only the caller's own messages.
    let page: SearchMessagesResponse =
        done(&operator, &SearchMessagesRequest { page_size: 1, ..query("needle", "") }).await;
    let request = SearchMessagesRequest { page_token: page.next_page_token, ..query("needle", "") };
    assert_eq!(ids(&done(&ada, &request).await), own);
}
