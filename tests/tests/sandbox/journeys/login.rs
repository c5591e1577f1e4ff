//! The login of a sandboxed agent: claude's own dialogue runs inside, in the operator's terminal,
//! and a login in the agent's home is used.

use hive_proto::v1::{DeliveryState, HarnessState, TurnOutcome};
use hive_tests::api::{Reply, Script};
use hive_tests::binary;
use hive_tests::rig::{Rig, soon};
use pty_process::{Command, Pty, Size};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::hive::Hive;
use super::installed::Installed;

every!(the_dialogue_runs_inside_and_a_login_of_the_home_is_used);

/// When the login expires, in milliseconds since 1970: in 2100.
const EXPIRES_MS: u64 = 4_102_444_800_000;
/// The key that leaves the dialogue: Ctrl-].
const LEAVE: &[u8] = b"\x1d";

/// Opens `hivectl login ada` in a terminal, reads on to this text, and leaves.
async fn dialogue(rig: &Rig, text: &str) -> String {
    let (mut pty, programs_side): (Pty, _) = pty_process::open().expect("the kernel has terminals");
    pty.resize(Size::new(40, 200)).expect("a size");
    let command = Command::new(binary::find("hivectl", "hivectl"))
        .env_clear()
        .env("TERM", "xterm-256color")
        .kill_on_drop(true);
    let command = command.arg("--socket").arg(rig.operator_socket()).args(["login", "ada"]);
    let mut child = command.spawn(programs_side).expect("hivectl starts");
    let (mut shown, mut bytes) = (String::new(), [0; 4096]);
    while !shown.contains(text) {
        let count =
            soon(&format!("the dialogue shows {text:?} after:\n{shown}"), pty.read(&mut bytes))
                .await;
        shown.push_str(&String::from_utf8_lossy(
            &bytes[..count.unwrap_or_else(|error| panic!("{error}: {shown}"))],
        ));
    }
    pty.write_all(LEAVE).await.expect("it reads");
    // Its side of the terminal is closed when it has ended.
    soon("the dialogue is left", async {
        while pty.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    })
    .await;
    soon("hivectl ends", child.wait()).await.expect("it can be waited for");
    shown
}

async fn the_dialogue_runs_inside_and_a_login_of_the_home_is_used(installed: Installed) {
    let prepare = async |rig: &Rig| {
        let hook = json!({"SessionStart": [{"hooks": [{"type": "command", "command": "touch ~/hooked"}]}]});
        let settings =
            json!({ "hooks": hook, "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"} });
        rig.user_file("agents/ada/home/.claude/settings.json", &settings.to_string(), 0o600);
    };
    // Nothing but the stand-in can be reached.
    let ada = "env = { HTTPS_PROXY = \"http://127.0.0.1:1\", NO_PROXY = \"127.0.0.1\" }";
    let mut hive = Hive::start_with(installed, ada, prepare, |_, _, up| {
        up.env_remove("ANTHROPIC_API_KEY");
    })
    .await;
    hive.operator.does("ada", HarnessState::NeedsLogin).await;
    hive.api.set_script(Script::new().when("hello", [Reply::text("Done.")]));
    let message = hive.operator.send("ada", "hello").await;
    assert_eq!(hive.operator.delivery("ada", message).await.state(), DeliveryState::Ready);
    assert_eq!(hive.api.recorded().len(), 0);

    // The file that the dialogue writes after it accepted its code.
    let login = json!({ "claudeAiOauth": {
        "accessToken": "token-of-a-login", "refreshToken": "another", "expiresAt": EXPIRES_MS,
        "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
    }});
    // Written as a whole: the harness reads the file as soon as it exists.
    let written = hive.rig().user_file("operator/login", &login.to_string(), 0o600);
    std::fs::rename(written, hive.rig().path("agents/ada/home/.claude/.credentials.json"))
        .expect("renamed");
    let turn = hive.turn_of("ada").await;
    assert_eq!((turn.outcome(), turn.message_id), (TurnOutcome::Ok, message), "{turn:?}");
    // Neither the hook nor the address of the settings was obeyed, and shell tasks do not see the
    // login.
    assert!(!hive.rig().path("agents/ada/home/hooked").exists());
    assert!(hive.rig().path("agents/ada/home/.claude/settings.json.ignored").is_file());
    // The dialogue of an agent that has a login can be left. A harness refuses one until it has
    // done all that follows a turn.
    hive.operator.does("ada", HarnessState::Idle).await;
    let shown = dialogue(hive.rig(), "Paste code here").await;
    assert!(shown.contains("/oauth/authorize?"), "{shown}");
    let said = hive
        .run("ls -A ~/.claude; grep -rs token-of-a-login ~ /proc/*/environ || echo unseen")
        .await;
    assert!(said.contains("unseen") && !said.contains("credentials"), "{said}");
    hive.end().await;
}
