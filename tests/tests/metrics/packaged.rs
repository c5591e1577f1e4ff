//! The packaged dashboard and alerts: they are well formed, and use what hived really shows.
//!
//! Invariant: each alert has a case in which it fires and one in which it does not, and a row in
//! the documentation.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;

use hive_tests::binary::workspace;
use hive_tests::rig::{DUO, Rig, host};
use regex::Regex;
use serde_json::Value;

use crate::scrape::{Page, shows};

const RULES: &str = "packaging/prometheus/hive.rules.yml";
const TESTS: &str = "packaging/prometheus/hive.test.yml";
const DASHBOARD: &str = "packaging/grafana/hive.json";

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns promtool, which `tests/setup.sh` unpacks.
fn promtool() -> Option<PathBuf> {
    let path = workspace().join(".cache/prometheus/usr/bin/promtool");
    host::allows("promtool", path.exists()).then_some(path)
}

fn run(promtool: &Path, args: &[&str], stdin: &str) -> Output {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut child = Command::new(promtool)
        .args(args)
        .current_dir(workspace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(stdin.as_bytes()).expect("promtool reads");
    drop(input);
    child.wait_with_output().expect("promtool ends")
}

fn succeeds(promtool: &Path, args: &[&str], stdin: &str) {
    let output = run(promtool, args, stdin);
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said));
}

/// Returns the queries of the dashboard, with a value for each variable.
fn queries() -> Vec<String> {
    fn all(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| all(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| all(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let dashboard = serde_json::from_str(&read(DASHBOARD)).expect("the dashboard is JSON");
    let mut found = Vec::new();
    all(&dashboard, &mut found);
    assert!(found.len() > 20, "{found:?}");
    found.iter().map(|query| query.replace("$__rate_interval", "5m")).collect()
}

/// Returns the expressions of the alerts.
fn conditions() -> String {
    let rules = read(RULES);
    let words = ["#", "description:", "summary:", "severity:"];
    let inside = |line: &&str| !words.iter().any(|word| line.trim_start().starts_with(word));
    rules.lines().filter(inside).collect::<Vec<_>>().join("\n")
}

fn matches<'t>(pattern: &str, text: &'t str) -> BTreeSet<&'t str> {
    let pattern = Regex::new(pattern).expect("a pattern");
    pattern.captures_iter(text).map(|found| found.get(1).expect("a group").as_str()).collect()
}

async fn page() -> Page {
    let mut rig = Rig::new(&format!("[broker.metrics]\nsocket = \"metrics.sock\"\n{DUO}"));
    rig.start_broker().await;
    // All tasks of the broker have run, so that each has its sample.
    let socket = rig.path("metrics.sock");
    let page = shows(&socket, "tasks have run", |page| {
        page.samples.keys().filter(|name| name.contains("{task=")).count() >= 5
    })
    .await;
    rig.end().await;
    page
}

#[test]
fn the_alerts_are_well_formed_and_fire_in_their_cases() {
    let Some(promtool) = promtool() else { return };
    succeeds(&promtool, &["check", "rules", RULES], "");
    succeeds(&promtool, &["test", "rules", TESTS], "");
    // A test of promtool's that is wrong fails: one value is changed.
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::copy(workspace().join(RULES), dir.path().join("hive.rules.yml")).expect("a copy");
    let tests = read(TESTS);
    let spoilt = tests.replacen(
        "agent=\"ada\"}', values: '9000x110'",
        "agent=\"ada\"}', values: '1x110'",
        1,
    );
    assert_ne!(tests, spoilt);
    let path = dir.path().join("hive.test.yml");
    std::fs::write(&path, spoilt).expect("a file");
    let output = run(&promtool, &["test", "rules", path.to_str().expect("text")], "");
    assert!(!output.status.success(), "an alert that does not fire is not noticed");
}

#[test]
fn each_alert_has_both_cases_and_a_row_in_the_documentation() {
    let (rules, tests, docs) = (read(RULES), read(TESTS), read("docs/operations.md"));
    let alerts = matches(r"- alert: (\w+)", &rules);
    assert!(alerts.len() >= 10, "{alerts:?}");
    let fires = matches(r"alertname: (\w+)\n +exp_alerts:\n", &tests);
    assert_eq!(fires, alerts, "each alert fires in a test");
    let quiet = matches(r"alertname: (\w+), eval_time: \w+, exp_alerts: \[\]", &tests);
    assert_eq!(quiet, alerts, "each alert is quiet in a hive that is well");
    assert_eq!(matches(r"(?m)^\| `(Hive\w+)` \|", &docs), alerts, "each alert is documented");
}

#[tokio::test]
async fn dashboard_and_alerts_use_metrics_that_hived_shows() {
    let page = page().await;
    let shown: BTreeSet<&str> =
        page.samples.keys().map(|sample| sample.split('{').next().expect("a name")).collect();
    let text = queries().join("\n") + "\n" + &conditions();
    let used = matches(r"\b(hive_[a-z_]+)", &text);
    let unknown: Vec<_> = used.difference(&shown).collect();
    assert!(unknown.is_empty(), "hived does not show {unknown:?}");
    // What a label is compared with is a value that it has.
    for (label, values) in Regex::new(r#"\b(state|outcome|cause|type|task)=~?"([^"$]+)""#)
        .expect("a pattern")
        .captures_iter(&text)
        .map(|found| (found[1].to_owned(), found[2].to_owned()))
    {
        for value in values.split('|') {
            let has = format!("{label}=\"{value}\"");
            assert!(page.text.contains(&has), "hived never shows {has}");
        }
    }
    // The dashboard shows every family but the version.
    let queries = queries().join("\n");
    let families: BTreeSet<&str> = page.families().into_iter().collect();
    let hidden: Vec<_> = families
        .iter()
        .filter(|family| !queries.contains(**family))
        .filter(|family| {
            !["hive_build_info", "hive_inboxes", "hive_inbox_limit_deliveries"].contains(*family)
        })
        .collect();
    assert!(hidden.is_empty(), "the dashboard does not show {hidden:?}");
    // The table in the documentation has exactly the families.
    let docs = read("docs/operations.md");
    let rows: String = docs.lines().filter(|line| line.starts_with("| `hive_")).collect();
    assert_eq!(matches(r"`(hive_[a-z_]+)", &rows), families);
}

#[tokio::test]
async fn promtool_reads_the_page_and_the_queries_of_the_dashboard() {
    let Some(promtool) = promtool() else { return };
    succeeds(&promtool, &["check", "metrics"], &page().await.text);
    let rules: Vec<String> = queries()
        .iter()
        .enumerate()
        .map(|(number, query)| {
            let query = serde_json::to_string(query).expect("a string of YAML, too");
            format!("      - {{ record: \"q{number}\", expr: {query} }}\n")
        })
        .collect();
    let rules = format!("groups:\n  - name: dashboard\n    rules:\n{}", rules.concat());
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("dashboard.yml");
    std::fs::write(&path, rules).expect("a file");
    succeeds(&promtool, &["check", "rules", path.to_str().expect("text")], "");
}
