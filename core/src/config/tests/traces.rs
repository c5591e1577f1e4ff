//! `broker.traces`: which collectors pass, and what is said of the others.

use super::*;
use crate::secret::{Place, Secret};

fn traces(table: &str) -> Option<Traces> {
    parse(&format!("[broker.traces]\n{table}\n")).expect("valid").broker.traces
}

#[test]
fn a_collector_of_this_host_or_one_with_encryption_passes() {
    for url in [
        "http://127.0.0.1:4318/v1/traces",
        "http://localhost/v1/traces",
        "http://[::1]:4318/v1/traces",
        "https://collector.example.org/v1/traces?team=x",
    ] {
        let wanted = Traces { otlp: url.to_owned(), headers: BTreeMap::new() };
        assert_eq!(traces(&format!("otlp = \"{url}\"")), Some(wanted), "{url}");
    }
    assert_eq!(parse("").expect("valid").broker.traces, None);
}

#[test]
fn a_header_may_be_kept_in_a_file_beside_the_configuration() {
    let text = "[broker.traces]\notlp = \"http://localhost/\"\nheaders = { x-team = \"a b\", authorization = { file = \"t\" } }\n";
    let mut config = parse(text).expect("valid");
    config.resolve_paths(Path::new("/etc/hive"));
    let headers = config.broker.traces.expect("a collector").headers;
    assert_eq!(headers["x-team"], Secret::Text("a b".to_owned()));
    assert_eq!(headers["authorization"], Secret::Kept(Place::File("/etc/hive/t".into())));
}

#[test]
fn anything_else_is_a_finding_with_its_line() {
    let refusal = |table: &str| message(&format!("[broker.traces]\n{table}\n"));
    for url in
        ["http://collector.example.org/", "http://10.0.0.1:4318/", "http://127.0.0.1.example.org/"]
    {
        let said = refusal(&format!("otlp = \"{url}\""));
        assert!(
            said.starts_with("line 2, column 8: `otlp` must begin with https:// for another host"),
            "{said}"
        );
    }
    for (table, wanted) in [
        ("", "line 1, column 1: `traces` has no `otlp`"),
        ("otlp = \"\"", "line 2, column 8: `otlp` is empty"),
        (
            "otlp = \"grpc://x\"",
            "line 2, column 8: `otlp` must be a URL that begins with https:// or http://",
        ),
        ("otlp = 4318", "line 2, column 8: `otlp` must be a string"),
        (
            "oltp = \"http://localhost/\"",
            "line 2, column 1: unknown key `oltp` in [broker.traces]; did you mean `otlp`?",
        ),
        (
            "otlp = \"http://localhost/\"\nheaders.Authorization = \"x\"",
            "line 3, column 9: `Authorization` is no name of a header; use lower-case letters",
        ),
        (
            "otlp = \"http://localhost/\"\nheaders.host = \"x\"",
            "line 3, column 9: the header `host` is set by the broker; leave it out",
        ),
        (
            "otlp = \"http://localhost/\"\nheaders.x = \"a\\nb\"",
            "line 3, column 9: the header `x` must have a value of printable ASCII characters",
        ),
    ] {
        let said = refusal(table);
        assert!(said.contains(wanted), "{table}: {said}");
    }
}
