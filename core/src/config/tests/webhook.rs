//! The webhook of `notify`: which URLs can be called as they are.

use super::*;
use crate::secret::Secret;

#[test]
fn a_webhook_is_a_url_that_can_be_called_as_it_is() {
    let webhook = |url: &str| parse(&format!("[operator]\nnotify.webhook = '{url}'"));
    for good in [
        "https://example.org",
        "http://localhost:8080/hook?token=a%20b&x=y",
        "http://10.0.0.1",
        "https://[::1]:443/x",
        "https://[2001:db8::7]",
        "http://a_b.internal?x",
    ] {
        let config = webhook(good).unwrap_or_else(|error| panic!("{good}: {error}"));
        assert_eq!(config.operator.notify, Some(Notify::Webhook(Secret::Text(good.to_owned()))));
    }
    let cases = [
        ("example.org", "must be a URL that begins with https:// or http://"),
        ("HTTPS://example.org", "must be a URL that begins with https:// or http://"),
        ("http://", "must name a host, as in https://example.org/hook"),
        ("http:///hook", "must name a host, as in https://example.org/hook"),
        ("http://:80/hook", "must name a host, as in https://example.org/hook"),
        ("http://a,b/hook", "must name a host, as in https://example.org/hook"),
        ("http://[::1/hook", "must name a host, as in https://example.org/hook"),
        ("http://[example]/hook", "must name a host, as in https://example.org/hook"),
        ("http://x:0", "must have a port from 1 to 65535, or none"),
        ("http://x:65536", "must have a port from 1 to 65535, or none"),
        ("http://x:+80", "must have a port from 1 to 65535, or none"),
        ("http://x:", "must have a port from 1 to 65535, or none"),
        (
            "http://me:secret@x",
            "must have no user name and password, for they would not be sent; put a token into the path or the query",
        ),
        (
            "http://x/a b",
            "must be a URL without spaces, `#` and characters that have to be written with `%`",
        ),
        (
            "http://x/ä",
            "must be a URL without spaces, `#` and characters that have to be written with `%`",
        ),
        (
            "http://x/#y",
            "must be a URL without spaces, `#` and characters that have to be written with `%`",
        ),
    ];
    for (url, problem) in cases {
        let error = webhook(url).expect_err(url).to_string();
        assert_eq!(error, format!("line 2, column 18: `webhook` {problem}"), "{url}");
    }
}
