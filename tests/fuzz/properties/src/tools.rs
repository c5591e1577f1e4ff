//! Tool calls of a model: arguments that are JSON at best, for each tool of the bridge.
//!
//! What it is not: a broker; the bridge's socket has a path that nothing can be reached by, so a
//! call whose arguments are good ends there, at once. Invariants: every call ends with one line of
//! bounded length; arguments that are not right are refused as such, and the refusal names one of
//! them.

use std::path::Path;
use std::sync::LazyLock;

use hive_core::reason::Reason;
use hive_mcp_bridge::call::Call;
use hive_mcp_bridge::error::Refusal;
use hive_mcp_bridge::peer::Peer;
use hive_mcp_bridge::tool::{self, Offer};
use rmcp::model::{JsonObject, RequestMetaObject};
use tokio_util::sync::CancellationToken;

use crate::seen;

/// Longest refusal, in characters: a sentence and what to do next.
const REFUSAL_CHARS_MAX: usize = 1000;

/// The reasons of a bridge without a broker or harness; the arguments were valid then.
const GOOD: [&str; 3] = ["BROKER_AWAY", "HARNESS_AWAY", "CLOSING"];

static OFFERS: LazyLock<Vec<Offer>> =
    LazyLock::new(|| tool::all().into_iter().chain(tool::bash()).collect());

/// The tools, in the order in which a first byte names them.
pub fn names() -> Vec<String> {
    OFFERS.iter().map(|offer| offer.tool.name.to_string()).collect()
}

/// Checks the bytes: the first names the tool, the rest are its arguments.
pub fn check(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let offer = &OFFERS[usize::from(*first) % OFFERS.len()];
    let Ok(arguments) = serde_json::from_slice::<JsonObject>(rest) else { return };
    let refusal = called(offer, &arguments);
    let words = refusal.to_string();
    assert_eq!(words.lines().count(), 1, "{words:?}");
    assert_eq!(seen::offender(&words), None, "{words:?}");
    assert!(words.chars().count() <= REFUSAL_CHARS_MAX, "{} characters", words.chars().count());
    if refusal.code == Reason::FieldInvalid.as_str() {
        assert!(
            names_one(offer, &arguments, &words),
            "{} is refused, and not what of it: {words}",
            offer.tool.name
        );
    } else {
        assert!(GOOD.contains(&refusal.code), "{words}");
    }
}

/// Returns the bridge's answer to this call.
fn called(offer: &Offer, arguments: &JsonObject) -> Refusal {
    // Longer than a socket's path may be, so that there is no way to it and nothing is waited for.
    let nowhere = "x".repeat(200);
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers");
    runtime.block_on(async {
        let peer = Peer::broker(Path::new(&nowhere), "a token of a turn".parse().ok());
        let call = Call::new(None, &RequestMetaObject::default(), CancellationToken::new());
        (offer.run)(&peer, &call, arguments.clone()).await.expect_err("no service could answer")
    })
}

/// Whether the words have the name of an argument, one that there is or one that was given.
fn names_one(offer: &Offer, arguments: &JsonObject, words: &str) -> bool {
    let known = offer.tool.input_schema.get("properties").and_then(serde_json::Value::as_object);
    let known = known.into_iter().flat_map(serde_json::Map::keys);
    // An unknown key may be long or hidden; the bridge shows as much of it as fits.
    known.chain(arguments.keys()).any(|name| words.contains(name.as_str()))
        || words.contains("unknown field")
}
