//! Garbage: bytes that no client of the contract would send. The broker answers or hangs up, and
//! continues to serve the other clients.

use hive_core::reason::Reason;
use hive_proto::{FILE_DESCRIPTOR_SET, status};
use hive_tests::rig::{Rig, raw, soon};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tonic::metadata::{MetadataMap, MetadataValue};

/// The paths of all RPCs of a contract.
fn paths() -> Vec<String> {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
    let services = set.file.into_iter().flat_map(|file| file.service);
    services
        .flat_map(|service| {
            let name = service.name().to_owned();
            service
                .method
                .into_iter()
                .map(move |method| format!("/hive.v1.{name}/{}", method.name()))
        })
        .collect()
}

/// Random bytes that are the same in every run (xorshift).
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let length = next() % 64;
    // Often a plausible tag, so that more than the first byte is read.
    (0..length)
        .map(|place| {
            if place % 3 == 0 { (next() % 16) as u8 * 8 + (next() % 3) as u8 } else { next() as u8 }
        })
        .collect()
}

#[tokio::test]
async fn noise_in_every_rpc_is_answered_and_never_a_fault_of_the_broker() {
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    let channels = [rig.agent("ada").await.channel(), rig.operator().await.channel()];
    // A drain has no fields, so noise is a drain.
    for path in paths().iter().filter(|path| !path.ends_with("/Drain")) {
        for seed in 0..12 {
            for channel in &channels {
                let answer =
                    soon(path, raw::call(channel, path, MetadataMap::new(), noise(seed))).await;
                if let Err(refusal) = answer {
                    assert_ne!(
                        status::reason(&refusal),
                        Some(Reason::Internal),
                        "{path}, seed {seed}: {refusal:?}"
                    );
                    assert_ne!(
                        refusal.code(),
                        tonic::Code::Unavailable,
                        "{path}, seed {seed}: {refusal:?}"
                    );
                }
            }
        }
    }
    assert!(rig.operator().await.send("ada", "still here").await > 0);
    assert!(!rig.broker().log().contains("panicked"), "{}", rig.logs());
}

#[tokio::test]
async fn a_connection_without_grpc_is_closed() {
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    // A connection that sends nothing stays, and blocks no other client.
    let mute = UnixStream::connect(rig.agent_socket("ada")).await.expect("it connects");
    for socket in [rig.agent_socket("ada"), rig.operator_socket()] {
        let jsonl = b"{\"op\":\"send\",\"to\":\"bob\"}\n".to_vec();
        let truncated =
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x00".to_vec();
        for bytes in [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            jsonl,
            truncated,
            vec![0; 70_000],
            noise(7).repeat(100),
        ] {
            let mut stream = UnixStream::connect(&socket).await.expect("it connects");
            // The broker may hang up before everything is written.
            drop(stream.write_all(&bytes).await);
            drop(stream.shutdown().await);
            let mut answer = Vec::new();
            let ended = soon("it hangs up", stream.read_to_end(&mut answer)).await;
            assert!(ended.is_err() || answer.len() < 4096, "{answer:?}");
        }
    }
    rig.agent("ada").await.send("operator", "still here").await;
    drop(mute);
}

#[tokio::test]
async fn headers_have_a_bound() {
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    let ada = rig.agent("ada").await;
    let mut metadata = MetadataMap::new();
    let long = MetadataValue::try_from("x".repeat(64 * 1024)).expect("plain text");
    metadata.insert("hive-process-token", long);
    let refusal =
        raw::call(&ada.channel(), "/hive.v1.TopologyService/GetSelf", metadata, Vec::new())
            .await
            .map(drop);
    assert!(refusal.is_err(), "such a header is not taken in");
    ada.send("operator", "still here").await;
}
