//! The files of the suite: YAML in the JSON form of `conformance.proto`.
//!
//! Invariant: a file that does not fit the schema is an error that names the place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage};
use serde_json::Value;

/// A case, with its family and the configuration of its broker.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) family: String,
    pub(crate) name: String,
    pub(crate) config: String,
    pub(crate) through: Through,
    pub(crate) script: BTreeMap<String, Script>,
    pub(crate) steps: Vec<Step>,
    /// What earlier brokers do not do; empty: nothing.
    pub(crate) later: String,
}

/// The ways in which a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    Both,
    Wire,
    Kits,
}

/// The answers of a scripted broker to one method.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) answers: Vec<Answer>,
}

/// What a scripted broker does with one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) expect: Option<Value>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) error: Option<Value>,
    pub(crate) cut: bool,
}

/// A message of a scripted call; one of the three is set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    pub(crate) send: Option<Value>,
    pub(crate) receive: Option<Value>,
    pub(crate) closed: bool,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Call(String),
    Do(String),
    Open(String),
    Write(Value),
    Read,
    End,
    Drop,
    Fault(Fault),
    Await(String),
    Until(String),
}

/// What happens to the path between clients and broker.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Kill,
    Stop,
    Start,
    Hold(String),
    Release(String),
    Cut(String),
    Refuse(String),
    Backup,
    Restore,
}

/// One step of a case.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) actor: String,
    pub(crate) action: Action,
    pub(crate) request: Value,
    pub(crate) of: String,
    pub(crate) expect: Option<Value>,
    pub(crate) error: Option<Value>,
    pub(crate) unordered: bool,
    pub(crate) background: String,
    pub(crate) within: Duration,
    pub(crate) wire: bool,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) repeat: u64,
}

/// The longest time of a step that names none.
const WITHIN: Duration = Duration::from_secs(20);

/// Reads all files of a directory; the names of cases differ.
pub(crate) fn read(directory: &Path) -> Result<Vec<Case>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .with_context(|| format!("{} is not readable", directory.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        cases.extend(parse(&text).with_context(|| file.display().to_string())?);
    }
    let mut names = BTreeSet::new();
    for case in &cases {
        let name = format!("{}: {}", case.family, case.name);
        ensure!(names.insert(name.clone()), "two cases have the name `{name}`");
    }
    Ok(cases)
}

fn parse(text: &str) -> Result<Vec<Case>> {
    let suite: Value = serde_saphyr::from_str(text)?;
    check(&suite)?;
    let family = string(&suite, "family");
    let config = string(&suite, "config");
    let cases = suite.get("cases").and_then(Value::as_array).into_iter().flatten();
    cases
        .map(|case| {
            let name = string(case, "name");
            parse_case(case, &family, &config).with_context(|| format!("case `{name}`"))
        })
        .collect()
}

/// Checks a file against the schema.
fn check(suite: &Value) -> Result<()> {
    let pool = DescriptorPool::decode(SCHEMA).context("the schema is valid")?;
    let schema = pool.get_message_by_name("hive.conformance.v1.Suite").context("the schema")?;
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    DynamicMessage::deserialize_with_options(schema, suite, &options)?;
    Ok(())
}

/// The descriptors of `conformance.proto`.
const SCHEMA: &[u8] = include_bytes!("gen/conformance.bin");

fn string(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn parse_case(case: &Value, family: &str, config: &str) -> Result<Case> {
    let own = string(case, "config");
    let scripts = case.get("script").and_then(Value::as_object).into_iter().flatten();
    let steps: Vec<Step> = list(case, "steps").map(parse_step).collect::<Result<_>>()?;
    ensure!(!steps.is_empty(), "it has no steps");
    Ok(Case {
        family: family.to_owned(),
        name: string(case, "name"),
        config: if own.is_empty() { config.to_owned() } else { own },
        through: match &string(case, "through")[..] {
            "THROUGH_WIRE" => Through::Wire,
            "THROUGH_KITS" => Through::Kits,
            _ => Through::Both,
        },
        script: scripts.map(|(method, script)| (method.clone(), parse_script(script))).collect(),
        steps,
        later: string(case, "later"),
    })
}

fn parse_script(script: &Value) -> Script {
    let turn = |turn: &Value| Turn {
        send: turn.get("send").cloned(),
        receive: turn.get("receive").cloned(),
        closed: flag(turn, "closed"),
    };
    let answers = list(script, "answers").map(|answer| Answer {
        expect: answer.get("expect").cloned(),
        turns: list(answer, "turns").map(turn).collect(),
        error: answer.get("error").cloned(),
        cut: flag(answer, "cut"),
    });
    Script { answers: answers.collect() }
}

fn parse_step(step: &Value) -> Result<Step> {
    let within = match &string(step, "within")[..] {
        "" => WITHIN,
        text => {
            let seconds: f64 = text.trim_end_matches('s').parse().context("`within`")?;
            Duration::from_secs_f64(seconds)
        }
    };
    let metadata = step.get("metadata").and_then(Value::as_object).into_iter().flatten();
    Ok(Step {
        actor: string(step, "as"),
        action: parse_action(step)?,
        request: step.get("request").cloned().unwrap_or_else(|| serde_json::json!({})),
        of: string(step, "of"),
        expect: step.get("expect").cloned(),
        error: step.get("error").cloned(),
        unordered: flag(step, "unordered"),
        background: string(step, "background"),
        within,
        wire: flag(step, "wire"),
        repeat: step.get("repeat").and_then(Value::as_u64).unwrap_or(1),
        metadata: metadata
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
    })
}

fn parse_action(step: &Value) -> Result<Action> {
    let text = |name: &str| string(step, name);
    let names = ["call", "do", "open", "write", "read", "end", "drop", "fault", "await", "until"];
    let Some(name) = names.into_iter().find(|name| step.get(*name).is_some()) else {
        bail!("a step has no action: {step}");
    };
    Ok(match name {
        "call" => Action::Call(text("call")),
        "do" => Action::Do(text("do")),
        "open" => Action::Open(text("open")),
        "write" => Action::Write(step.get("write").cloned().unwrap_or_default()),
        "read" => Action::Read,
        "end" => Action::End,
        "drop" => Action::Drop,
        "await" => Action::Await(text("await")),
        "until" => Action::Until(text("until")),
        _ => Action::Fault(parse_fault(step.get("fault").unwrap_or(&Value::Null))?),
    })
}

fn parse_fault(fault: &Value) -> Result<Fault> {
    let text = |name: &str| string(fault, name);
    let names = ["kill", "stop", "start", "hold", "release", "cut", "refuse", "backup", "restore"];
    let Some(name) = names.into_iter().find(|name| fault.get(*name).is_some()) else {
        bail!("a fault has no kind");
    };
    Ok(match name {
        "kill" => Fault::Kill,
        "stop" => Fault::Stop,
        "start" => Fault::Start,
        "hold" => Fault::Hold(text("hold")),
        "release" => Fault::Release(text("release")),
        "cut" => Fault::Cut(text("cut")),
        "refuse" => Fault::Refuse(text("refuse")),
        "backup" => Fault::Backup,
        _ => Fault::Restore,
    })
}
