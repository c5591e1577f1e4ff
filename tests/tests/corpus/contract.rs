//! The table of `hive_fuzz::requests` and the contract name the same RPCs, with the same requests.
//!
//! Invariant: an RPC cannot be added without a check of its request and an input in the corpus.

use std::collections::BTreeMap;
use std::path::Path;

use hive_fuzz::requests::TABLE;
use prost_types::FileDescriptorSet;

use crate::{fuzz, seeds};

/// The packages of both contracts, compiled from their sources.
pub(crate) fn compiled() -> FileDescriptorSet {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the root")
        .join("proto");
    let mut files = Vec::new();
    for package in ["hive/v1", "hive/harness/v1"] {
        let entries = std::fs::read_dir(proto.join(package)).expect("the package is readable");
        files.extend(
            entries
                .map(|entry| entry.expect("a directory entry").path())
                .filter(|path| path.extension().is_some_and(|end| end == "proto")),
        );
    }
    files.sort();
    let mut compiler = protox::Compiler::new([&proto]).expect("proto/ is an include path");
    compiler.include_imports(true);
    compiler.open_files(&files).expect("the contract compiles");
    compiler.file_descriptor_set()
}

#[test]
fn the_table_names_every_rpc_with_its_request() {
    let mut contract = BTreeMap::new();
    for file in compiled().file {
        for service in &file.service {
            for method in &service.method {
                let rpc = format!("{}.{}/{}", file.package(), service.name(), method.name());
                let request = method.input_type().rsplit('.').next().unwrap_or_default().to_owned();
                contract.insert(rpc, request);
            }
        }
    }
    let table: BTreeMap<String, String> =
        TABLE.iter().map(|entry| (entry.rpc.to_owned(), entry.request.to_owned())).collect();
    assert_eq!(TABLE.len(), table.len(), "an RPC stands in the table twice");
    let missing: Vec<&String> = contract.keys().filter(|rpc| !table.contains_key(*rpc)).collect();
    assert!(
        missing.is_empty(),
        "no check of the request of {missing:?}: add a row to hive_fuzz::requests::TABLE"
    );
    assert_eq!(table, contract);
}

#[test]
fn every_rpc_has_an_input_in_the_corpus() {
    let folder = fuzz().join("corpus/requests");
    let wanted = seeds::requests();
    if std::env::var_os("HIVE_REGENERATE").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, bytes) in &wanted {
            std::fs::write(folder.join(name), bytes).expect("an input is written");
        }
        return;
    }
    for (name, bytes) in wanted {
        let found = std::fs::read(folder.join(&name)).unwrap_or_default();
        let how = "HIVE_REGENERATE=1 cargo test -p hive-tests --test corpus writes it";
        assert!(found == bytes, "tests/fuzz/corpus/requests/{name} is missing or stale: {how}");
    }
}
