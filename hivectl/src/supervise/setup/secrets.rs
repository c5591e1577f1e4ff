//! The secrets of an agent that are kept in files: where its harness reads them.
//!
//! A credential is a file in the directory of `hivectl up`'s own credentials. A sandbox does not
//! show files of the host, so each secret of its agent is copied beside the agent's settings, as
//! the system prompt is. Invariant: no value gets into the settings, and a copy that is no longer
//! needed is removed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use hive_core::secret::{CREDENTIALS_ENV, Place, SECRET_BYTES_MAX, Secret};

use super::settings::put;
use crate::supervise::UpError;
use crate::supervise::files::host_path::{AgentsWrite, HostPath};

/// The beginning of the names of copies; a number follows.
const COPY: &str = "secret-";

/// The places of one agent's secrets.
pub(crate) struct Secrets<'a> {
    /// The directory of the copies; `None`: the harness reads the files themselves.
    copies: Option<PathBuf>,
    agents_write: &'a AgentsWrite,
    credentials: Option<OsString>,
    count: usize,
    is_changed: bool,
}

impl<'a> Secrets<'a> {
    pub(crate) fn new(copies: Option<PathBuf>, agents_write: &'a AgentsWrite) -> Self {
        let credentials = std::env::var_os(CREDENTIALS_ENV);
        Self { copies, agents_write, credentials, count: 0, is_changed: false }
    }

    /// Returns an environment with the files that the harness reads.
    pub(crate) fn kept(
        &mut self,
        env: BTreeMap<String, Secret>,
    ) -> Result<BTreeMap<String, Secret>, UpError> {
        env.into_iter().map(|(name, secret)| Ok((name, self.of_harness(secret)?))).collect()
    }

    fn of_harness(&mut self, secret: Secret) -> Result<Secret, UpError> {
        let Secret::Kept(place) = secret else { return Ok(secret) };
        let path = place.path(self.credentials.as_deref())?;
        let path = match self.copies.clone() {
            Some(dir) => self.copy(&dir, path)?,
            None => path,
        };
        Ok(Secret::Kept(Place::File(path)))
    }

    fn copy(&mut self, dir: &Path, path: PathBuf) -> Result<PathBuf, UpError> {
        let text = HostPath::read_text(&path, self.agents_write, SECRET_BYTES_MAX)
            .map_err(|source| UpError::Secret { path, source })?;
        self.count += 1;
        let copy = dir.join(format!("{COPY}{}", self.count));
        self.is_changed |= put(&copy, Some(&text))?;
        Ok(copy)
    }

    /// Removes the copies that earlier settings had besides; returns whether any copy has changed.
    pub(crate) fn finish(mut self) -> Result<bool, UpError> {
        let Some(dir) = &self.copies else { return Ok(self.is_changed) };
        for number in self.count + 1.. {
            let copy = dir.join(format!("{COPY}{number}"));
            if fs::symlink_metadata(&copy).is_err() {
                break;
            }
            self.is_changed |= put(&copy, None)?;
        }
        Ok(self.is_changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(path: &Path) -> Secret {
        Secret::Kept(Place::File(path.to_path_buf()))
    }

    fn env(values: &[(&str, &Secret)]) -> BTreeMap<String, Secret> {
        values.iter().map(|(name, secret)| ((*name).to_owned(), (*secret).clone())).collect()
    }

    #[test]
    fn a_sandbox_gets_copies_and_any_other_harness_the_files_themselves() {
        let dir = tempfile::tempdir().expect("a directory");
        let (base, agents_write) = (dir.path(), AgentsWrite::default());
        let [key, url] = ["key", "url"].map(|name| base.join(name));
        for path in [&key, &url] {
            fs::write(path, "k\n").expect("a file");
        }
        let (key, url, plain) = (kept(&key), kept(&url), Secret::Text("x".to_owned()));
        let mut open = Secrets::new(None, &agents_write);
        let given = env(&[("KEY", &key), ("PLAIN", &plain)]);
        assert_eq!(open.kept(given.clone()).expect("kept"), given);
        assert!(!open.finish().expect("finished"));

        let copies = base.join("settings");
        let both = env(&[("KEY", &key), ("URL", &url)]);
        let write = |given: &BTreeMap<String, Secret>| {
            let mut secrets = Secrets::new(Some(copies.clone()), &agents_write);
            let found = secrets.kept(given.clone())?;
            Ok::<_, UpError>((found, secrets.finish()?))
        };
        let copied = env(&[
            ("KEY", &kept(&copies.join("secret-1"))),
            ("URL", &kept(&copies.join("secret-2"))),
        ]);
        assert_eq!(write(&both).expect("copied"), (copied.clone(), true));
        assert_eq!(fs::read_to_string(copies.join("secret-2")).expect("a copy"), "k\n");
        assert_eq!(write(&both).expect("the same"), (copied, false));
        assert!(write(&env(&[("KEY", &key)])).expect("one less").1);
        assert!(!copies.join("secret-2").exists());
        let missing = base.join("gone");
        let error = write(&env(&[("KEY", &kept(&missing))])).expect_err("missing").to_string();
        assert!(error.contains(&*missing.to_string_lossy()), "{error}");
    }
}
