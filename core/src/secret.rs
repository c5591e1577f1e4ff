//! Secrets: values that may be written in `hive.toml`, or are kept in a file or in a credential of
//! systemd.
//!
//! Invariants: the format of a secret for people (`Debug`) never shows a value; a value that was
//! read is one that an environment and a URL can have.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Largest file of a secret, in bytes.
pub const SECRET_BYTES_MAX: u64 = 64 * 1024;
/// The variable in which systemd names the directory of a service's credentials.
pub const CREDENTIALS_ENV: &str = "CREDENTIALS_DIRECTORY";
/// Longest name of a credential: that of a file.
const CREDENTIAL_BYTES_MAX: usize = 255;

/// A value, or the place where it is kept. As JSON: a string, `{"file": PATH}` or
/// `{"credential": NAME}`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Secret {
    /// The value itself.
    Text(String),
    /// The place where it is kept.
    Kept(Place),
}

/// Where a value is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In a file.
    File(PathBuf),
    /// In a credential of the service.
    Credential(CredentialName),
}

/// The name of a credential, which is the name of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CredentialName(String);

/// Why a text is no name of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 255 letters, digits, `-`, `_` or `.`, and not begin with `.`")]
pub struct InvalidCredentialName;

/// Why the value of a secret is not to be had. No error shows a part of the value.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The program has no credentials.
    #[error(
        "there is no credential `{0}`: {CREDENTIALS_ENV} is not set; start the program as a service of systemd with `LoadCredential={0}:PATH`"
    )]
    NoCredentials(String),
    /// The file cannot be read.
    #[error("the secret {} cannot be read: {source}; create it, and let this user read it", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the host.
        source: io::Error,
    },
    /// The content of the file is not a value.
    #[error("the secret {} {problem}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem, as the rest of a sentence.
        problem: &'static str,
    },
}

impl Secret {
    /// Returns the value, if the secret is the value itself.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Kept(_) => None,
        }
    }

    /// Returns the value; `open` opens the file that has it.
    ///
    /// # Errors
    ///
    /// The value is kept in a place where it cannot be read, or is invalid.
    pub fn value<R: Read>(
        &self,
        credentials: Option<&OsStr>,
        open: impl FnOnce(&Path) -> io::Result<R>,
    ) -> Result<String, SecretError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Kept(place) => {
                let path = place.path(credentials)?;
                match open(&path).and_then(content) {
                    Ok(content) => content_value(content)
                        .map_err(|problem| SecretError::Invalid { path, problem }),
                    Err(source) => Err(SecretError::Unreadable { path, source }),
                }
            }
        }
    }

    /// Returns the place where it is kept, to change it.
    pub fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Self::Text(_) => None,
            Self::Kept(place) => Some(place),
        }
    }
}

impl Place {
    /// Returns the file; `credentials` is the value of [`CREDENTIALS_ENV`].
    ///
    /// # Errors
    ///
    /// The place is a credential, and the program has none.
    pub fn path(&self, credentials: Option<&OsStr>) -> Result<PathBuf, SecretError> {
        match (self, credentials.filter(|dir| !dir.is_empty())) {
            (Self::File(path), _) => Ok(path.clone()),
            (Self::Credential(CredentialName(name)), Some(dir)) => Ok(Path::new(dir).join(name)),
            (Self::Credential(CredentialName(name)), None) => {
                Err(SecretError::NoCredentials(name.clone()))
            }
        }
    }
}

/// Reads as much of a file as shows whether it is too large.
fn content(file: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(SECRET_BYTES_MAX + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// Returns the content of a file as a value, without the line end that editors add.
fn content_value(content: Vec<u8>) -> Result<String, &'static str> {
    if u64::try_from(content.len()).unwrap_or(u64::MAX) > SECRET_BYTES_MAX {
        return Err("has more than 65536 bytes");
    }
    let mut text = String::from_utf8(content).map_err(|_| "is not UTF-8 text")?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    if text.is_empty() {
        return Err("is empty");
    }
    if text.contains('\0') {
        return Err("has a NUL character");
    }
    Ok(text)
}

impl CredentialName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// It cannot be the name of a credential.
    pub fn parse(name: impl Into<String>) -> Result<Self, InvalidCredentialName> {
        let name = name.into();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name = (1..=CREDENTIAL_BYTES_MAX).contains(&name.len())
            && name.bytes().all(is_plain)
            && !name.starts_with('.');
        if is_name { Ok(Self(name)) } else { Err(InvalidCredentialName) }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CredentialName {
    type Error = InvalidCredentialName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::parse(name)
    }
}

impl From<CredentialName> for String {
    fn from(name: CredentialName) -> Self {
        name.0
    }
}

/// A value that the file itself has may be a key, too.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::Kept(place) => f.debug_tuple("Kept").field(place).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Secret {
        Secret::Kept(Place::File(path.into()))
    }

    fn read(content: &[u8]) -> Result<String, String> {
        let value = file("/k").value(None, |_| Ok(content));
        value.map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_is_the_content_without_its_last_line_end() {
        for (content, wanted) in [
            ("k", "k"),
            ("k\n", "k"),
            ("k\r\n", "k"),
            ("k\n\n", "k\n"),
            (" k ", " k "),
            ("a\nb", "a\nb"),
        ] {
            assert_eq!(read(content.as_bytes()).as_deref(), Ok(wanted), "{content:?}");
        }
        let longest = vec![b'k'; usize::try_from(SECRET_BYTES_MAX).expect("a small number")];
        assert!(read(&longest).is_ok());
        for (content, wanted) in [
            (&b""[..], "the secret /k is empty"),
            (b"\n", "the secret /k is empty"),
            (b"\xff", "the secret /k is not UTF-8 text"),
            (b"a\0b", "the secret /k has a NUL character"),
            (&[&longest[..], b"k"].concat(), "the secret /k has more than 65536 bytes"),
        ] {
            assert_eq!(read(content), Err(wanted.to_owned()));
        }
    }

    #[test]
    fn a_credential_is_a_file_of_the_services_directory() {
        let secret = Secret::Kept(Place::Credential(CredentialName::parse("key").expect("valid")));
        let value = secret.value(Some(OsStr::new("/run/credentials/x")), |path| {
            Ok(io::Cursor::new(path.as_os_str().as_encoded_bytes().to_vec()))
        });
        assert_eq!(value.expect("it is read"), "/run/credentials/x/key");
        for none in [None, Some(OsStr::new(""))] {
            let error = secret.value(none, |_| Ok(io::empty())).expect_err("none").to_string();
            assert!(error.contains("LoadCredential=key:PATH"), "{error}");
        }
        for bad in ["", ".", "..", ".k", "a/b", "a b", "a:b", "ä", &"k".repeat(256)] {
            assert_eq!(CredentialName::parse(bad), Err(InvalidCredentialName), "{bad}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_with_its_path() {
        let error =
            file("/no/key").value(None, |_| Err::<io::Empty, _>(io::ErrorKind::NotFound.into()));
        assert!(error.expect_err("missing").to_string().contains("/no/key cannot be read"));
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::Text("s3cret".into())), "Text(..)");
        assert_eq!(format!("{:?}", file("/k")), "Kept(File(\"/k\"))");
    }
}
