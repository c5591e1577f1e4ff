//! hive.toml
