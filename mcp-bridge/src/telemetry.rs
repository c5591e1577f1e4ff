//! Logging, to stderr only: stdout belongs to MCP.

use tracing_subscriber::EnvFilter;

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
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new(DEFAULT_FILTER));
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(filter);
    // Fails only where a test has set a logger before.
    let _ = subscriber.try_init();
    tracing::debug!(label, "hive-mcp starts");
}
