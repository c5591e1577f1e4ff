//! Checks of fields that many requests have: request ids, tokens, pages, waits.
//!
//! Invariant: no limit is exceeded silently; page sizes are clamped because a page may always be
//! smaller, everything else is refused.

use std::time::Duration;

use hive_core::limits::{
    COALESCING_KEY_CHARS_MAX, PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, PROCESS_TOKEN_CHARS_MIN,
    REQUEST_ID_CHARS_MAX, TOKEN_CHARS_MAX,
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

/// Returns the number of rows of a page, for lists with the usual limits.
#[must_use]
pub fn page_rows(asked: u32) -> u32 {
    page_rows_of(asked, PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX)
}

/// Returns the number of rows of a page, for a list with its own limits.
#[must_use]
pub fn page_rows_of(asked: u32, default: u32, max: u32) -> u32 {
    if asked == 0 { default } else { asked.min(max) }
}

/// Returns the position after which a page begins; `None` for the first page. Only texts of
/// [`page_token`] are accepted.
pub fn page_after(token: &str) -> Result<Option<u64>, Invalid> {
    if token.is_empty() {
        return Ok(None);
    }
    match token.parse::<u64>() {
        // The comparison refuses `+7` and `007`: a token is opaque, and a token that the broker
        // never made is a client's mistake.
        Ok(place) if page_token(Some(place)) == token => Ok(Some(place)),
        _ => Err(Invalid::new(
            "page_token",
            "is not a token of an earlier page; begin again without one",
        )),
    }
}

/// Returns the token of the next page; empty at the end.
#[must_use]
pub fn page_token(place: Option<u64>) -> String {
    place.map(|place| place.to_string()).unwrap_or_default()
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
