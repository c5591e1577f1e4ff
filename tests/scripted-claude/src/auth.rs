//! The login: whether it is needed or present, and the dialogue that creates it.
//!
//! A login is needed only if `HOME/.claude/login-code` exists; its content is the code that the
//! dialogue accepts. Then turns fail and `auth status` says no, until
//! `HOME/.claude/.credentials.json` holds a login. Without that file it is as with a key in the
//! environment. Invariant: credentials are written whole or not at all.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::signals::{Heard, Signals, TERMINATED};
use super::stdin;
use super::turn::Deaf;

/// The file that makes a login necessary and holds its code; below HOME.
pub const CODE_FILE: &str = ".claude/login-code";
/// The code that is accepted without that file.
pub const ANY_CODE: &str = "right#code";
/// The page that hands out codes.
pub const URL: &str = "https://claude.example/oauth/authorize?code=true";
/// The exit code of a dialogue that is broken off.
const BROKEN_OFF: u8 = 130;

/// Returns whether a login is needed and missing.
pub fn is_needed(home: &Path) -> bool {
    home.join(CODE_FILE).exists() && !has_credentials(home)
}

/// Returns the file with the login.
pub fn credentials(home: &Path) -> PathBuf {
    home.join(".claude/.credentials.json")
}

fn has_credentials(home: &Path) -> bool {
    let text = std::fs::read_to_string(credentials(home)).unwrap_or_default();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    value["claudeAiOauth"]["accessToken"].as_str().is_some_and(|token| !token.is_empty())
}

/// Runs `auth status`: says whether there is a login, and exits with 1 if there is none.
pub(super) fn status(home: &Path) -> io::Result<u8> {
    let logged_in = !is_needed(home);
    let method = match (logged_in, has_credentials(home)) {
        (false, _) => "none",
        (true, true) => "claude.ai",
        (true, false) => "api_key",
    };
    let told = json!({
        "loggedIn": logged_in, "authMethod": method, "apiProvider": "firstParty",
        "projectsDirectory": home.join(".claude/projects"), "configDirectory": home.join(".claude"), "loginExpiresAt": null,
    });
    super::events::raw(&serde_json::to_string_pretty(&told)?)?;
    Ok(u8::from(!logged_in))
}

/// Runs `auth login`, the dialogue.
pub(super) async fn login(home: &Path) -> io::Result<u8> {
    let mut signals = Signals::listen(&Deaf::default())?;
    let mut input = stdin::lines();
    let code = std::fs::read_to_string(home.join(CODE_FILE))
        .map_or_else(|_| ANY_CODE.to_owned(), |code| code.trim().to_owned());
    say(&format!(
        "Opening browser to sign in…\nIf the browser didn't open, visit:\n\x1b]8;;{URL}\x07\x1b[94m{URL}\x1b[39m\x1b]8;;\x07\n"
    ))?;
    loop {
        say("Paste code here if prompted > ")?;
        let typed = tokio::select! {
            line = input.recv() => line,
            heard = signals.heard() => return Ok(if heard == Heard::Terminate { TERMINATED } else { BROKEN_OFF }),
        };
        let Some(typed) = typed else {
            say(
                "\nCouldn't log in: Input ended before a code was pasted. Sign in again and paste the code shown.\n",
            )?;
            return Ok(BROKEN_OFF);
        };
        let typed = typed.trim();
        if !typed.contains('#') {
            say(
                "That doesn't look like the full code. Copy all of it, including the # in the middle.\n",
            )?;
            continue;
        }
        say("Signing in…\n")?;
        if typed != code {
            say("Couldn't log in: Invalid code. Please make sure the full code was copied.\n")?;
            return Ok(1);
        }
        write(home)?;
        say("Login successful.\n")?;
        return Ok(0);
    }
}

fn write(home: &Path) -> io::Result<()> {
    let login = json!({"claudeAiOauth": {
        "accessToken": "sk-ant-oat01-scripted", "refreshToken": "sk-ant-ort01-scripted", "expiresAt": 4_102_444_800_000_u64,
        "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
    }});
    let path = credentials(home);
    let new = path.with_extension("new");
    std::fs::create_dir_all(home.join(".claude"))?;
    std::fs::write(&new, login.to_string())?;
    std::fs::rename(new, path)
}

fn say(words: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(words.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_needed_where_the_file_says_so_and_until_there_are_credentials() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let dir = home.path().join(".claude");
        std::fs::create_dir(&dir).expect("a directory");
        assert!(!is_needed(home.path()));
        std::fs::write(home.path().join(CODE_FILE), "a#b").expect("it is written");
        assert!(is_needed(home.path()));
        std::fs::write(credentials(home.path()), "{}").expect("it is written");
        assert!(is_needed(home.path()), "an empty one is no login");
        write(home.path()).expect("it is written");
        assert!(!is_needed(home.path()));
    }
}
