//! The output of `--json` matches the schemas of `docs/schemas`, for every command and every option
//! that changes it.
//!
//! A field that a schema does not name is a failure, although the schemas allow it: all output is
//! documented.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use clap::CommandFactory as _;
use hivectl::cli::Cli;
use hivectl::schema::{PRINTED, Printed, Shape, WITHOUT_JSON};
use jsonschema::Validator;
use serde_json::Value;

use super::follow::Following;
use super::hive::Hive;
use super::output::{CHANGES, LOOKS, STATS, run_answered};
use super::schedules;

struct Schemas {
    validators: BTreeMap<String, Validator>,
    seen: BTreeSet<Printed>,
}

impl Schemas {
    fn read() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas");
        let mut validators = BTreeMap::new();
        for entry in std::fs::read_dir(folder).expect("the schemas are committed") {
            let path = entry.expect("an entry").path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json"))
            else {
                continue;
            };
            let text = std::fs::read_to_string(&path).expect("a schema is readable");
            let mut schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
            jsonschema::draft202012::meta::validate(&schema)
                .unwrap_or_else(|error| panic!("{name} is no schema: {error}"));
            strict(&mut schema);
            let validator =
                jsonschema::draft202012::options().should_validate_formats(true).build(&schema);
            validators.insert(
                name.to_owned(),
                validator.unwrap_or_else(|error| panic!("{name} is no schema: {error}")),
            );
        }
        Self { validators, seen: BTreeSet::new() }
    }

    fn check(&mut self, args: &[&str], out: &str) {
        let (command, with) = called(args);
        for line in out.lines() {
            let value: Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{args:?} prints no JSON: {error}: {line}"));
            let shape = match (&value, with) {
                (Value::Array(_), _) => Shape::Array,
                (_, Some("--follow" | "--output")) => Shape::Lines,
                (_, _) => Shape::Object,
            };
            if shape == Shape::Object {
                assert_eq!(out.lines().count(), 1, "{args:?} prints one object");
            }
            let is_this = |printed: &&Printed| printed.command == command && printed.with == with;
            let printed = PRINTED.iter().find(is_this).unwrap_or_else(|| {
                panic!("{command} {with:?} is not in the list of what is printed")
            });
            assert_eq!(printed.shape, shape, "{args:?}");
            let objects = value.as_array().cloned().unwrap_or_else(|| vec![value]);
            for object in &objects {
                assert_eq!(object["schema"], printed.schema, "{args:?}");
                let validator = self
                    .validators
                    .get(printed.schema)
                    .unwrap_or_else(|| panic!("docs/schemas has no {}", printed.schema));
                let errors: Vec<String> = validator
                    .iter_errors(object)
                    .map(|error| format!("{}: {error}", error.instance_path()))
                    .collect();
                assert!(
                    errors.is_empty(),
                    "{args:?} does not fit {}:\n{}\n{object}",
                    printed.schema,
                    errors.join("\n")
                );
            }
            // An empty array does not show its objects.
            if !objects.is_empty() {
                self.seen.insert(*printed);
            }
        }
    }
}

/// Allows in each object only the fields that the schema names.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") {
                fields.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            fields.values_mut().for_each(strict);
        }
        Value::Array(parts) => parts.iter_mut().for_each(strict),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the command of a command line, and the option that changes its output.
fn called(args: &[&str]) -> (String, Option<&'static str>) {
    let words = std::iter::once("hivectl").chain(args.iter().copied());
    let matches = Cli::command()
        .try_get_matches_from(words)
        .unwrap_or_else(|error| panic!("{args:?}: {error}"));
    let mut path = Vec::new();
    let mut command = &matches;
    while let Some((name, below)) = command.subcommand() {
        path.push(name);
        command = below;
    }
    let changing = ["--follow", "--output", "--message", "--thread", "--threads"];
    // Of a bundle it is the file.
    let is_bundle = path.last() == Some(&"bundle");
    let option = changing.into_iter().find(|option| args.contains(option) && !is_bundle);
    (path.join(" "), option)
}

/// Every command that can be called, and every other for which there is a list of such.
fn commands(command: &clap::Command, path: &str, all: &mut BTreeSet<String>) {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let path = format!("{path}{}", below.get_name());
        if !below.is_subcommand_required_set() {
            all.insert(path.clone());
        }
        commands(below, &format!("{path} "), all);
    }
}

#[test]
fn every_command_says_what_it_prints() {
    let mut all = BTreeSet::new();
    commands(&Cli::command(), "", &mut all);
    let output: BTreeSet<String> = PRINTED
        .iter()
        .map(|printed| printed.command)
        .chain(WITHOUT_JSON.map(|(command, _)| command))
        .map(str::to_owned)
        .collect();
    assert_eq!(all, output);
    assert!(PRINTED.is_sorted() && PRINTED.iter().collect::<BTreeSet<_>>().len() == PRINTED.len());
}

/// Called in none of the other lists.
const FURTHER: [&[&str]; 9] = [
    &["doctor"],
    &["inbox", "list"],
    &["inbox", "list", "--threads"],
    &["dead-letters", "list"],
    &["questions", "list"],
    &["reminders", "list"],
    &["turn", "show", "2", "--follow"],
    &["search", "poison", "--limit", "3"],
    &["agent", "show", "old"],
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_printed_fits_its_schema() {
    let mut schemas = Schemas::read();
    let (mut hive, empty) = (Hive::start().await, Hive::empty());
    let looks = LOOKS.into_iter().chain(STATS).chain(FURTHER);
    let of_schedules = schedules::LOOKS.into_iter().chain(schedules::CHANGES);
    for args in looks.clone().chain(CHANGES).chain(of_schedules.clone()) {
        let ran = empty.run(&[args, &["--json"]].concat()).await;
        // Commands that ask for confirmation are refused without a terminal.
        assert!(ran.code != 2 || ran.err.contains("--yes"), "{args:?}: {}", ran.err);
        schemas.check(args, &ran.out);
    }
    for args in looks {
        schemas.check(args, &hive.run(&[args, &["--json"]].concat()).await.out);
    }
    for (args, cancelled) in [("1m", false), ("1h", true)] {
        let args = ["ask", "bob", "Done?", "--wait", "--ttl", args, "--json"];
        let ran = hive.asking(&args, async |question| {
            if cancelled {
                hive.operator().await.withdraw(question).await;
            } else {
                hive.advance(Duration::from_secs(61));
            }
        });
        schemas.check(&args, &ran.await.out);
    }
    let file = hive.dir().join("wrong.toml");
    std::fs::write(&file, "[agents.ada]\nparnet = \"bob\"\n[zoo]\n").expect("a file");
    let check = ["config", "check", file.to_str().expect("text")];
    schemas.check(&check, &hive.run(&[&check[..], &["--json"]].concat()).await.out);
    schemas.check(&["config", "keys"], &hive.run(&["config", "keys", "--json"]).await.out);
    let copy = hive.dir().join("copy.db");
    let backup = ["backup", copy.to_str().expect("text")];
    schemas.check(&backup, &hive.run(&[&backup[..], &["--json"]].concat()).await.out);
    let bundle = hive.dir().join("bundle.tar.gz");
    let bundle = ["debug", "bundle", "--output", bundle.to_str().expect("text")];
    schemas.check(&bundle, &hive.run(&[&bundle[..], &["--json"]].concat()).await.out);
    // It is beside hivectl.
    hive_tests::binary::find("hive-broker", "hived");
    let state = hive.dir().join("restored");
    std::fs::create_dir(&state).expect("a directory");
    let state = state.to_str().expect("text");
    let restore = ["restore", copy.to_str().expect("text"), "--state-dir", state];
    schemas.check(&restore, &hive.run(&[&restore[..], &["--json"]].concat()).await.out);
    follows(&mut schemas, &mut hive).await;
    let hive = Hive::scheduled().await;
    for args in of_schedules {
        schemas.check(args, &hive.run(&[args, &["--json"]].concat()).await.out);
    }
    let hive = Hive::start().await;
    for args in CHANGES {
        let ran = run_answered(&hive, &[args, &["--json"]].concat()).await;
        schemas.check(args, &ran.out);
    }
    let unseen: Vec<&Printed> =
        PRINTED.iter().filter(|printed| !schemas.seen.contains(printed)).collect();
    assert!(unseen.is_empty(), "nothing here prints {unseen:?}");
}

/// Checks output that arrives over time: the present state, then changes.
async fn follows(schemas: &mut Schemas, hive: &mut Hive) {
    for args in [
        &["inbox", "--follow"][..],
        &["inbox", "list", "--follow"],
        &["events", "--follow", "--after", "12"],
        &["questions", "--follow"],
        &["questions", "list", "--follow"],
    ] {
        let mut following = Following::start(hive, &[args, &["--json"]].concat());
        schemas.check(args, &following.line().await);
        let claude = hive.claude().await;
        let id = claude.ask("operator", "And now?").await;
        // The first line of it, and then the next thing that becomes of it.
        let is_of_it =
            format!("\"{}\":{id}", if args[0] == "questions" { "id" } else { "question_id" });
        let mut seen = async || loop {
            let line = following.line().await;
            schemas.check(args, &line);
            if line.contains(&is_of_it) {
                return;
            }
        };
        seen().await;
        claude.withdraw(id).await;
        if args[0] != "inbox" {
            seen().await;
        }
        assert_eq!(following.interrupt().await, 0);
    }
}

#[test]
fn a_field_too_few_or_too_many_does_not_fit() {
    let schemas = Schemas::read();
    let done = &schemas.validators["hive.done.v1"];
    let value = serde_json::json!({ "schema": "hive.done.v1", "done": "acked", "agent": null, "message_id": 7, "command_id": null });
    assert!(done.is_valid(&value));
    let changed = |name: &str, change: Value| {
        let mut value = value.clone();
        value[name] = change;
        done.is_valid(&value)
    };
    assert!(
        !changed("schema", "hive.done.v2".into())
            && !changed("message_id", "7".into())
            && !changed("more", Value::Null)
    );
    let mut less = value.clone();
    less.as_object_mut().expect("an object").remove("agent");
    assert!(!done.is_valid(&less));
}
