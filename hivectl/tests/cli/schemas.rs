//! What is printed with `--json` fits the schemas of `docs/schemas`, for every command and every
//! way to call it.
//!
//! A field that a schema does not name is a failure here, though the schemas allow it: what is
//! printed is documented.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::CommandFactory as _;
use hive_proto::v1::{Event, EventKind, Question, QuestionState};
use hivectl::cli::Cli;
use hivectl::schema::{PRINTED, Printed, Shape, WITHOUT_JSON};
use jsonschema::Validator;
use serde_json::Value;

use super::fake::Broker;
use super::follow::Following;
use super::output::{CHANGES, LOOKS};
use super::run::run;

/// The committed schemas, made strict.
struct Schemas {
    validators: BTreeMap<String, Validator>,
    /// What was seen to be printed.
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

    /// Checks what a command printed.
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
            // An empty array says nothing about what is in it.
            if !objects.is_empty() {
                self.seen.insert(*printed);
            }
        }
    }
}

/// Allows in each object only what the schema names.
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

/// The command of a command line, and the option that changes what it prints.
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
    (path.join(" "), changing.into_iter().find(|option| args.contains(option)))
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
    let told: BTreeSet<String> = PRINTED
        .iter()
        .map(|printed| printed.command)
        .chain(WITHOUT_JSON.map(|(command, _)| command))
        .map(str::to_owned)
        .collect();
    assert_eq!(all, told);
    assert!(PRINTED.is_sorted() && PRINTED.iter().collect::<BTreeSet<_>>().len() == PRINTED.len());
}

/// Called in none of the other lists.
const FURTHER: [&[&str]; 11] = [
    &["doctor"],
    &["inbox", "list"],
    &["inbox", "list", "--threads"],
    &["dead-letters", "list"],
    &["questions", "list"],
    &["reminders", "list"],
    &["ask", "ada", "Done?", "--wait"],
    &["ask", "fickle", "Done?", "--wait"],
    &["ask", "late", "Done?", "--wait"],
    &["turn", "show", "11", "--follow"],
    &["search", "many", "--limit", "3"],
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_printed_fits_its_schema() {
    let mut schemas = Schemas::read();
    let (broker, nobody) = (Broker::start(), Broker::empty());
    for args in LOOKS.into_iter().chain(CHANGES).chain(FURTHER) {
        for broker in [&broker, &nobody] {
            let ran = run(&broker.socket(), &[args, &["--json"]].concat()).await;
            // What asks first is refused without a terminal.
            assert!(ran.code != 2 || ran.err.contains("--yes"), "{args:?}: {}", ran.err);
            schemas.check(args, &ran.out);
        }
    }
    let file = broker.dir().join("hive.toml");
    std::fs::write(&file, "[agents.ada]\nparnet = \"bob\"\n[zoo]\n").expect("a file");
    let check = ["config", "check", file.to_str().expect("text")];
    schemas.check(&check, &run(&broker.socket(), &[&check[..], &["--json"]].concat()).await.out);
    let copy = broker.dir().join("copy.db");
    let backup = ["backup", copy.to_str().expect("text")];
    schemas.check(&backup, &run(&broker.socket(), &[&backup[..], &["--json"]].concat()).await.out);
    follows(&mut schemas, &mut Broker::start()).await;
    let unseen: Vec<&Printed> =
        PRINTED.iter().filter(|printed| !schemas.seen.contains(printed)).collect();
    assert!(unseen.is_empty(), "nothing here prints {unseen:?}");
}

/// What is printed as it comes: what waits there already, and what happens then.
async fn follows(schemas: &mut Schemas, broker: &mut Broker) {
    for (args, waiting) in [
        (&["inbox", "--follow"][..], 3),
        (&["inbox", "list", "--follow"], 3),
        (&["events", "--follow", "--after", "12"], 1),
        (&["questions", "--follow"], 2),
        (&["questions", "list", "--follow"], 2),
    ] {
        let mut following = Following::start(broker, &[args, &["--json"]].concat());
        for _ in 0..waiting {
            schemas.check(args, &following.line().await);
        }
        broker.watched().await;
        if args[0] == "questions" {
            let open = Question {
                id: 45,
                state: QuestionState::Open.into(),
                target: "operator".to_owned(),
                ..Question::default()
            };
            broker.question(open.clone());
            broker.question(Question { state: QuestionState::Expired.into(), ..open });
            schemas.check(args, &following.line().await);
            schemas.check(args, &following.line().await);
        } else if args[0] == "events" {
            broker.happens(Event {
                sequence: 14,
                kind: EventKind::TurnEnded.into(),
                ..Event::default()
            });
            schemas.check(args, &following.line().await);
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
