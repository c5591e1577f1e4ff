//! `broker.traces`: the collector to which the broker sends traces.
//!
//! Invariant: what passes can be sent as it is, and leaves the host only encrypted.

use core::net::IpAddr;
use std::collections::BTreeMap;

use super::notify::check_url;
use super::section::Section;
use crate::secret::Secret;

/// Headers that the broker sets itself.
const OWN_HEADERS: [&str; 7] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
];
/// Longest name of a header, in characters.
const HEADER_CHARS_MAX: usize = 128;

/// A collector of traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The URL to which spans are posted, by OTLP over HTTP.
    pub otlp: String,
    /// Headers of each post, such as a token.
    pub headers: BTreeMap<String, Secret>,
}

/// Reads the table, if `[broker]` has one.
pub(super) fn read(broker: &mut Section<'_, '_, '_>) -> Option<Traces> {
    let span = broker.value("traces")?.span();
    let table = broker.table("traces")?;
    let mut section = Section::new(broker.key("traces"), table, broker.findings());
    let has_url = section.value("otlp").is_some();
    let otlp = url(&mut section);
    let headers = headers(&mut section);
    section.finish();
    if !has_url {
        let sentence = "`traces` has no `otlp`; name the URL of a collector, as http://127.0.0.1:4318/v1/traces";
        broker.object(span, "traces", sentence.to_owned(), None);
    }
    Some(Traces { otlp: otlp?, headers })
}

fn url(section: &mut Section<'_, '_, '_>) -> Option<String> {
    let (url, span) = section.text("otlp")?;
    let problem = match check_url(&url) {
        Err(problem) => problem,
        Ok(()) if url.starts_with("http://") && !is_local(&url) => {
            "must begin with https:// for another host: traces tell who works on what, and headers may have a token; or have a collector \
             on this host pass them on"
        }
        Ok(()) => return Some(url),
    };
    section.object(span, "otlp", format!("`otlp` {problem}"), None);
    None
}

/// Returns whether the host of a valid URL is this host, as an address of loopback or `localhost`.
fn is_local(url: &str) -> bool {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let host = match authority.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or(authority),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn headers(section: &mut Section<'_, '_, '_>) -> BTreeMap<String, Secret> {
    let mut headers = BTreeMap::new();
    for (name, (value, span)) in section.secrets("headers") {
        let shown = name.escape_debug();
        let is_name = (1..=HEADER_CHARS_MAX).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        let is_value = value.text().is_none_or(|text| {
            !text.is_empty() && text.chars().all(|c| c == ' ' || c.is_ascii_graphic())
        });
        let problem = if !is_name {
            format!("`{shown}` is no name of a header; use lower-case letters, digits and `-`")
        } else if OWN_HEADERS.contains(&name.as_str()) {
            format!("the header `{shown}` is set by the broker; leave it out")
        } else if !is_value {
            format!("the header `{shown}` must have a value of printable ASCII characters")
        } else {
            headers.insert(name, value);
            continue;
        };
        section.object(span, "headers", problem, None);
    }
    headers
}
