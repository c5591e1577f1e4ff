//! `[agents.NAME.extra_mcp_servers.KEY]`: an agent's own MCP servers.
//!
//! Invariant: no key can replace a server of Hive, and no pattern can allow a tool of another
//! server.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use super::environment;
use super::section::Section;
use super::values::ExtraMcpServer;
use crate::name::nearest;

/// Name of the MCP server of the shell tools.
pub const BASH_SERVER: &str = "bash";
/// Longest name of an MCP server: claude's tool names stay under 64 characters with it.
const SERVER_NAME_CHARS_MAX: usize = 32;
/// Longest pattern of tools.
const PATTERN_CHARS_MAX: usize = 128;
/// Default maximum duration of a tool call, in seconds.
pub const TOOL_TIMEOUT_SECONDS: u64 = 60;
/// Valid durations, in seconds: at most a day.
pub const TOOL_TIMEOUTS_SECONDS: RangeInclusive<u64> = 1..=86_400;
/// The rule that [`is_server_name`] checks.
pub(super) const SERVER_NAME_RULE: &str =
    "letters, digits, `-` and single `_`, at most 32 characters";

/// Returns whether a text can be the name of an MCP server. `__` separates server and tool in
/// claude's names.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    plain && !name.contains("__") && (1..=SERVER_NAME_CHARS_MAX).contains(&name.len())
}

/// Returns whether a text can be a pattern for tools of an MCP server. A comma would begin another
/// rule.
#[must_use]
pub fn is_tool_pattern(pattern: &str) -> bool {
    let plain = pattern.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*'));
    plain && (1..=PATTERN_CHARS_MAX).contains(&pattern.len())
}

/// Reads the table; `server` is the name of Hive's own server.
pub(super) fn read(
    agent: &mut Section<'_, '_, '_>,
    server: &str,
) -> BTreeMap<String, ExtraMcpServer> {
    let key = "extra_mcp_servers";
    let mut servers = BTreeMap::new();
    let Some(table) = agent.table(key) else { return servers };
    for (name, value) in table {
        let written = name.get_ref().as_ref();
        let path = format!("{key}.{}", written.escape_debug());
        let wrong = if !is_server_name(written) {
            Some(format!(
                "`{}` is no name of an MCP server: use {SERVER_NAME_RULE}",
                written.escape_debug()
            ))
        } else if written == server || written == BASH_SERVER {
            Some(format!("`{written}` is the name of a server of Hive's own; choose another"))
        } else {
            None
        };
        if let Some(sentence) = wrong {
            agent.object(name.span(), &path, sentence, None);
            continue;
        }
        let Some(below) = value.get_ref().as_table() else {
            agent.object(
                value.span(),
                &path,
                format!("`{path}` must be a table: {{ command = \"...\" }}"),
                None,
            );
            continue;
        };
        let place = agent.key(&path);
        let mut section = Section::new(place, below, agent.findings());
        let read = extra(&mut section, name.span());
        section.finish();
        if let Some(read) = read {
            servers.insert(written.to_owned(), read);
        }
    }
    servers
}

fn extra(section: &mut Section<'_, '_, '_>, place: Range<usize>) -> Option<ExtraMcpServer> {
    let command = command(section, place);
    let args = section.texts("args").unwrap_or_default();
    let env = environment::of_server(section);
    let allowed_tools = allowed_tools(section);
    let timeout_seconds =
        section.number("timeout_seconds", TOOL_TIMEOUTS_SECONDS).unwrap_or(TOOL_TIMEOUT_SECONDS);
    let mut words = Vec::with_capacity(args.len());
    for (word, span) in args {
        if word.contains('\0') {
            section.object(
                span,
                "args",
                "no program takes an argument with a NUL character".to_owned(),
                None,
            );
        } else {
            words.push(word);
        }
    }
    Some(ExtraMcpServer { command: command?, args: words, env, allowed_tools, timeout_seconds })
}

fn command(section: &mut Section<'_, '_, '_>, place: Range<usize>) -> Option<String> {
    let key = "command";
    let Some(value) = section.value(key) else {
        // A misspelt one is reported as an unknown key.
        if section.unknown().into_iter().all(|word| nearest(word, [key]).is_empty()) {
            section.object(
                place,
                key,
                "`command` is missing: name the program of the server".to_owned(),
                None,
            );
        }
        return None;
    };
    if value.get_ref().as_str() == Some("") {
        section.object(
            value.span(),
            key,
            "`command` is empty: name the program of the server".to_owned(),
            None,
        );
        return None;
    }
    super::sections::line(section, key)
}

fn allowed_tools(section: &mut Section<'_, '_, '_>) -> Vec<String> {
    let key = "allowed_tools";
    let every = vec!["*".to_owned()];
    let Some(span) = section.value(key).map(toml::Spanned::span) else { return every };
    let Some(texts) = section.texts(key) else { return every };
    if texts.is_empty() {
        let sentence = "`allowed_tools` is empty, so that the server would be of no use; leave it out to allow all of its tools";
        section.object(span, key, sentence.to_owned(), None);
    }
    let mut patterns = Vec::with_capacity(texts.len());
    for (pattern, span) in texts {
        if is_tool_pattern(&pattern) {
            patterns.push(pattern);
        } else {
            let sentence = format!(
                "`{}` is no tool: use letters, digits, `_`, `-`, and `*` for any, at most {PATTERN_CHARS_MAX} characters",
                pattern.escape_debug()
            );
            section.object(span, key, sentence, None);
        }
    }
    patterns
}
