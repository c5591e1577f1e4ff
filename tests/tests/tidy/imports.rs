//! Permitted imports: between crates by their manifests, inside the broker and hivectl by the
//! paths their modules name, and in the core by a list of forbidden ones.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{self, File, none};

/// The crates of the project that a crate may depend on. The tests may depend on all.
const CRATES: [(&str, &[&str]); 12] = [
    ("core", &[]),
    ("core/log", &[]),
    ("clients/rust", &[]),
    ("clients/rust/conformance", &["hive-client"]),
    ("clients/rust/rates", &["hive-client"]),
    ("examples/queue", &["hive-client"]),
    ("proto", &["hive-client", "hive-core"]),
    ("broker", &["hive-core", "hive-export", "hive-fault", "hive-log", "hive-proto"]),
    ("broker/export", &["hive-core"]),
    ("harness", &["hive-core", "hive-fault", "hive-log", "hive-proto"]),
    ("mcp-bridge", &["hive-core", "hive-fault", "hive-log", "hive-proto"]),
    ("hivectl", &["hive-core", "hive-proto"]),
];

/// Further crates for a crate's own tests: the rig, which knows no program, and the broker inside
/// the process of a test.
const RIGS: [&str; 2] = ["hive-tests", "hive-in-process"];

/// Crates that bring IO, async, SQL, a wire format, a clock or chance: not for the core.
const IMPURE: [&str; 14] = [
    "anyhow",
    "clap",
    "getrandom",
    "http",
    "prost",
    "prost-types",
    "rmcp",
    "rusqlite",
    "rustix",
    "tokio",
    "tonic",
    "tonic-prost",
    "tower",
    "tracing",
];

/// Paths of the standard library that do the same.
const IMPURE_PATHS: [&str; 8] = [
    "std::env",
    "std::fs",
    "std::net",
    "std::os::unix",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];

/// Modules of the broker that a module of the broker must not name.
const BROKER_MODULES: [(&str, &[&str]); 9] = [
    ("store", &["engine", "rpc", "task", "app"]),
    ("engine", &["rpc", "task", "app"]),
    ("rpc", &["store", "task", "app"]),
    ("task", &["store", "rpc", "app"]),
    ("notify", &["store", "rpc", "task", "app"]),
    ("metrics", &["store", "task", "app"]),
    ("measures", &["store", "engine", "rpc", "task", "app", "metrics"]),
    ("files", &["store", "engine", "rpc", "task", "app"]),
    ("spill", &["store", "engine", "rpc", "task", "app"]),
];

/// The modules of hivectl, each below those that may name it. A module names only earlier ones.
const HIVECTL_ORDER: [&str; 22] = [
    "exit",
    "error",
    "interrupt",
    "span",
    "output",
    "spawn",
    "view",
    "schema",
    "input",
    "connect",
    "new_file",
    "context",
    "fetch",
    "feed",
    "complete",
    "supervise",
    "top",
    "command",
    "cli",
    "report",
    "lib",
    "main",
];

/// The order of the folders and files of the supervisor of `hivectl up`.
const SUPERVISE_ORDER: [&str; 14] = [
    "files",
    "error",
    "setup",
    "process",
    "signals",
    "broker",
    "logs",
    "isolation",
    "launch",
    "fleet",
    "units",
    "next",
    "hive",
    "mod",
];

/// The rooms and the shared files of the broker's engine, in the same way.
const ENGINE_ORDER: [&str; 29] = [
    "error",
    "background",
    "declared",
    "directories",
    "keys",
    "permit",
    "presence",
    "rate",
    "sandboxes",
    "token",
    "trace",
    "actor",
    "memory",
    "once",
    "refused",
    "wait",
    "mail",
    "turn",
    "schedule",
    "heartbeat",
    "operator",
    "approval",
    "action",
    "launch",
    "sweep",
    "restored",
    "first",
    "start",
    "mod",
];

/// The rooms of the broker's wire, in the same way.
const RPC_ORDER: [&str; 5] = ["edge", "mod", "reflection", "service", "server"];

/// The rooms of the broker's store, in the same way.
const STORE_ORDER: [&str; 15] = [
    "key",
    "error",
    "place",
    "columns",
    "codec",
    "statement",
    "blocked",
    "row",
    "effect",
    "file",
    "write",
    "first",
    "table",
    "search",
    "mod",
];

/// The modules in which the store writes, in the same way.
const WRITE_ORDER: [&str; 21] = [
    "measured",
    "folding",
    "held",
    "messages",
    "new_traces",
    "requests",
    "fresh",
    "lease_ends",
    "leases",
    "request_ids",
    "cache",
    "tx",
    "queue",
    "command",
    "progress",
    "waiter",
    "committer",
    "seat",
    "stepped",
    "writer",
    "mod",
];

/// Plain values of the store that calls and tasks pass through the engine. A row and a transaction
/// are none.
const STORE_VALUES: [&str; 5] = [
    "crate::store::AgentKey",
    "crate::store::Health",
    "crate::store::SCHEMA_VERSION",
    "crate::store::request::RequestKey",
    "crate::store::turn_events::Line",
];

/// Doors of the store, which only the engine goes through.
const STORE_DOORS: [&str; 2] = ["store().write(", "store().read("];

/// Crates that a module of the broker must not name.
const BROKER_CRATES: [(&str, &[&str]); 4] = [
    ("engine", &["tonic", "prost", "prost_types", "hive_proto"]),
    ("rpc", &["rusqlite"]),
    ("store", &["tonic", "prost", "prost_types", "hive_proto"]),
    ("task", &["tonic", "prost", "prost_types", "hive_proto"]),
];

/// The generated packages of the contract, and types that only these need.
const GENERATED: [&str; 4] =
    ["hive_proto::v1", "hive_proto::harness_v1", "hive_proto::{", "prost_types::"];

/// The places where the harness may name them, each with the reason.
const HARNESS_WIRE: [(&str, &str); 2] = [
    ("harness/src/wire/", "it is the folder for the calls to the broker"),
    (
        "harness/src/task/service.rs",
        "it serves hive.harness.v1 to the bridge of its own agent, and calls no service",
    ),
];

/// Modules of the broker without SQL text.
const WITHOUT_SQL: [&str; 3] = ["engine", "rpc", "task"];

/// Beginnings of SQL statements, as this project writes them.
const SQL: [&str; 8] = [
    "SELECT ",
    "INSERT INTO ",
    "INSERT OR ",
    "DELETE FROM ",
    "CREATE TABLE ",
    "PRAGMA ",
    "UPDATE OR ",
    "ON CONFLICT",
];

#[derive(serde::Deserialize)]
struct Manifest {
    #[serde(default)]
    dependencies: BTreeMap<String, toml::Value>,
    #[serde(default, rename = "dev-dependencies")]
    dev_dependencies: BTreeMap<String, toml::Value>,
    #[serde(default, rename = "build-dependencies")]
    build_dependencies: BTreeMap<String, toml::Value>,
}

fn manifest(folder: &str) -> Manifest {
    let path = tree::root().join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).expect("every crate has a manifest");
    toml::from_str(&text).expect("a manifest is TOML")
}

#[test]
fn crates_depend_along_the_arrows_only() {
    let mut findings = Vec::new();
    for (folder, allowed) in CRATES {
        let manifest = manifest(folder);
        let for_tests =
            manifest.dev_dependencies.keys().filter(|name| !RIGS.contains(&name.as_str()));
        let built = manifest.dependencies.keys().chain(manifest.build_dependencies.keys());
        for name in built.chain(for_tests).filter(|name| name.starts_with("hive")) {
            if !allowed.contains(&name.as_str()) {
                findings.push(format!("{folder}/Cargo.toml: {name} is not below {folder}"));
            }
        }
    }
    none("programs meet only at the contract", &findings);
}

#[test]
fn every_crate_has_its_place_in_the_arrows() {
    let text = std::fs::read_to_string(tree::root().join("Cargo.toml"))
        .expect("the workspace has a manifest");
    let workspace: toml::Value = toml::from_str(&text).expect("a manifest is TOML");
    let members = workspace["workspace"]["members"].as_array().expect("a list of members");
    for member in members.iter().filter_map(toml::Value::as_str) {
        let known = member == "tests"
            || member.starts_with("tests/")
            || CRATES.iter().any(|(folder, _)| *folder == member);
        assert!(known, "the crate {member} has no row in the import rules");
    }
}

#[test]
fn the_core_is_pure() {
    let mut findings = Vec::new();
    for name in manifest("core").dependencies.keys().filter(|name| IMPURE.contains(&name.as_str()))
    {
        findings.push(format!("core/Cargo.toml: {name}"));
    }
    for file in
        tree::rust().iter().filter(|file| file.path.starts_with("core/src/") && !file.is_test())
    {
        for (number, line) in file.code(true) {
            for path in IMPURE_PATHS.iter().filter(|path| line.contains(**path)) {
                findings.push(format!("{}:{number}: {path}", file.path));
            }
        }
    }
    none("the core knows no IO, async, SQL, wire format, clock or chance", &findings);
}

#[test]
fn only_the_engine_opens_transactions() {
    let mut findings = Vec::new();
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let files = broker();
    for (module, file) in files.iter().filter(|(module, _)| module == "rpc" || module == "task") {
        used.extend(STORE_VALUES.iter().filter(|value| file.text.contains(**value)));
        for (number, line) in file.code(true) {
            if STORE_DOORS.iter().any(|door| line.contains(door)) {
                findings.push(format!(
                    "{}:{number}: {module} goes to the store by itself: {}",
                    file.path,
                    line.trim()
                ));
            }
        }
    }
    for value in STORE_VALUES.iter().filter(|value| !used.contains(*value)) {
        findings.push(format!("{value}: no file passes it on; take it off the list"));
    }
    none("calls and tasks go through the engine", &findings);
}

fn broker() -> Vec<(String, File)> {
    modules(BROKER)
}

const BROKER: &str = "broker/src/";

/// The files of a folder that are no tests, each with its module in that folder.
fn modules(folder: &str) -> Vec<(String, File)> {
    let files = tree::rust().into_iter().filter(|file| !file.is_test());
    files
        .filter_map(|file| {
            let module = file.path.strip_prefix(folder)?.split(['/', '.']).next()?.to_owned();
            Some((module, file))
        })
        .collect()
}

#[test]
fn the_modules_of_hivectl_have_an_order() {
    let mut findings = against_order("hivectl/src/", "crate::", &HIVECTL_ORDER);
    let supervise = "hivectl/src/supervise/";
    findings.extend(against_order(supervise, "crate::supervise::", &SUPERVISE_ORDER));
    none("inside hivectl a module names only those before it in its list", &findings);
}

#[test]
fn the_rooms_of_the_broker_have_an_order() {
    let mut findings = against_order("broker/src/store/", "crate::store::", &STORE_ORDER);
    findings.extend(against_order("broker/src/engine/", "crate::engine::", &ENGINE_ORDER));
    findings.extend(against_order("broker/src/rpc/", "crate::rpc::", &RPC_ORDER));
    findings.extend(against_order(
        "broker/src/store/write/",
        "crate::store::write::",
        &WRITE_ORDER,
    ));
    none("inside a room a module names only those before it in its list", &findings);
}

/// Returns what breaks the order of a folder: modules that name later ones, modules without a place
/// and places without a module.
fn against_order(folder: &str, path: &str, order: &[&str]) -> Vec<String> {
    let files = modules(folder);
    let place = |name: &str| order.iter().position(|module| *module == name);
    let unused = order.iter().filter(|name| files.iter().all(|(module, _)| module != **name));
    let mut findings: Vec<String> =
        unused.map(|name| format!("{folder}: there is no {name}; take it off the list")).collect();
    for (module, file) in &files {
        let Some(own) = place(module) else {
            findings.push(format!("{}: {module} has no place in the order", file.path));
            continue;
        };
        // The tests of a module may use what is above it.
        for (number, named) in modules_named(file, folder, path, true) {
            if place(&named).is_some_and(|named| named > own) {
                findings.push(format!("{}:{number}: {module} names {named}", file.path));
            }
        }
    }
    findings
}

#[test]
fn the_brokers_modules_import_downwards_only() {
    let mut findings = Vec::new();
    for (module, file) in broker() {
        let banned = BROKER_MODULES
            .iter()
            .find(|(name, _)| *name == module)
            .map_or(&[][..], |(_, banned)| banned);
        let composition_root = matches!(module.as_str(), "main" | "app" | "lib");
        for (number, named) in modules_named(&file, BROKER, "crate::", false) {
            if banned.contains(&named.as_str()) || (named == "app" && !composition_root) {
                findings.push(format!("{}:{number}: {module} names {named}", file.path));
            }
        }
    }
    none(
        "inside the broker: rpc -> engine -> store, task -> engine, and app is for main alone",
        &findings,
    );
}

#[test]
fn the_brokers_modules_know_only_their_own_layer() {
    let mut findings = Vec::new();
    for (module, file) in broker() {
        let banned = BROKER_CRATES
            .iter()
            .find(|(name, _)| *name == module)
            .map_or(&[][..], |(_, banned)| banned);
        for (number, line) in file.code(true) {
            for name in banned.iter().filter(|name| names_crate(line, name)) {
                findings.push(format!("{}:{number}: {module} names the crate {name}", file.path));
            }
            if WITHOUT_SQL.contains(&module.as_str()) && SQL.iter().any(|sql| line.contains(sql)) {
                findings.push(format!(
                    "{}:{number}: SQL outside the store: {}",
                    file.path,
                    line.trim()
                ));
            }
        }
    }
    none("the engine knows no wire and no SQL, rpc and tasks no SQL, the store no wire", &findings);
}

#[test]
fn the_harness_knows_the_contract_in_one_place() {
    let files: Vec<File> = modules("harness/src/").into_iter().map(|(_, file)| file).collect();
    let named = |file: &File| -> Vec<String> {
        let code = file.code(true).into_iter();
        code.flat_map(|(number, line)| {
            let found = GENERATED.iter().filter(move |name| line.contains(**name));
            found.map(move |name| format!("{}:{number}: {name}", file.path))
        })
        .collect()
    };
    let (allowed, others): (Vec<&File>, Vec<&File>) = files
        .iter()
        .partition(|file| HARNESS_WIRE.iter().any(|(path, _)| file.path.starts_with(path)));
    let mut findings: Vec<String> = others.into_iter().flat_map(named).collect();
    for (path, reason) in HARNESS_WIRE {
        let mut below = allowed.iter().filter(|file| file.path.starts_with(path));
        if below.all(|file| named(file).is_empty()) || reason.len() < 20 {
            findings.push(format!("{path}: names no message, or is listed without a reason"));
        }
    }
    none("in the harness only `wire` knows messages; others use values of hive-core", &findings);
}

fn names_crate(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + name.len()..];
        let begins = before
            .is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':' && c != '.' && c != '"');
        begins
            && (after.starts_with("::")
                || (line.trim_start().starts_with("use ") && after.starts_with(';')))
    })
}

/// The modules of a folder that a file below it names, with line numbers: by the folder's path
/// (`crate::x`, `crate::{x, y}`) or enough `super::`.
fn modules_named(
    file: &File,
    folder: &str,
    path: &str,
    without_tests: bool,
) -> Vec<(usize, String)> {
    let code = file.code(without_tests);
    let mut text = String::new();
    for (number, line) in &code {
        let mut line = (*line).to_owned();
        for value in STORE_VALUES {
            line = line.replace(value, "");
        }
        // The number travels with the line through groups that span several.
        text.push_str(&line);
        text.push_str(&format!("\u{0}{number}\n"));
    }
    let depth = file.path.trim_start_matches(folder).trim_end_matches("/mod.rs").split('/').count();
    let to_the_top = "super::".repeat(depth);
    let mut named = Vec::new();
    for prefix in [path, to_the_top.as_str()] {
        for (at, _) in text.match_indices(prefix) {
            if text[..at]
                .ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$')
            {
                continue;
            }
            let rest = &text[at + prefix.len()..];
            let number = line_number(rest);
            named.extend(first_words(rest).into_iter().map(|word| (number, word)));
        }
    }
    named
}

fn line_number(text: &str) -> usize {
    let mark = text.split('\u{0}').nth(1).unwrap_or_default();
    mark.split('\n').next().unwrap_or_default().parse().unwrap_or(0)
}

/// `a::b` gives `a`; `{a::b, c}` gives `a` and `c`.
fn first_words(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return word(path).into_iter().collect();
    };
    let mut words = Vec::new();
    let mut depth = 0;
    let mut fresh = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && c.is_alphabetic() => {
                words.extend(word(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    words
}

fn word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

#[test]
fn paths_are_read_as_the_compiler_reads_them() {
    let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let named = |path, text| {
        let named = modules_named(&file(path, text), BROKER, "crate::", false);
        named.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    assert_eq!(named("broker/src/engine/send.rs", "use crate::store::Tx;\n"), ["store"]);
    assert_eq!(
        named("broker/src/engine/send.rs", "use crate::{\n    rpc::{a, b},\n    wake,\n};\n"),
        ["rpc", "wake"]
    );
    assert_eq!(
        named("broker/src/engine/send.rs", "use super::super::rpc::X;\n// use crate::app;\n"),
        ["rpc"]
    );
    assert_eq!(named("broker/src/engine/mod.rs", "let x = super::app::run();\n"), ["app"]);
    assert!(named("broker/src/engine/send.rs", "use super::rpc;\n").is_empty());
    assert!(names_crate("    tonic::Status::new()", "tonic"));
    assert!(!names_crate("let not_tonic::x", "tonic"));
}
