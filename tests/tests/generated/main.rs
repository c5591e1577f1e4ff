//! The generated code in `clients/rust/src/gen` and `proto/src/gen`, and the table of reasons of
//! the core, are what the committed `.proto` files give.
//!
//! `HIVE_REGENERATE=1 cargo test -p hive-tests --test generated` (or `make gen`) writes it.

mod functions;
mod reasons;

use std::path::{Path, PathBuf};

use prost::Message as _;
use prost_types::FileDescriptorSet;

/// The generated files, and the crate that has each.
const GENERATED: [(&str, &str); 6] = [
    ("clients/rust", "hive.v1.rs"),
    ("clients/rust", "hive.v1.bin"),
    ("clients/rust", "reasons.rs"),
    ("clients/rust", "calls.rs"),
    ("proto", "hive.harness.v1.rs"),
    ("tests/conformance", "conformance.bin"),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the workspace")
        .to_path_buf()
}

fn descriptors(proto: &Path, package: &str) -> FileDescriptorSet {
    let mut files: Vec<PathBuf> = std::fs::read_dir(proto.join(package))
        .expect("the package is readable")
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "proto"))
        .collect();
    files.sort();
    let mut compiler = protox::Compiler::new([proto]).expect("proto/ is an include path");
    compiler.include_source_info(true).include_imports(true);
    compiler.open_files(&files).expect("the .proto files compile");
    compiler.file_descriptor_set()
}

fn code(set: &FileDescriptorSet, out: &Path) {
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .build_transport(false)
        .codec_path("crate::codec::ProstCodec")
        .server_mod_attribute("hive.v1", "#[cfg(feature = \"server\")]")
        .out_dir(out)
        .compile_fds(set.clone())
        .expect("code is generated");
}

fn generate(out: &Path) {
    let proto = workspace().join("proto");
    // The harness's service for its own agent is no part of the broker's contract.
    code(&descriptors(&proto, "hive/harness/v1"), out);
    let mut set = descriptors(&proto, "hive/v1");
    code(&set, out);

    // Reflection needs no comments; they are three quarters of the bytes.
    for file in &mut set.file {
        file.source_code_info = None;
    }
    std::fs::write(out.join("hive.v1.bin"), set.encode_to_vec())
        .expect("the descriptor set is written");
    std::fs::write(out.join("reasons.rs"), reasons::of_clients(&proto))
        .expect("the table is written");
    std::fs::write(out.join("calls.rs"), calls(&set)).expect("the list is written");

    let suite = workspace().join("tests/conformance");
    let mut compiler = protox::Compiler::new([&suite]).expect("an include path");
    compiler.include_imports(true);
    compiler.open_file(suite.join("conformance.proto")).expect("the schema of the suite compiles");
    std::fs::write(out.join("conformance.bin"), compiler.encode_file_descriptor_set())
        .expect("the schema is written");
}

/// Returns the calls with one request and one answer, for `clients/rust/src/call.rs`.
fn calls(set: &FileDescriptorSet) -> String {
    let messages = || set.file.iter().flat_map(|file| &file.message_type);
    let mut list = String::from("// Made by `make gen` from the services in `proto/hive/v1`.\n\n");
    for service in set.file.iter().flat_map(|file| &file.service) {
        for rpc in &service.method {
            if rpc.client_streaming() || rpc.server_streaming() {
                continue;
            }
            let [request, answer] = [rpc.input_type(), rpc.output_type()]
                .map(|name| name.trim_start_matches(".hive.v1."));
            let message = messages().find(|message| message.name() == request);
            let fields = message.map(|message| &message.field[..]).unwrap_or_default();
            let known = ["request_id", "wait"].into_iter();
            let has = known.filter(|name| fields.iter().any(|field| field.name() == *name));
            let has: String = has.map(|name| format!(", {name}")).collect();
            let (service, rpc) = (service.name(), rpc.name());
            list.push_str(&format!(
                "call!({request}, {answer}, \"/hive.v1.{service}/{rpc}\"{has});\n"
            ));
        }
    }
    list
}

/// Returns the path of a committed file.
fn committed(krate: &str, name: &str) -> PathBuf {
    workspace().join(krate).join("src/gen").join(name)
}

#[test]
fn generated_code_is_fresh() {
    let reasons = reasons::table(&workspace().join("proto"));
    let committed_reasons = workspace().join("core/src/reason/table.rs");
    let fresh = tempfile::tempdir().expect("a temporary directory");
    generate(fresh.path());
    if std::env::var_os("HIVE_REGENERATE").is_some() {
        for (krate, name) in GENERATED {
            std::fs::copy(fresh.path().join(name), committed(krate, name)).expect("it is written");
        }
        std::fs::write(committed_reasons, reasons).expect("the table is written");
        return;
    }
    let have = std::fs::read_to_string(committed_reasons).expect("a committed file");
    assert!(have == reasons, "core/src/reason/table.rs is stale: run `make gen` and commit it");
    for (krate, name) in GENERATED {
        let want = std::fs::read(fresh.path().join(name)).expect("a generated file");
        let have = std::fs::read(committed(krate, name)).expect("a committed file");
        assert!(
            want == have,
            "{krate}/src/gen/{name} is stale: run `make gen` and commit the result"
        );
    }
}
