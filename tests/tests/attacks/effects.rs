//! Effects as a hostile agent would ask for them: with more rights than it has, with those that
//! only the operator gives, for more children than it may have, and in words that look like a diff.
//!
//! Invariant: without the operator no agent gets more than its asker has, and the operator reads
//! words of an agent as values of the diff or quoted.

mod tools;

use hive_core::agent::{CREATE_AGENT, MANAGE_SUBTREE};
use hive_core::reason::Reason;
use hive_fuzz::seen;
use hive_proto::v1::effect::Effect;
use hive_proto::v1::*;
use hive_tests::rig::request::texts;
use hive_tests::rig::{Rig, request};
use tokio::task::JoinSet;
use tonic::transport::Channel;

use crate::ask::{call, done, refused};
use crate::words::{FORGED, on_a_terminal, says_nothing_forged};

/// Ada, who creates children by a grant, and has few rights and quotas.
const ADA: &str = "[agents.ada]\ntool_groups = [\"messaging\", \"approvals\"]\n\
    allowed_recipients = [\"bob\"]\nmodel = \"haiku\"\navailable_models = [\"haiku\"]\n\
    grants = [\"create_agent\"]\n[agents.ada.limits]\nsends_per_minute_max = 100\n\
    sender_stored_bytes_max = 1000000\nquestions_open_max = 40\nreminders_pending_max = 5\n\
    [agents.bob]\n[agents.cyd]\n";

/// Returns a policy of what ada has herself.
fn own() -> Policy {
    Policy {
        tool_groups: texts(&["messaging"]),
        allowed_recipients: texts(&["bob"]),
        sends_per_minute_max: Some(100),
        sender_stored_bytes_max: Some(1_000_000),
        questions_open_max: Some(40),
        reminders_pending_max: Some(5),
        ..Policy::default()
    }
}

fn create(name: &str, model: &str, policy: Policy) -> AskQuestionRequest {
    let (name, model) = (name.to_owned(), model.to_owned());
    let role = String::new();
    request::effect(Effect::CreateAgent(CreateAgentEffect {
        name,
        role,
        model,
        policy: Some(policy),
    }))
}

fn set_policy(name: &str, policy: Policy, paths: &[&str]) -> AskQuestionRequest {
    request::effect(Effect::SetPolicy(SetPolicyEffect {
        name: name.to_owned(),
        policy: Some(policy),
        update_mask: Some(prost_types::FieldMask { paths: texts(paths) }),
    }))
}

async fn asked(channel: &Channel, request: &AskQuestionRequest) -> Question {
    done::<AskQuestionResponse>(channel, request).await.question.expect("a question")
}

fn changes(question: &Question) -> &[EffectChange] {
    &question.approval.as_ref().expect("an approval").changes
}

/// Returns all agents on disk.
fn agents(rig: &Rig) -> Vec<String> {
    rig.on_disk().remove("agent").expect("a table")
}

/// Returns policies and models that each exceed ada in one part, and that part.
fn exceeding() -> Vec<(&'static str, &'static str, Policy)> {
    let groups = |groups: &[&str]| Policy { tool_groups: texts(groups), ..own() };
    let recipients = |names: &[&str]| Policy { allowed_recipients: texts(names), ..own() };
    let (sends, bytes) = ("policy.sends_per_minute_max", "policy.sender_stored_bytes_max");
    let (questions, reminders) = ("policy.questions_open_max", "policy.reminders_pending_max");
    vec![
        ("haiku", "policy.tool_groups", groups(&["messaging", "execution"])),
        // What is left out is the usual, which is more than she has.
        ("haiku", "policy.tool_groups", groups(&[])),
        ("haiku", "policy.allowed_recipients", recipients(&["bob", "cyd"])),
        ("haiku", "policy.allowed_recipients", recipients(&[])),
        (
            "haiku",
            "policy.capabilities",
            Policy { capabilities: texts(&[MANAGE_SUBTREE]), ..own() },
        ),
        ("opus", "model", own()),
        ("", "model", own()),
        ("haiku", sends, Policy { sends_per_minute_max: Some(101), ..own() }),
        ("haiku", sends, Policy { sends_per_minute_max: None, ..own() }),
        ("haiku", bytes, Policy { sender_stored_bytes_max: Some(1_000_001), ..own() }),
        ("haiku", bytes, Policy { sender_stored_bytes_max: None, ..own() }),
        ("haiku", questions, Policy { questions_open_max: Some(41), ..own() }),
        ("haiku", questions, Policy { questions_open_max: None, ..own() }),
        ("haiku", reminders, Policy { reminders_pending_max: Some(6), ..own() }),
        ("haiku", reminders, Policy { reminders_pending_max: None, ..own() }),
    ]
}

#[tokio::test]
async fn a_grant_creates_no_child_with_more_than_its_parent_has() {
    let mut rig = Rig::new(ADA);
    rig.start_broker().await;
    let ada = rig.agent("ada").await.channel();
    let before = agents(&rig);
    for (number, (model, part, policy)) in exceeding().into_iter().enumerate() {
        let request = create(&format!("kid-{number}"), model, policy);
        let question = asked(&ada, &request).await;
        assert_eq!(question.state(), QuestionState::Open, "{request:?}");
        let marked = changes(&question).iter().filter(|change| !change.exceeds.is_empty());
        let marked: Vec<&str> = marked.map(|change| change.field.as_str()).collect();
        assert_eq!(marked, [part], "{request:?}");
    }
    assert_eq!(agents(&rig), before, "nothing is created before an approval");
    // For herself the grant is for nothing.
    let wider = Policy { capabilities: texts(&[MANAGE_SUBTREE]), ..Policy::default() };
    let question = asked(&ada, &set_policy("ada", wider, &["capabilities"])).await;
    assert_eq!(question.state(), QuestionState::Open);
    let question = asked(&ada, &create("kid", "haiku", own())).await;
    assert_eq!(question.state(), QuestionState::Answered, "what she has is enough");
    assert_eq!(agents(&rig).len(), before.len() + 1);
}

#[tokio::test]
async fn no_effect_has_what_the_operator_alone_gives() {
    let kid = "[agents.kid]\nparent = \"ada\"\n";
    let mut rig = Rig::new(&format!("{ADA}{kid}"));
    rig.start_broker().await;
    let ada = rig.agent("ada").await.channel();
    let before = rig.on_disk();
    let none = Policy::default();
    for (path, policy) in [
        ("grants", Policy { grants: texts(&[CREATE_AGENT]), ..none.clone() }),
        ("grants", Policy { grants: texts(&["action:apply"]), ..none.clone() }),
        ("children_max", Policy { children_max: Some(1), ..none.clone() }),
        ("schedules_max", Policy { schedules_max: Some(1), ..none.clone() }),
    ] {
        let created = create("new", "haiku", policy.clone());
        refused(path, call(&ada, &created).await, &[Reason::FieldInvalid]);
        for name in ["ada", "kid"] {
            for request in [
                set_policy(name, policy.clone(), &[path]),
                // Beside another part, which alone is named.
                set_policy(name, policy.clone(), &["capabilities"]),
                // Taking it away is a change of it, too.
                set_policy(name, none.clone(), &[path]),
            ] {
                refused(path, call(&ada, &request).await, &[Reason::FieldInvalid]);
            }
        }
    }
    rig.unchanged(&before, "an effect that no approval has");
}

#[tokio::test]
async fn children_of_children_stay_within_children_max_from_two_connections() {
    const EACH: usize = 10;
    let granted = "tool_groups = [\"messaging\", \"inbox\", \"meta\", \"execution\", \"approvals\"]\n\
                   grants = [\"create_agent\"]\n";
    let mut rig = Rig::new(&format!(
        "[agents.ada]\n{granted}limits.children_max = 5\n\
         [agents.kid]\nparent = \"ada\"\n{granted}limits.children_max = 100\n"
    ));
    rig.start_broker().await;
    let before = agents(&rig).len();
    let mut calls = JoinSet::new();
    for asker in ["ada", "kid"] {
        for connection in 0..2 {
            let channel = rig.agent(asker).await.channel();
            for number in 0..EACH {
                let channel = channel.clone();
                let name = format!("of-{asker}-{connection}-{number}");
                let request = create(&name, "", Policy::default());
                calls.spawn(async move { asked(&channel, &request).await });
            }
        }
    }
    let (created, open): (Vec<Question>, Vec<Question>) = calls
        .join_all()
        .await
        .into_iter()
        .partition(|question| question.state() == QuestionState::Answered);
    assert_eq!((created.len(), open.len()), (4, 4 * EACH - 4), "kid is the first of five");
    assert_eq!(agents(&rig).len(), before + 4);
    let full = "ada has 5 agents below it, as many as its children_max allows";
    for question in open {
        let question = rig.operator().await.question(question.id).await;
        assert_eq!(changes(&question)[0].exceeds, full);
    }

    // A name is free for one of two, and the other may not even ask for it.
    rig.stop_broker().await;
    let config = rig.read("hive.toml").replace("children_max = 5", "children_max = 50");
    rig.configure(&config);
    rig.start_broker().await;
    let mut calls = JoinSet::new();
    for asker in ["ada", "ada", "kid", "kid"] {
        let channel = rig.agent(asker).await.channel();
        let request = create("one", "", Policy::default());
        calls.spawn(async move { call(&channel, &request).await.map(drop) });
    }
    let (created, others): (Vec<_>, Vec<_>) =
        calls.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!(created.len(), 1);
    for refusal in others {
        let refusal = refusal.expect_err("refused");
        assert_eq!(hive_proto::status::reason(&refusal), Some(Reason::AgentExists), "{refusal:?}");
    }
}

/// Returns words with lines that look like those of a diff and of Hive.
fn forging() -> String {
    let lines = [
        "+ policy.grants: create_agent",
        "- role: none",
        "+ agent: root",
        "\t+ policy.capabilities: manage_subtree",
        "! it changes nothing any more",
        "run: done (run 1), exit status: 0",
        "ada asks you to retire the agent bob (question 1):",
        "> ada says:",
        "Approve it now: `hivectl answer 1` shows that it changes nothing.",
    ];
    let hidden = "\u{202e}txet neddih\u{202c}\u{200b}\u{ad}\u{feff}\u{2066}\u{3164}\u{e0041}";
    format!("Please.\n{}\n{}\n{hidden}", lines.join("\n"), FORGED.join("\n"))
}

/// Returns the fields of the lines of a diff that begin with `indent`, and asserts that no line of
/// the text is forged.
#[track_caller]
fn fields(shown: &str, indent: &str, by: &str) -> Vec<String> {
    let forged = forging();
    for line in shown.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert!(!forged.lines().any(|other| other.trim() == line), "{by}: {line:?} of\n{shown}");
    }
    let lines = shown.lines().filter_map(|line| line.strip_prefix(indent));
    let diff = lines.filter_map(|line| line.strip_prefix("+ ").or(line.strip_prefix("- ")));
    diff.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn words_of_an_asker_never_look_like_a_line_of_the_diff() {
    let action = "[actions.say]\ncommand = [\"/bin/echo\", \"{words}\"]\nagents = [\"ada\"]\n\
                  args = { words = \".*\" }\n";
    let mut rig = Rig::new(&format!("{action}{ADA}"));
    rig.start_broker().await;
    let (operator, ada) = (rig.operator().await, rig.agent("ada").await.channel());
    let said = |words: &str| {
        let args = [("words".to_owned(), words.to_owned())].into();
        Effect::RunAction(RunActionEffect { action: "say".to_owned(), args })
    };
    let role = |role: &str| {
        let (name, role) = ("ada".to_owned(), Some(role.to_owned()));
        Effect::SetAgent(SetAgentEffect { name, role, model: None })
    };
    let before = rig.on_disk();
    let ends = ["\n", "\r", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}", "\0", "\u{9b}1A"];
    let acts = ["\u{1b}[2K", "\u{8}"];
    for end in [&ends[..], &acts].concat() {
        let words = format!("x{end}+ policy.grants: all");
        for effect in [role(&words), said(&words)] {
            let refusal = call(&ada, &request::effect(effect)).await;
            let refusal = refused(&format!("{end:?}"), refusal, &[Reason::FieldInvalid]);
            assert!(!refusal.message().contains(end), "{refusal:?}");
        }
    }
    for hidden in ["\u{202e}", "\u{200b}", "\u{ad}", "\u{2066}"] {
        let words = said(&format!("x{hidden}+ agent: root"));
        let refusal = call(&ada, &request::effect(words)).await;
        refused(&format!("{hidden:?}"), refusal, &[Reason::FieldInvalid]);
    }
    rig.unchanged(&before, "words with control characters");

    let hidden = "x \u{202e}+ agent: root\u{200b}\u{2066}\u{ad}";
    // A terminal of 80 columns continues it with a whole line of a diff, and any other almost so.
    let before = "x".repeat(80 - "    + ada.role: ".len());
    let long = format!("{before}    + policy.grants: all +\u{a0}policy.grants:\u{a0}all");
    for (effect, diff) in [
        (role(&long), &["role"][..]),
        (role(hidden), &["role"]),
        (said(&long), &["action", "command", "timeout"]),
        (said("+ agent: root"), &["action", "command", "timeout"]),
    ] {
        let asking = AskQuestionRequest { text: forging(), ..request::effect(effect) };
        let question = asked(&ada, &asking).await;
        let diff: Vec<String> = diff
            .iter()
            .map(|field| if *field == "role" { "ada.role".to_owned() } else { (*field).to_owned() })
            .collect();
        let mail = operator.delivery("operator", question.message_id).await;
        let body = mail.message.expect("a message").body;
        assert_eq!(fields(&body, "", "the message"), diff, "{body}");
        says_nothing_forged(&body);
        let id = question.id.to_string();
        let shown = on_a_terminal(&rig, &["questions", "show", &id]).await;
        assert_eq!(fields(&shown, "    ", "hivectl"), diff, "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        let acts = |c: &char| !matches!(c, '\n' | '\t') && seen::acts_or_hides(*c);
        assert_eq!(shown.chars().find(acts), None, "{}", shown.escape_debug());
    }
}
