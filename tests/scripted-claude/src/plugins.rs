//! Plugins and marketplaces, as files below `HOME/.claude`: tests read there what was added and
//! installed.
//!
//! Invariant: nothing is fetched. A marketplace that is a path must exist; any other is accepted,
//! unless a script says otherwise.

use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::args::{Marketplace, Plugin};
use super::run::complain;

/// Marketplaces by name; below HOME.
pub const MARKETPLACES_FILE: &str = ".claude/plugins/known_marketplaces.json";
/// Installed plugins by `PLUGIN@MARKETPLACE`; below HOME.
pub const INSTALLED_FILE: &str = ".claude/plugins/installed_plugins.json";

/// Runs a command about plugins; returns the exit code.
pub(super) fn run(command: &Plugin, home: &Path) -> io::Result<u8> {
    match command {
        Plugin::Marketplace { command: Marketplace::Add { source } } => add(source, home),
        Plugin::Marketplace { command: Marketplace::Update { name } } => {
            update(name.as_deref(), home)
        }
        Plugin::Install { plugin } => install(plugin, home),
    }
}

fn add(source: &str, home: &Path) -> io::Result<u8> {
    let is_path = source.starts_with(['/', '.']);
    if is_path && !Path::new(source).exists() {
        complain(&format!("✘ Path does not exist: {source}"));
        return Ok(1);
    }
    let name = source
        .trim_end_matches('/')
        .trim_end_matches(".git")
        .rsplit('/')
        .next()
        .unwrap_or(source)
        .to_owned();
    let mut known = read(home, MARKETPLACES_FILE);
    let words = if known.contains_key(&name) {
        format!(
            "Adding marketplace…✔ Marketplace '{name}' already on disk — declared in user settings"
        )
    } else {
        format!(
            "Adding marketplace…✔ Successfully added marketplace: {name} (declared in user settings)"
        )
    };
    let kind = if is_path { "directory" } else { "github" };
    known.insert(name, json!({"source": {"source": kind, "path": source}}));
    write(home, MARKETPLACES_FILE, known)?;
    super::events::raw(&words)?;
    Ok(0)
}

fn update(name: Option<&str>, home: &Path) -> io::Result<u8> {
    let known = read(home, MARKETPLACES_FILE);
    match name {
        Some(name) if !known.contains_key(name) => {
            super::events::raw(&format!("Updating marketplace: {name}..."))?;
            complain(&format!(
                "✘ Failed to update marketplace(s): Marketplace '{name}' not found."
            ));
            return Ok(1);
        }
        Some(name) => super::events::raw(&format!(
            "Updating marketplace: {name}...✔ Successfully updated marketplace: {name}"
        ))?,
        None if known.is_empty() => {
            super::events::raw("Updating marketplaces...No marketplaces needed updating")?;
        }
        None => super::events::raw(&format!(
            "Updating marketplaces...✔ Successfully updated {} marketplace",
            known.len()
        ))?,
    }
    Ok(0)
}

fn install(plugin: &str, home: &Path) -> io::Result<u8> {
    let known = read(home, MARKETPLACES_FILE);
    let begun = format!("Installing plugin \"{plugin}\"...");
    let marketplace = plugin.split_once('@').map(|(_, marketplace)| marketplace);
    if let Some(marketplace) = marketplace.filter(|name| !known.contains_key(*name)) {
        super::events::raw(&begun)?;
        let bare = plugin.split('@').next().unwrap_or(plugin);
        complain(&format!(
            "✘ Failed to install plugin \"{plugin}\": Plugin \"{bare}\" not found in marketplace \"{marketplace}\"."
        ));
        return Ok(1);
    }
    let mut file = read(home, INSTALLED_FILE);
    let mut installed = file.get("plugins").and_then(Value::as_object).cloned().unwrap_or_default();
    let words = if installed.contains_key(plugin) {
        format!("{begun}✔ Plugin \"{plugin}\" is already installed (scope: user)")
    } else {
        format!("{begun}✔ Successfully installed plugin: {plugin} (scope: user)")
    };
    installed.insert(plugin.to_owned(), json!([{"scope": "user"}]));
    file.insert("version".to_owned(), json!(2));
    file.insert("plugins".to_owned(), installed.into());
    write(home, INSTALLED_FILE, file)?;
    super::events::raw(&words)?;
    Ok(0)
}

fn read(home: &Path, file: &str) -> Map<String, Value> {
    let text = std::fs::read_to_string(home.join(file)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn write(home: &Path, file: &str, content: Map<String, Value>) -> io::Result<()> {
    let path = home.join(file);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, Value::Object(content).to_string())
}
