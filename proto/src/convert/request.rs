//! Checks of fields that many requests have: request ids, tokens, waits.
//!
//! Invariant: no limit is exceeded silently.

use std::time::Duration;

use hive_core::limits::{
    COALESCING_KEY_CHARS_MAX, PROCESS_TOKEN_CHARS_MIN, REQUEST_ID_CHARS_MAX, TOKEN_CHARS_MAX,
};

use super::Invalid;
use super::time::span;

/// Checks a request id: 1 to 128 printable characters.
pub fn request_id(text: String) -> Result<String, Invalid> {
    printable(text, 1, REQUEST_ID_CHARS_MAX, "request_id")
}

/// Checks a process token: a secret of at least 16 characters.
pub fn process_token(text: String, path: &str) -> Result<String, Invalid> {
    printable(text, PROCESS_TOKEN_CHARS_MIN, TOKEN_CHARS_MAX, path)
}

/// Checks a session or lease token: any text that the broker could have made. A later lookup
/// decides whether it did.
pub fn token(text: String, path: &str) -> Result<String, Invalid> {
    printable(text, 1, TOKEN_CHARS_MAX, path)
}

/// Checks a coalescing key; empty means none.
pub fn coalescing_key(text: String, path: &str) -> Result<Option<String>, Invalid> {
    if text.is_empty() {
        Ok(None)
    } else {
        printable(text, 1, COALESCING_KEY_CHARS_MAX, path).map(Some)
    }
}

/// Checks an etag: any text that the broker could have made; empty means none.
pub fn etag(text: String, path: &str) -> Result<Option<String>, Invalid> {
    if text.is_empty() { Ok(None) } else { token(text, path).map(Some) }
}

/// Checks the name or the version of a client; may be empty.
pub fn client_text(text: String, path: &str) -> Result<String, Invalid> {
    printable(text, 0, REQUEST_ID_CHARS_MAX, path)
}

fn printable(text: String, min: usize, max: usize, path: &str) -> Result<String, Invalid> {
    let length = text.chars().count();
    if length < min || length > max {
        return Err(Invalid::new(
            path,
            format!("must have {min} to {max} characters, not {length}"),
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(Invalid::new(path, "must not have control characters"));
    }
    Ok(text)
}

/// Checks a duration with a default and a limit; a longer one is refused.
pub fn bounded_span(
    wire: Option<prost_types::Duration>,
    default: Duration,
    max: Duration,
    path: &str,
) -> Result<Duration, Invalid> {
    let Some(wire) = wire else { return Ok(default) };
    let asked = span(wire, path)?;
    if asked > max {
        return Err(Invalid::new(path, format!("must be at most {} s", max.as_secs())));
    }
    Ok(asked)
}
