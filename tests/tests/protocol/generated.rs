//! The examples that generate code.

use crate::workshop::{Language, Workshop};

pub(crate) async fn python_code_is_generated(file: &str) {
    generates(Language::Python, file, "hive/v1/message_service_pb2_grpc.py", "MessageServiceStub")
        .await;
}

pub(crate) async fn types_are_generated(file: &str) {
    generates(Language::Node, file, "types/message_service.ts", "interface ProtoGrpcType").await;
}

pub(crate) async fn go_code_is_generated(file: &str) {
    let made = "hive/v1/message_service_grpc.pb.go";
    generates(Language::Go, file, made, "func NewMessageServiceClient(").await;
}

/// Runs an example that makes this file, with this text in it.
async fn generates(language: Language, file: &str, made: &str, text: &str) {
    let Some(workshop) = Workshop::of(language).await else { return };
    assert!(!workshop.has(made), "{made} is there already");
    workshop.succeeds(workshop.example(file, &[])).await;
    let code = std::fs::read_to_string(workshop.dir().join(made)).expect("the file is made");
    assert!(code.contains(text), "{made}: {code}");
    workshop.rig.end().await;
}
