//! The standard health and reflection services of a socket, which report only the services that it
//! serves.

use std::collections::BTreeSet;

use hive_tests::rig::soon;
use tonic::Status;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::authority_table::{AGENT_ONLY, OPERATOR_ONLY, TABLE};
use crate::scene::Scene;

macro_rules! asked {
    ($name:ident, $version:ident) => {
        /// Asks a socket's reflection service of this version for names of services, or files.
        async fn $name(channel: Channel, about: &str) -> Result<Answer, Status> {
            use tonic_reflection::pb::$version::ServerReflectionRequest;
            use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
            use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
            use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;
            let asked = match about {
                "" => MessageRequest::ListServices(String::new()),
                file if file.ends_with(".proto") => MessageRequest::FileByFilename(file.to_owned()),
                symbol => MessageRequest::FileContainingSymbol(symbol.to_owned()),
            };
            let request =
                ServerReflectionRequest { host: String::new(), message_request: Some(asked) };
            let mut client = ServerReflectionClient::new(channel);
            let mut stream =
                client.server_reflection_info(tokio_stream::once(request)).await?.into_inner();
            let answer = soon("an answer", stream.message()).await?.expect("an answer");
            Ok(match answer.message_response.expect("an answer") {
                MessageResponse::ListServicesResponse(listed) => Answer::Services(
                    listed.service.into_iter().map(|service| service.name).collect(),
                ),
                MessageResponse::FileDescriptorResponse(files) => {
                    Answer::Files(files.file_descriptor_proto.len())
                }
                other => panic!("{other:?}"),
            })
        }
    };
}

asked!(v1, v1);
asked!(v1alpha, v1alpha);

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Services(BTreeSet<String>),
    Files(usize),
}

fn services(served: impl Fn(&crate::authority_table::Row) -> bool) -> BTreeSet<String> {
    let own = TABLE.iter().filter(|row| served(row)).map(|row| format!("hive.v1.{}", row.service));
    let standard = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];
    own.chain(standard.map(str::to_owned)).collect()
}

#[tokio::test]
async fn each_socket_names_what_it_serves_and_nothing_else() {
    let scene = Scene::set().await;
    for (socket, served, foreign) in [
        ("ada", services(|row| row.agent), OPERATOR_ONLY),
        ("operator", services(|row| row.operator), AGENT_ONLY),
    ] {
        let own = |name: &String| !name.starts_with("grpc.reflection.");
        for listed in
            [v1(scene.channel(socket), "").await, v1alpha(scene.channel(socket), "").await]
        {
            let Ok(Answer::Services(listed)) = listed else { panic!("{listed:?}") };
            // The two reflection services need not name each other.
            let (listed, served): (BTreeSet<_>, BTreeSet<_>) = (
                listed.into_iter().filter(own).collect(),
                served.iter().filter(|name| own(name)).cloned().collect(),
            );
            assert_eq!(listed, served, "{socket}");
        }
        for name in &served {
            if name.starts_with("hive.") {
                assert!(v1(scene.channel(socket), name).await.is_ok(), "{socket} describes {name}");
            }
        }
        for service in foreign {
            let file: String = service
                .chars()
                .enumerate()
                .flat_map(|(place, c)| {
                    let parted = (place > 0 && c.is_uppercase()).then_some('_');
                    parted.into_iter().chain(c.to_lowercase())
                })
                .collect();
            for about in [format!("hive.v1.{service}"), format!("hive/v1/{file}.proto")] {
                let (new, old) = (
                    v1(scene.channel(socket), &about).await,
                    v1alpha(scene.channel(socket), &about).await,
                );
                for answer in [new, old] {
                    let refusal = answer.expect_err("it is not described here");
                    assert_eq!(refusal.code(), tonic::Code::NotFound, "{socket}: {about}");
                }
            }
        }
    }
}

#[tokio::test]
async fn both_sockets_describe_refusals() {
    let scene = Scene::set().await;
    let names = ["google.rpc.Status", "google.rpc.ErrorInfo", "google.rpc.BadRequest"];
    for socket in ["ada", "operator"] {
        for name in names.into_iter().chain(["google.rpc.RetryInfo", "hive.v1.Reason"]) {
            let answers =
                [v1(scene.channel(socket), name).await, v1alpha(scene.channel(socket), name).await];
            for answer in answers {
                let Ok(Answer::Files(files)) = answer else { panic!("{socket}: {name}") };
                assert!(files > 0, "{socket}: {name}");
            }
        }
    }
}

#[tokio::test]
async fn both_sockets_report_their_health() {
    let scene = Scene::set().await;
    for socket in ["ada", "operator"] {
        let mut health = HealthClient::new(scene.channel(socket));
        let told = health
            .check(HealthCheckRequest::default())
            .await
            .expect("it reports its health")
            .into_inner();
        assert_eq!(told.status(), ServingStatus::Serving, "{socket}");
        let unknown = HealthCheckRequest { service: "hive.v1.NoSuchService".to_owned() };
        assert_eq!(
            health.check(unknown).await.expect_err("there is none").code(),
            tonic::Code::NotFound
        );
    }
}
