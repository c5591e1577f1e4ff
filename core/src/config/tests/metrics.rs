//! `broker.metrics`: which places pass, and what is said of the others.

use super::*;

fn metrics(value: &str) -> Option<Metrics> {
    let text = format!("[broker]\nmetrics = {value}\n");
    parse(&text).expect("valid").broker.metrics
}

fn refusal(value: &str) -> String {
    message(&format!("[broker]\nmetrics = {value}\n"))
}

#[test]
fn a_socket_or_an_address_of_loopback_passes() {
    let socket = |path: &str, group: Option<&str>| {
        Some(Metrics::Socket { path: path.into(), group: group.map(str::to_owned) })
    };
    let wanted = socket("/run/hive/metrics.sock", None);
    assert_eq!(metrics(r#"{ socket = "/run/hive/metrics.sock" }"#), wanted);
    let wanted = socket("/m", Some("prometheus"));
    assert_eq!(metrics(r#"{ socket = "/m", group = "prometheus" }"#), wanted);
    for address in ["127.0.0.1:9464", "127.8.9.1:1", "[::1]:65535"] {
        let wanted = Some(Metrics::Listen(address.parse().expect("an address")));
        assert_eq!(metrics(&format!("{{ listen = \"{address}\" }}")), wanted);
    }
    let mut config = parse("[broker.metrics]\nsocket = \"m.sock\"\n").expect("valid");
    config.resolve_paths(Path::new("/etc/hive"));
    assert_eq!(config.broker.metrics, socket("/etc/hive/m.sock", None));
    assert_eq!(parse("").expect("valid").broker.metrics, None);
}

#[test]
fn an_address_of_the_network_is_refused_with_the_reason() {
    for address in ["0.0.0.0:9464", "192.168.1.4:9464", "[::]:9464", "[::ffff:127.0.0.1]:9464"] {
        let said = refusal(&format!("{{ listen = \"{address}\" }}"));
        assert!(said.starts_with("line 2, column 22: "), "{said}");
        assert!(said.contains("address of loopback, as 127.0.0.1:9464"), "{said}");
        assert!(said.contains("on loopback every local user can"), "{said}");
    }
}

#[test]
fn anything_else_is_a_finding_with_its_line() {
    let long = format!("{{ socket = \"/{}\" }}", "s".repeat(107));
    for (value, wanted) in [
        (
            r#"{ listen = "localhost:9464" }"#,
            "line 2, column 22: `listen` must be an address of loopback and a port, as 127.0.0.1:9464 or [::1]:9464",
        ),
        (
            r#"{ listen = "127.0.0.1" }"#,
            "line 2, column 22: `listen` must be an address of loopback and a port, as 127.0.0.1:9464 or [::1]:9464",
        ),
        (
            r#"{ listen = "127.0.0.1:0" }"#,
            "line 2, column 22: `listen` must have a port from 1 to 65535",
        ),
        (r#"{ listen = 9464 }"#, "line 2, column 22: `listen` must be a string, not a number"),
        (r#"{ socket = "" }"#, "line 2, column 22: `socket` is empty; leave it out instead"),
        (
            long.as_str(),
            "line 2, column 22: `socket` has 108 bytes, more than the 107 that Linux allows; choose a shorter path",
        ),
        (
            r#"{ socket = "/m", listen = "127.0.0.1:1" }"#,
            "line 2, column 37: `metrics` has a `socket` and a `listen`; leave one of them out",
        ),
        (
            "{}",
            "line 2, column 11: `metrics` is empty; give it a `socket` or a `listen`, or leave it out",
        ),
        (
            r#"{ listen = "127.0.0.1:1", group = "staff" }"#,
            "line 2, column 45: `group` belongs to a `socket`, and `metrics` has none; leave it out",
        ),
        (
            r#"{ socket = "/m", group = "" }"#,
            "line 2, column 36: `group` is empty; leave it out instead",
        ),
        ("true", "line 2, column 11: `metrics` must be a table, not true or false"),
        (
            r#"{ sockte = "/m" }"#,
            "line 2, column 13: unknown key `sockte` in [broker.metrics]; did you mean `socket`?",
        ),
    ] {
        let said = refusal(value);
        assert!(said.starts_with(wanted), "{value}: {said}");
    }
}
