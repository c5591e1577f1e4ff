//! Secrets of an environment: the values that are kept in files are read here.
//!
//! They are read with the settings, so at the start of the program and, with a settings file,
//! before each turn. Invariant: either all values are read, or none is used.

use std::collections::BTreeMap;
use std::fs::File;

use hive_core::secret::{CREDENTIALS_ENV, Secret, SecretError};

/// Returns the values of an environment, or the first variable that has none, with the reason.
pub(crate) fn values(
    env: BTreeMap<String, Secret>,
) -> Result<BTreeMap<String, String>, (String, SecretError)> {
    let credentials = std::env::var_os(CREDENTIALS_ENV);
    env.into_iter()
        .map(|(name, secret)| match secret.value(credentials.as_deref(), |path| File::open(path)) {
            Ok(value) => Ok((name, value)),
            Err(error) => Err((name, error)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn values_are_read_or_the_variable_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("key");
        let env = |path: &Path| {
            let text = format!(r#"{{"A":"1","B":{{"file":{:?}}}}}"#, path.to_str().expect("text"));
            serde_json::from_str(&text).expect("an environment")
        };
        let (name, error) = values(env(&path)).expect_err("missing");
        assert_eq!(name, "B");
        assert!(error.to_string().contains("cannot be read"), "{error}");
        std::fs::write(&path, "k\n").expect("written");
        let read = values(env(&path)).expect("read");
        assert_eq!(read, [("A", "1"), ("B", "k")].map(|(n, v)| (n.into(), v.into())).into());
        std::fs::write(&path, "k".repeat(70_000)).expect("written");
        let (_, error) = values(env(&path)).expect_err("too long");
        assert!(error.to_string().contains("more than 65536 bytes"), "{error}");
    }
}
