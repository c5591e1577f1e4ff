//! The output of `--help`.

use std::path::Path;

use super::run::run;

const COMMANDS: &str = "up, supervise, inbox, inbox read, inbox ack, send, ask, questions, questions cancel, answer, search, \
    agents, agent, agent create, agent set-parent, agent set-policy, topology, turn, turn list, \
    turn show, turn cancel, turn compact, turn model, turn release, stats, login, reminders, \
    reminders cancel, schedules, schedules show, schedules pause, schedules fire, loose-ends, events, dead-letters, dead-letters redrive, trace, status, \
    doctor, debug, debug bundle, backup, restore, config check, config keys, drain, completions";

#[tokio::test]
async fn help_is_as_it_was() {
    let nowhere = Path::new("/nonexistent/hived.sock");
    for command in COMMANDS.split(", ").chain([""]) {
        let args: Vec<&str> =
            command.split(' ').filter(|word| !word.is_empty()).chain(["--help"]).collect();
        let ran = run(nowhere, &args).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{command}");
        insta::assert_snapshot!(format!("help {command}").trim().replace(' ', "_"), ran.out);
    }
}

#[tokio::test]
async fn a_wrong_command_line_ends_with_2_and_says_so_on_stderr() {
    for args in [
        &["sned"][..],
        &["send", "ada"],
        &["--timeout", "0", "status"],
        &["inbox", "ack"],
        &["turn", "release", "ada"],
        &["turn", "show", "11", "--raw", "--json"],
        &["stats", "--window", "soon"],
        &["login"],
        &["ask", "ada"],
        &["ask", "ada", "Done?", "--multi"],
        &["ask", "ada", "Done?", "--ttl", "soon"],
        &["questions", "cancel"],
        &["questions", "--all", "--target", "bob"],
        &["questions", "--follow", "--state", "open"],
        &["answer"],
        &["answer", "thirty", "yes"],
        &["reminders", "cancel"],
        &["schedules", "pause"],
        &["schedules", "fire"],
        &["schedules", "show", "daily"],
        &["schedules", "--all", "--state", "ended"],
        &["search"],
        &["agent", "set-policy", "bob"],
        &["agent", "set-policy", "bob", "--sends-per-minute", "many"],
        &["agent", "set-policy", "bob", "--allow", "ada", "--allow-everyone"],
    ] {
        let ran = run(Path::new("/nonexistent/hived.sock"), args).await;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
        assert!(ran.err.starts_with("error: "), "{args:?}: {}", ran.err);
    }
}
