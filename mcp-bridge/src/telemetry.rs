//! Logging, to stderr only: stdout belongs to MCP.

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// What is logged when nothing is said. The MCP library logs whole frames at `info`, bodies
/// included, so it starts at `warn`.
const DEFAULT_FILTER: &str = "warn,hive_mcp_bridge=info";

/// Starts logging; `HIVE_LOG` wins over `RUST_LOG`.
pub fn start(label: &str) {
    let asked = ["HIVE_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let filter = asked
        .as_deref()
        .and_then(|text| hive_log::parse(text).ok())
        .unwrap_or_else(|| hive_log::parse(DEFAULT_FILTER).expect("the default is a filter"));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // Fails only if a test has set a logger before.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    tracing::debug!(label, "hive-mcp starts");
}
