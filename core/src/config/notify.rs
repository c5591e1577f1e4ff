//! `operator.notify`: the command or webhook that runs when the operator outbox gets an entry.
//!
//! Invariant: a URL that passes can be called unchanged: no client leaves out or refuses a part of
//! it.

use super::section::Section;
use super::values::Notify;

/// Longest host name, in characters, as in DNS.
const HOST_CHARS_MAX: usize = 253;

/// Reads the table, if `[operator]` has one.
pub(super) fn read(operator: &mut Section<'_, '_, '_>) -> Option<Notify> {
    let span = operator.value("notify")?.span();
    let table = operator.table("notify")?;
    let mut section = Section::new(operator.key("notify"), table, operator.findings());
    let (has_command, webhook_span) =
        (section.value("command").is_some(), section.value("webhook").map(toml::Spanned::span));
    let command = command(&mut section);
    let webhook = webhook(&mut section);
    match webhook_span {
        Some(span) if has_command => {
            let sentence =
                "`notify` has a `command` and a `webhook`; leave one of them out".to_owned();
            section.object(span, "webhook", sentence, None);
        }
        Some(_) | None => {}
    }
    section.finish();
    if table.is_empty() {
        let sentence =
            "`notify` is empty; give it a `command` or a `webhook`, or leave it out".to_owned();
        operator.object(span, "notify", sentence, None);
    }
    command.or(webhook)
}

fn command(section: &mut Section<'_, '_, '_>) -> Option<Notify> {
    let span = section.value("command")?.span();
    let words = section.texts("command")?;
    if words.first().is_none_or(|(program, _)| program.is_empty()) {
        let sentence =
            "`command` must begin with a program: [\"notify-send\", \"Hive\"]".to_owned();
        section.object(span, "command", sentence, None);
        return None;
    }
    for (_, span) in words.iter().filter(|(word, _)| word.contains('\0')) {
        section.object(
            span.clone(),
            "command",
            "no program takes an argument with a NUL character".to_owned(),
            None,
        );
    }
    Some(Notify::Command(words.into_iter().map(|(word, _)| word).collect()))
}

fn webhook(section: &mut Section<'_, '_, '_>) -> Option<Notify> {
    let (url, span) = section.secret("webhook")?;
    match url.text().map_or(Ok(()), check_url) {
        Ok(()) => Some(Notify::Webhook(url)),
        Err(problem) => {
            section.object(span, "webhook", format!("`webhook` {problem}"), None);
            None
        }
    }
}

/// Checks that a client can call the URL with all its parts.
///
/// # Errors
///
/// The problem, as the rest of a sentence.
pub fn check_url(url: &str) -> Result<(), &'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.ok_or("must be a URL that begins with https:// or http://")?;
    if url.chars().any(|c| !c.is_ascii_graphic() || "\"<>\\^`{|}#".contains(c)) {
        return Err(
            "must be a URL without spaces, `#` and characters that have to be written with `%`",
        );
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if authority.contains('@') {
        return Err(
            "must have no user name and password, for they would not be sent; put a token into the path or the query",
        );
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bracketed {
        Some(address) => address.parse::<core::net::Ipv6Addr>().is_ok(),
        None => (1..=HOST_CHARS_MAX).contains(&host.len()) && host.chars().all(plain),
    };
    if !is_host {
        return Err("must name a host, as in https://example.org/hook");
    }
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    if !port.is_none_or(is_port) {
        return Err("must have a port from 1 to 65535, or none");
    }
    Ok(())
}
