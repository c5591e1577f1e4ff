//! The environment of shell tasks, built from an allow-list, and the file that bash reads before
//! each command.
//!
//! Invariant: no key and no password of a proxy reaches a task. It gets two variables of Hive: its
//! mark and the path of the agent's socket, which its user may use anyway.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use crate::inherited::{is_common, is_proxy};

/// The text that bash reads before each command if cargo must print short messages.
pub const BASH_ENV_TEXT: &str = include_str!("bash_env.sh");
/// Its file name in the run directory.
pub const BASH_ENV_FILE: &str = "bash-env.sh";

/// Variables of tasks that pass besides the common ones.
const PASSED: [&str; 5] =
    ["NIX_SSL_CERT_FILE", "NIX_PATH", "CARGO_HOME", "RUSTUP_HOME", "XDG_RUNTIME_DIR"];
/// Variables that name directories of the operator's session, which an isolated agent lacks.
const OF_THE_SESSION: [&str; 2] = ["TMPDIR", "XDG_RUNTIME_DIR"];
/// Variables that also pass if the configuration sets them for this agent: programs that fetch,
/// build and push read them.
const CONFIGURED: [&str; 4] = ["GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "SSH_AUTH_SOCK"];
/// Prefixes of such variables.
const CONFIGURED_BEGINNINGS: [&str; 7] =
    ["CARGO_", "GIT_", "NPM_CONFIG_", "PIP_", "RUSTUP_", "UV_", "npm_config_"];

/// Returns the environment of every task. `configured` is claude's environment in `hive.toml`, keys
/// included; it overrides inherited values.
pub fn build(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    configured: &BTreeMap<String, String>,
    home: &Path,
    agent_socket: &Path,
    run_dir: &Path,
    cargo_short_messages: bool,
    is_isolated: bool,
) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> =
        inherited.into_iter().filter(|(name, _)| passes(name)).collect();
    if is_isolated {
        environment.retain(|name, _| !OF_THE_SESSION.iter().any(|of_session| name == of_session));
    }
    let configured =
        configured.iter().filter(|(name, _)| passes(OsStr::new(name)) || passes_configured(name));
    environment.extend(configured.map(|(name, value)| (name.into(), value.into())));
    for (name, value) in &mut environment {
        if name.to_str().is_some_and(is_proxy) {
            *value = without_password(value);
        }
    }
    environment.insert("HOME".into(), home.into());
    // Tasks run in another directory than the one in which the harness was started.
    let agent_socket =
        std::path::absolute(agent_socket).unwrap_or_else(|_| agent_socket.to_path_buf());
    environment.insert(hive_proto::SOCKET_ENV.into(), agent_socket.into());
    if cargo_short_messages {
        environment.insert("BASH_ENV".into(), run_dir.join(BASH_ENV_FILE).into());
    }
    environment
}

/// Returns the URL of a proxy without the user and password before the last `@` of its host part.
fn without_password(url: &OsStr) -> OsString {
    let bytes = url.as_bytes();
    let start = bytes.windows(3).position(|part| part == b"://").map_or(0, |scheme| scheme + 3);
    let end = bytes[start..]
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
        .map_or(bytes.len(), |path| start + path);
    let host =
        bytes[start..end].iter().rposition(|byte| *byte == b'@').map_or(start, |at| start + at + 1);
    OsString::from_vec([&bytes[..start], &bytes[host..]].concat())
}

fn passes_configured(name: &str) -> bool {
    CONFIGURED.contains(&name)
        || CONFIGURED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

fn passes(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| is_common(name) || PASSED.contains(&name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    type Variable = (OsString, OsString);

    fn built(
        inherited: impl IntoIterator<Item = Variable>,
        configured: &BTreeMap<String, String>,
        cargo_short_messages: bool,
        is_isolated: bool,
    ) -> BTreeMap<OsString, OsString> {
        let [home, socket, run_dir] = ["/h", "/s", "/r"].map(Path::new);
        build(inherited, configured, home, socket, run_dir, cargo_short_messages, is_isolated)
    }

    #[test]
    fn keys_and_our_own_settings_do_not_pass() {
        let names = "PATH ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN AWS_SECRET_ACCESS_KEY HIVE_RUN_DIR BASH_ENV LC_ALL";
        let inherited = names.split(' ').map(|name| (name.into(), "x".into()));
        let environment = built(inherited, &BTreeMap::new(), false, false);
        let names: Vec<_> = environment.keys().filter_map(|name| name.to_str()).collect();
        assert_eq!(names, ["HIVE_SOCKET", "HOME", "LC_ALL", "PATH"]);
        let environment = built([], &BTreeMap::new(), true, false);
        assert_eq!(environment[OsStr::new("BASH_ENV")], "/r/bash-env.sh");
    }

    #[test]
    fn configured_variables_pass_without_the_keys_of_claude() {
        let set = [
            ("PATH", "/configured"),
            ("RUSTUP_HOME", "/r"),
            ("GH_TOKEN", "t"),
            ("GIT_SSH_COMMAND", "ssh -v"),
            ("HOME", "/elsewhere"),
            ("ANTHROPIC_API_KEY", "k"),
            ("AWS_SECRET_ACCESS_KEY", "k"),
        ];
        let configured = set.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let inherited = ["PATH", "GH_TOKEN", "SSH_AUTH_SOCK", "GIT_DIR"]
            .map(|name| (name.into(), "inherited".into()));
        let environment = built(inherited, &configured, false, true);
        let pairs: Vec<String> = environment
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        let wanted = "GH_TOKEN=t,GIT_SSH_COMMAND=ssh -v,HIVE_SOCKET=/s,HOME=/h,PATH=/configured,RUSTUP_HOME=/r";
        assert_eq!(pairs.join(","), wanted);
    }

    #[test]
    fn directories_of_the_session_do_not_pass_to_an_isolated_agent() {
        let inherited = || {
            ["TMPDIR", "XDG_RUNTIME_DIR", "LOCALE_ARCHIVE"].map(|name| (name.into(), "x".into()))
        };
        let none = BTreeMap::new();
        let count = |is_isolated| built(inherited(), &none, false, is_isolated).len();
        assert_eq!((count(false), count(true)), (5, 3));
    }

    #[test]
    fn proxies_pass_without_their_passwords() {
        let cases = [
            ("http://user:p%40ss@proxy:3128", "http://proxy:3128"),
            ("http://user:p@ss@proxy:3128/path@x", "http://proxy:3128/path@x"),
            ("user@proxy:3128", "proxy:3128"),
            ("socks5h://proxy:1080/", "socks5h://proxy:1080/"),
            ("proxy", "proxy"),
            ("", ""),
        ];
        let proxies =
            ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        for (given, wanted) in cases {
            for name in proxies {
                let given = [(name.into(), given.into())];
                let environment = built(given, &BTreeMap::new(), false, false);
                assert_eq!(environment[OsStr::new(name)], *wanted, "{name}");
            }
        }
    }

    /// Returns the arguments of cargo when bash runs this command.
    fn cargo(command: &str) -> String {
        let dir = tempfile::tempdir().expect("a directory");
        let cargo = dir.path().join("cargo");
        std::fs::write(&cargo, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n").expect("written");
        std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755))
            .expect("made executable");
        let file = dir.path().join(BASH_ENV_FILE);
        std::fs::write(&file, BASH_ENV_TEXT).expect("written");
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let mut bash = Command::new("bash");
        bash.args(["-c", command]).env_clear().env("PATH", path).env("BASH_ENV", &file);
        let output = bash.output().expect("bash runs");
        assert_eq!(
            output.status.code(),
            Some(7),
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn cargo_prints_each_message_in_one_line() {
        let subcommands = "build check clippy test run doc bench install rustc fix b c t r d";
        for sub in subcommands.split(' ') {
            let wanted = format!("<{sub}><--message-format><short><-p><x>");
            assert_eq!(cargo(&format!("cargo {sub} -p x")), wanted);
        }
        for (command, wanted) in [
            ("cargo +nightly build", "<+nightly><build>{short}"),
            (
                "cargo --color never -v --config a=b test",
                "<--color><never><-v><--config><a=b><test>{short}",
            ),
            ("cargo test a -- --message-format x", "<test>{short}<a><--><--message-format><x>"),
            ("set -euo pipefail; cargo b", "<b>{short}"),
            ("cargo run 'a b' ''", "<run>{short}<a b><>"),
            ("bash -c 'cargo d'", "<d>{short}"),
            // Other subcommands, and those with a format, stay as they are.
            ("cargo build --message-format=json", "<build><--message-format=json>"),
            ("cargo build -v --message-format json", "<build><-v><--message-format><json>"),
            ("cargo fmt --all", "<fmt><--all>"),
            ("cargo +stable tree", "<+stable><tree>"),
            ("set -eu; cargo --version", "<--version>"),
            ("set -eu; cargo", "<>"),
            ("cargo nextest run build", "<nextest><run><build>"),
        ] {
            let wanted = wanted.replace("{short}", "<--message-format><short>");
            assert_eq!(cargo(command), wanted, "{command}");
        }
    }
}
