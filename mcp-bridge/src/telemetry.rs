//! Logging, to stderr only: stdout belongs to MCP.

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The filter without a configured one. The MCP library logs whole frames at `info`, bodies
/// included, so it starts at `warn`.
const DEFAULT_FILTER: &str = "warn,hive_mcp_bridge=info";

/// Starts logging; `HIVE_LOG` has precedence over `RUST_LOG`.
pub fn start(label: &str) {
    let asked = ["HIVE_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let mut invalid = Vec::new();
    let asked = asked.as_deref().unwrap_or(DEFAULT_FILTER);
    let filter = hive_log::parse_lossy(asked, |error| invalid.push(error));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // Fails only if a test has already set a logger.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    for error in invalid {
        tracing::warn!(%error, "a part of the log filter was left out");
    }
    tracing::debug!(label, "hive-mcp starts");
}
