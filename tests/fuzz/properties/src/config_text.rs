//! A configuration as the text of a file.
//!
//! What it is not: for people; every key is written, one a line. Invariant: every field is
//! destructured by name, so that a new key breaks this build until it is written too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use hive_core::action::Action;
use hive_core::config::{
    AgentConfig, AgentLimits, Backup, Broker, Claude, Config, ExtraMcpServer, Hive, Metrics,
    Notify, Operator, SandboxConfig, SettingValue, Settings, Traces,
};
use hive_core::heartbeat::Heartbeat;
use hive_core::limits::Limits;
use hive_core::secret::{Place, Secret};

pub(crate) fn write(config: &Config) -> String {
    let Config { hive, broker, operator, claude, actions, agents } = config;
    let Hive { name, domain, swarm, isolation } = hive;
    let mut out = String::from("[hive]\n");
    text(&mut out, "name", name.as_deref());
    text(&mut out, "domain", domain.as_deref());
    text(&mut out, "swarm", swarm.as_deref());
    text(&mut out, "isolation", isolation.map(hive_core::isolation::Level::word));
    let Broker {
        state_dir,
        runtime_dir,
        socket_group,
        agent_unit,
        retention_days,
        backup,
        metrics,
        traces,
        limits,
    } = broker;
    out.push_str("[broker]\n");
    path(&mut out, "state_dir", state_dir.as_deref());
    path(&mut out, "runtime_dir", runtime_dir.as_deref());
    text(&mut out, "socket_group", socket_group.as_deref());
    text(&mut out, "agent_unit", agent_unit.as_deref());
    number(&mut out, "retention_days", Some(u64::from(*retention_days)));
    if let Some(Backup { every, keep, dir }) = backup {
        text(&mut out, "backup.every", Some(&span(*every)));
        number(&mut out, "backup.keep", Some(u64::from(*keep)));
        path(&mut out, "backup.dir", dir.as_deref());
    }
    match metrics {
        Some(Metrics::Socket { path: socket, group }) => {
            path(&mut out, "metrics.socket", Some(socket));
            text(&mut out, "metrics.group", group.as_deref());
        }
        Some(Metrics::Listen(address)) => {
            text(&mut out, "metrics.listen", Some(&address.to_string()));
        }
        None => {}
    }
    if let Some(Traces { otlp, headers }) = traces {
        text(&mut out, "traces.otlp", Some(otlp));
        map(&mut out, "traces.headers", headers);
    }
    all_limits(&mut out, limits);
    let Operator { pronouns, notify, journal_units } = operator;
    out.push_str("[operator]\n");
    text(&mut out, "pronouns", pronouns.as_deref());
    texts(&mut out, "journal_units", Some(journal_units));
    match notify {
        None => {}
        Some(Notify::Command(words)) => texts(&mut out, "notify.command", Some(words)),
        Some(Notify::Webhook(url)) => secret(&mut out, "notify.webhook", url),
    }
    let Claude { command, env, settings: of_claude, context_windows, mcp_server_name } = claude;
    out.push_str("[claude]\n");
    text(&mut out, "command", Some(command));
    settings(&mut out, of_claude);
    for (name, tokens) in context_windows {
        number(&mut out, &format!("context_windows.{}", quoted(name)), Some(*tokens));
    }
    text(&mut out, "mcp_server_name", Some(mcp_server_name));
    map(&mut out, "env", env);
    for (name, action) in actions {
        let Action { command, preview, description, agents, args, timeout } = action;
        out.push_str(&format!("[actions.{name}]\n"));
        texts(&mut out, "command", Some(command));
        texts(&mut out, "preview", preview.as_ref());
        text(
            &mut out,
            "description",
            Some(description).filter(|text| !text.is_empty()).map(String::as_str),
        );
        let agents = agents.iter().map(ToString::to_string).collect();
        texts(&mut out, "agents", Some(&agents));
        for (name, pattern) in args {
            text(&mut out, &format!("args.{name}"), Some(pattern.as_str()));
        }
        number(&mut out, "timeout_secs", Some(timeout.as_secs()));
    }
    for (name, config) in agents {
        agent(&mut out, name.as_str(), config);
    }
    out
}

fn all_limits(out: &mut String, limits: &Limits) {
    let Limits {
        body_bytes_max,
        inbox_depth_max,
        sender_stored_bytes_max,
        sends_per_minute_max,
        attempts_max,
        harness_grace_ms,
        retry_backoff_base_ms,
        retry_backoff_max_ms,
        park_backoff_base_ms,
        park_backoff_max_ms,
        on_demand_idle_ms,
        rate_limit_park_ms,
        request_id_hours,
        turn_events_hours,
        turn_events_bytes_max,
        questions_open_max,
        reminders_pending_max,
        children_max,
        schedules_max,
    } = limits;
    for (key, value) in [
        ("body_bytes_max", u64::from(*body_bytes_max)),
        ("inbox_depth_max", u64::from(*inbox_depth_max)),
        ("sender_stored_bytes_max", *sender_stored_bytes_max),
        ("sends_per_minute_max", u64::from(*sends_per_minute_max)),
        ("attempts_max", u64::from(*attempts_max)),
        ("harness_grace_ms", *harness_grace_ms),
        ("retry_backoff_base_ms", *retry_backoff_base_ms),
        ("retry_backoff_max_ms", *retry_backoff_max_ms),
        ("park_backoff_base_ms", *park_backoff_base_ms),
        ("park_backoff_max_ms", *park_backoff_max_ms),
        ("on_demand_idle_ms", *on_demand_idle_ms),
        ("rate_limit_park_ms", *rate_limit_park_ms),
        ("request_id_hours", u64::from(*request_id_hours)),
        ("turn_events_hours", u64::from(*turn_events_hours)),
        ("turn_events_bytes_max", *turn_events_bytes_max),
        ("questions_open_max", u64::from(*questions_open_max)),
        ("reminders_pending_max", u64::from(*reminders_pending_max)),
        ("children_max", u64::from(*children_max)),
        ("schedules_max", u64::from(*schedules_max)),
    ] {
        number(out, &format!("limits.{key}"), Some(value));
    }
}

fn agent(out: &mut String, name: &str, agent: &AgentConfig) {
    let AgentConfig {
        parent,
        role,
        model,
        tool_groups,
        allowed_recipients,
        capabilities,
        grants,
        limits,
        uids,
        users,
        unit,
        state_dir,
        home_dir,
        env,
        settings: of_agent,
        kick_on_start,
        on_demand,
        heartbeat,
        available_models,
        extra_mcp_servers,
        plugins,
        marketplaces,
        sandbox,
    } = agent;
    line(out, format_args!("[agents.{name}]"));
    text(out, "parent", parent.as_ref().map(hive_core::name::AgentName::as_str));
    text(out, "role", role.as_deref());
    text(out, "model", model.as_deref());
    texts(out, "tool_groups", tool_groups.as_ref());
    texts(out, "allowed_recipients", allowed_recipients.as_ref());
    texts(out, "capabilities", capabilities.as_ref());
    texts(out, "grants", grants.as_ref());
    let AgentLimits {
        sends_per_minute_max,
        sender_stored_bytes_max,
        questions_open_max,
        reminders_pending_max,
        children_max,
        schedules_max,
    } = limits;
    number(out, "limits.sends_per_minute_max", sends_per_minute_max.map(u64::from));
    number(out, "limits.sender_stored_bytes_max", *sender_stored_bytes_max);
    number(out, "limits.questions_open_max", questions_open_max.map(u64::from));
    number(out, "limits.reminders_pending_max", reminders_pending_max.map(u64::from));
    number(out, "limits.children_max", children_max.map(u64::from));
    number(out, "limits.schedules_max", schedules_max.map(u64::from));
    let uids: Vec<String> = uids.iter().map(u32::to_string).collect();
    line(out, format_args!("uids = [{}]", uids.join(", ")));
    texts(out, "users", Some(users));
    text(out, "unit", unit.as_deref());
    path(out, "state_dir", state_dir.as_deref());
    path(out, "home_dir", home_dir.as_deref());
    map(out, "env", env);
    settings(out, of_agent);
    text(out, "kick_on_start", Some(kick_on_start.word()));
    line(out, format_args!("on_demand = {on_demand}"));
    if let Some(Heartbeat { every, window, zone }) = heartbeat {
        text(out, "heartbeat.every", Some(&span(*every)));
        text(out, "heartbeat.between", window.map(|window| window.to_string()).as_deref());
        text(out, "heartbeat.zone", Some(zone.as_str()));
    }
    texts(out, "available_models", (!available_models.is_empty()).then_some(available_models));
    texts(out, "plugins", Some(plugins));
    texts(out, "marketplaces", marketplaces.as_ref());
    let SandboxConfig { isolation, readable, writable, devices, user_namespaces } = sandbox;
    text(out, "isolation", isolation.map(hive_core::isolation::Level::word));
    for (key, paths) in [("readable", readable), ("writable", writable), ("devices", devices)] {
        let words: Vec<String> =
            paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        texts(out, key, (!words.is_empty()).then_some(&words));
    }
    line(out, format_args!("user_namespaces = {user_namespaces}"));
    for (key, server) in extra_mcp_servers {
        let ExtraMcpServer { command, args, env, allowed_tools, timeout_seconds } = server;
        let key = format!("extra_mcp_servers.{}", quoted(key));
        text(out, &format!("{key}.command"), Some(command));
        texts(out, &format!("{key}.args"), Some(args));
        texts(out, &format!("{key}.allowed_tools"), Some(allowed_tools));
        number(out, &format!("{key}.timeout_seconds"), Some(*timeout_seconds));
        map(out, &format!("{key}.env"), env);
    }
}

fn settings(out: &mut String, settings: &Settings) {
    for (key, value) in settings.iter() {
        match value {
            SettingValue::Number(value) => number(out, key, Some(*value)),
            SettingValue::Flag(flag) => line(out, format_args!("{key} = {flag}")),
            SettingValue::Text(value) => text(out, key, Some(value)),
        }
    }
}

fn span(span: Duration) -> String {
    format!("{}s {}ns", span.as_secs(), span.subsec_nanos())
}

fn line(out: &mut String, words: std::fmt::Arguments<'_>) {
    writeln!(out, "{words}").expect("writing to a string never fails");
}

/// Fit for a key as well as for a value: on one line, controls escaped.
fn quoted(text: &str) -> String {
    let mut key = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                key.push('\\');
                key.push(c);
            }
            c if c.is_control() => {
                write!(key, "\\U{:08X}", u32::from(c)).expect("writing to a string never fails");
            }
            c => key.push(c),
        }
    }
    key.push('"');
    key
}

fn text(out: &mut String, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        line(out, format_args!("{key} = {}", quoted(value)));
    }
}

fn path(out: &mut String, key: &str, value: Option<&Path>) {
    text(out, key, value.map(|path| path.to_str().expect("a path of the file is text")));
}

fn number(out: &mut String, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        line(out, format_args!("{key} = {value}"));
    }
}

fn texts(out: &mut String, key: &str, values: Option<&Vec<String>>) {
    if let Some(values) = values {
        let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
        line(out, format_args!("{key} = [{}]", values.join(", ")));
    }
}

fn map(out: &mut String, key: &str, values: &BTreeMap<String, Secret>) {
    for (name, value) in values {
        secret(out, &format!("{key}.{}", quoted(name)), value);
    }
}

fn secret(out: &mut String, key: &str, value: &Secret) {
    match value {
        Secret::Text(value) => text(out, key, Some(value)),
        Secret::Kept(Place::File(file)) => path(out, &format!("{key}.file"), Some(file)),
        Secret::Kept(Place::Credential(name)) => {
            text(out, &format!("{key}.credential"), Some(name.as_str()));
        }
    }
}
