//! Pages of every list of the contract, found by reflection: a new one without a filter here fails.
//!
//! Each list is read in pages of one row, in pages of one row while rows are added, and with tokens
//! that are not its own.

use std::collections::BTreeSet;

use hive_core::reason::Reason;
use hive_proto::convert::page::{List, Place, Token};
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::*;
use hive_proto::{FILE_DESCRIPTOR_SET, status};
use hive_tests::rig::{Client, Harness, Rig, raw, request, soon};
use prost::Message as _;
use protox::prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, MethodDescriptor, ReflectMessage as _, Value,
};
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

use crate::ask::did;

/// A list of the contract.
struct Paged {
    method: MethodDescriptor,
    path: String,
}

/// Returns every RPC with a page token.
fn lists() -> Vec<Paged> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
    let methods: Vec<MethodDescriptor> =
        pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()).collect();
    let has_pages =
        |method: &MethodDescriptor| method.input().get_field_by_name("page_token").is_some();
    let paged = |method: MethodDescriptor| {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        Paged { method, path }
    };
    methods.into_iter().filter(has_pages).map(paged).collect()
}

/// Returns two filters of a list: one that finds at least three rows, and another, if there is one.
fn filters(rpc: &str, broadcast: u64) -> (Vec<u8>, Option<Vec<u8>>) {
    let text = str::to_owned;
    match rpc {
        "ListRecipients" => {
            let of = |message_id| ListRecipientsRequest { message_id, ..Default::default() };
            (of(broadcast).encode_to_vec(), Some(of(broadcast + 1).encode_to_vec()))
        }
        "ListMessages" => (
            ListMessagesRequest::default().encode_to_vec(),
            Some(ListMessagesRequest { agent: text("dan"), ..Default::default() }.encode_to_vec()),
        ),
        "SearchMessages" => {
            let of = |query| SearchMessagesRequest { query: text(query), ..Default::default() };
            (of("needle").encode_to_vec(), Some(of("hay").encode_to_vec()))
        }
        "ListDeliveries" => {
            let of = |agent| ListDeliveriesRequest { agent: text(agent), ..Default::default() };
            (of("cyd").encode_to_vec(), Some(of("dan").encode_to_vec()))
        }
        "ListDeadLetters" => (
            ListDeadLettersRequest::default().encode_to_vec(),
            Some(
                ListDeadLettersRequest { agent: text("dan"), ..Default::default() }.encode_to_vec(),
            ),
        ),
        "ListQuestions" => (
            ListQuestionsRequest::default().encode_to_vec(),
            Some(ListQuestionsRequest { states: vec![1], ..Default::default() }.encode_to_vec()),
        ),
        "ListReminders" => (
            ListRemindersRequest::default().encode_to_vec(),
            Some(ListRemindersRequest { states: vec![1, 2], ..Default::default() }.encode_to_vec()),
        ),
        "ListSchedules" => (
            ListSchedulesRequest::default().encode_to_vec(),
            Some(ListSchedulesRequest { states: vec![1, 2], ..Default::default() }.encode_to_vec()),
        ),
        "ListLooseEnds" => (
            ListLooseEndsRequest::default().encode_to_vec(),
            Some(ListLooseEndsRequest { agent: text("ada"), ..Default::default() }.encode_to_vec()),
        ),
        "ListTurns" => (
            ListTurnsRequest { agent: text("bob"), ..Default::default() }.encode_to_vec(),
            Some(ListTurnsRequest::default().encode_to_vec()),
        ),
        "ListAgents" => (
            ListAgentsRequest::default().encode_to_vec(),
            Some(ListAgentsRequest { include_retired: true, ..Default::default() }.encode_to_vec()),
        ),
        "ListChildren" => {
            let of = |name| ListChildrenRequest { name: text(name), ..Default::default() };
            (of("ada").encode_to_vec(), Some(of("").encode_to_vec()))
        }
        "FindAgents" => {
            let of = |words| FindAgentsRequest { text: text(words), ..Default::default() };
            (of("").encode_to_vec(), Some(of("a").encode_to_vec()))
        }
        "ListEvents" => {
            let of = |agent| ListEventsRequest { agent: text(agent), ..Default::default() };
            (of("").encode_to_vec(), Some(of("ada").encode_to_vec()))
        }
        "ListPurges" => (ListPurgesRequest::default().encode_to_vec(), None),
        rpc => panic!("{rpc} is a new list: say here with which filters it is read"),
    }
}

/// Returns what names a row: its id, number or name, whichever it has.
fn key(row: &DynamicMessage) -> String {
    let mut key = String::new();
    for field in row.descriptor().fields() {
        let value = row.get_field(&field);
        match (field.name(), value.as_ref()) {
            ("id" | "sequence" | "name" | "agent", Value::U64(_) | Value::String(_)) => {
                key.push_str(&format!("{value:?} "));
            }
            ("kind", Value::EnumNumber(kind)) => key.push_str(&format!("{kind} ")),
            ("message" | "question", Value::Message(inner)) if row.has_field(&field) => {
                key.push_str(&self::key(inner));
            }
            _ => {}
        }
    }
    assert!(!key.is_empty(), "{row:?} has no key");
    key
}

struct Reader<'a> {
    channel: &'a Channel,
    list: &'a Paged,
}

impl Reader<'_> {
    async fn read(
        &self,
        filter: &[u8],
        size: u32,
        token: &str,
    ) -> Result<(Vec<String>, String), tonic::Status> {
        let Paged { method, path } = self.list;
        let mut request = DynamicMessage::decode(method.input(), filter).expect("a filter");
        request.set_field_by_name("page_size", Value::U32(size));
        request.set_field_by_name("page_token", Value::String(token.to_owned()));
        let bytes = request.encode_to_vec();
        let answer = raw::call(self.channel, path, MetadataMap::new(), bytes);
        let answer = soon(path, answer).await?.first.expect("an answer");
        let page = DynamicMessage::decode(method.output(), answer.as_slice()).expect("a page");
        let rows = method.output().fields().find(FieldDescriptor::is_list).expect("rows");
        let rows = page.get_field(&rows);
        let rows = rows.as_list().expect("a list").iter();
        let rows = rows.map(|row| key(row.as_message().expect("a message"))).collect();
        let next = page.get_field_by_name("next_page_token").expect("a token");
        Ok((rows, next.as_str().expect("a text").to_owned()))
    }

    async fn page(&self, filter: &[u8], size: u32, token: &str) -> (Vec<String>, String) {
        let page = self.read(filter, size, token).await;
        page.unwrap_or_else(|refusal| panic!("{}: {refusal:?}", self.list.path))
    }

    /// Reads the rest in pages of one row.
    async fn rest(&self, filter: &[u8], mut token: String) -> Vec<String> {
        let mut rows = Vec::new();
        while !token.is_empty() {
            let (page, next) = self.page(filter, 1, &token).await;
            // A question between two agents is two loose ends, which are never on two pages.
            assert!(page.len() <= 2, "{}: {page:?}", self.list.path);
            rows.extend(page);
            assert_ne!(next, token);
            token = next;
        }
        rows
    }

    /// Asserts that a token is refused with a sentence that has these words.
    async fn refuses(&self, filter: &[u8], token: &str, words: &str) {
        let path = &self.list.path;
        let refusal = self.read(filter, 0, token).await.expect_err(path);
        assert_eq!(status::reason(&refusal), Some(Reason::FieldInvalid), "{path}: {refusal:?}");
        let named = refusal.get_details_bad_request().expect("a field").field_violations;
        assert_eq!(named[0].field, "page_token", "{path}");
        assert!(named[0].description.contains(words), "{path}: {refusal:?}");
        assert!(named[0].description.contains("begin again without a token"), "{refusal:?}");
    }
}

struct Scene {
    rig: Rig,
    operator: Client,
    ada: Client,
    dan: Client,
    harness: Harness,
    /// A message to everyone.
    broadcast: u64,
    round: u32,
}

impl Scene {
    async fn set() -> Self {
        let mut rig = Rig::new(
            "[agents.ada]\ntool_groups = [\"messaging\", \"inbox\", \"meta\", \"scheduling\"]\n\
             grants = [\"own_schedules\"]\n[agents.bob]\nparent = \"ada\"\n[agents.cyd]\nparent = \"ada\"\n[agents.dan]\nparent = \"ada\"\n",
        );
        let mut broker = rig.broker_command();
        broker.arg("--agents-dir").arg(rig.path("agents"));
        rig.start_broker_by(broker).await;
        let (operator, ada, dan) =
            (rig.operator().await, rig.agent("ada").await, rig.agent("dan").await);
        let harness = Harness::attach(&rig.agent("bob").await.channel(), false).await;
        let broadcast = operator.send("*", "all hands").await;
        let mut scene = Self { rig, operator, ada, dan, harness, broadcast, round: 0 };
        for _ in 0..3 {
            scene.add().await;
        }
        scene
    }

    /// Adds a row to every list.
    async fn add(&mut self) {
        self.round += 1;
        let round = self.round;
        self.operator.send("cyd", &format!("needle {round}")).await;
        self.dan_nacks(&format!("hay {round}")).await;
        self.operator.send("bob", "work").await;
        let (begun, _) = self.harness.begin().await;
        self.harness.end(begun.turn.expect("a turn").id, TurnOutcome::Ok).await;
        // A schedule is asked for by a question, and the newest question is the one below.
        did(&self.ada.channel(), &request::schedule("ada", "later")).await;
        self.ada.ask("cyd", "needle?").await;
        let due = Due::Delay(prost_types::Duration { seconds: 3600, nanos: 0 });
        did(&self.ada.channel(), &request::remind("later", due)).await;
        let operator = self.operator.channel();
        for name in [format!("child-{round}"), format!("gone-{round}")] {
            let parent = "ada".to_owned();
            did(&operator, &CreateAgentRequest { parent, ..request::create_agent(&name) }).await;
        }
        let gone = request::retire_agent(&format!("gone-{round}"));
        did(&operator, &RetireAgentRequest { purge: true, ..gone }).await;
    }

    async fn dan_nacks(&self, body: &str) {
        self.operator.send("dan", body).await;
        let channel = self.dan.channel();
        let received: ReceiveMessagesResponse =
            crate::ask::done(&channel, &request::receive()).await;
        let nack = NackDeliveryRequest {
            lease_token: received.deliveries[0].lease_token.clone(),
            permanent: true,
            ..NackDeliveryRequest::default()
        };
        did(&channel, &nack).await;
    }

    /// Waits until the newest question is found by a search.
    async fn indexed(&self) {
        let wanted = self.operator.questions().await.pop().expect("a question").id;
        let query = SearchMessagesRequest { query: "needle".to_owned(), ..Default::default() };
        let found = async {
            loop {
                let page: SearchMessagesResponse =
                    crate::ask::done(&self.operator.channel(), &query).await;
                let newest = page.hits.first().and_then(|hit| hit.hit.as_ref());
                if matches!(newest, Some(search_hit::Hit::Question(found)) if found.id == wanted) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        soon("the index has the newest question", found).await;
    }
}

#[tokio::test]
async fn pages_of_one_row_are_the_whole_list_and_a_size_is_lowered() {
    let scene = Scene::set().await;
    scene.indexed().await;
    let channel = scene.operator.channel();
    for list in lists() {
        let reader = Reader { channel: &channel, list: &list };
        let (filter, _) = filters(list.method.name(), scene.broadcast);
        let (whole, end) = reader.page(&filter, u32::MAX, "").await;
        assert_eq!(end, "", "{}: the broker takes any size", list.path);
        assert!(whole.len() >= 3, "{}: {whole:?}", list.path);
        let (mut rows, next) = reader.page(&filter, 1, "").await;
        rows.extend(reader.rest(&filter, next).await);
        assert_eq!(rows, whole, "{}", list.path);
    }
}

#[tokio::test]
async fn rows_that_are_added_neither_repeat_nor_hide_another() {
    let mut scene = Scene::set().await;
    scene.indexed().await;
    let channel = scene.operator.channel();
    let mut begun = Vec::new();
    for list in lists() {
        let reader = Reader { channel: &channel, list: &list };
        let (filter, _) = filters(list.method.name(), scene.broadcast);
        let (whole, _) = reader.page(&filter, 0, "").await;
        let (first, next) = reader.page(&filter, 1, "").await;
        begun.push((list, filter, whole, first, next));
    }
    scene.add().await;
    scene.indexed().await;
    for (list, filter, whole, mut rows, next) in begun {
        let reader = Reader { channel: &channel, list: &list };
        rows.extend(reader.rest(&filter, next).await);
        assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len(), "{}", list.path);
        rows.retain(|row| whole.contains(row));
        assert_eq!(rows, whole, "{}", list.path);
    }
}

#[tokio::test]
async fn a_token_is_for_its_own_list_and_unchanged() {
    let scene = Scene::set().await;
    scene.indexed().await;
    let channel = scene.operator.channel();
    let other = Token::new(List::new("Other", &()), Place::default()).encode();
    for list in lists() {
        let reader = Reader { channel: &channel, list: &list };
        let (filter, other_filter) = filters(list.method.name(), scene.broadcast);
        let (_, token) = reader.page(&filter, 1, "").await;
        reader.refuses(&filter, &other, "another RPC").await;
        if let Some(other_filter) = other_filter {
            reader.refuses(&other_filter, &token, "another filter").await;
        }
        for mangled in [&token[1..], &token[..token.len() - 1], "12", "\u{663}", "===", "a b"] {
            reader.refuses(&filter, mangled, "not a token of this broker").await;
        }
        // Places that no row has.
        for far in [0, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
            let mut request = DynamicMessage::new(list.method.input());
            request.merge(filter.as_slice()).expect("a filter");
            let bound = List::new(list.method.name(), &request);
            let place = Place { first: far, second: far, name: "\u{10ffff}".to_owned() };
            match reader.read(&filter, 0, &Token::new(bound, place).encode()).await {
                Ok(_) => {}
                Err(refusal) => {
                    assert_eq!(status::reason(&refusal), Some(Reason::FieldInvalid), "{refusal:?}");
                }
            }
        }
    }
    drop(scene.rig);
}
