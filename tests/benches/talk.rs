//! `talk`: from a question to the operator's bell, and from the answer to the asker's next turn.

use std::time::Instant;

use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::{AnswerQuestionRequest, AskQuestionRequest, EventKind};
use hive_tests::rig::{
    Client, Rig,
    request::{self, texts},
};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

use crate::report::Report;
use crate::sample::{Sample, micros};

/// Questions of one run; at most as many as one agent may have open.
const QUESTIONS: usize = 40;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let target = hive_tests::binary::workspace().join("target");
    let mut rig = Rig::new_in("[hive]\nname = \"bench\"\n[agents.a0]\n", &target);
    let bell = rig.path("bell");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &bell,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )?;
    // The command writes one byte: that is the bell.
    let notify = format!(
        "[operator]\nnotify = {{ command = [\"sh\", \"-c\", \"printf . > '{}'\"] }}\n",
        bell.display()
    );
    rig.configure(&format!("[hive]\nname = \"bench\"\n{notify}[agents.a0]\n"));
    rig.start_broker().await;
    // The pipe is open at both ends: no writer waits for a reader, and no reader sees the end.
    let mut ears = pipe::OpenOptions::new().read_write(true).open_receiver(&bell)?;

    let (asker, operator) = (rig.agent("a0").await, rig.operator().await);
    let (mut rung, mut ids) = (Sample::default(), Vec::new());
    for number in 0..QUESTIONS {
        let start = Instant::now();
        ids.push(ask(&asker, number).await?);
        let mut byte = [0];
        ears.read_exact(&mut byte).await?;
        rung.push(micros(start.elapsed()) / 1e3);
    }
    report.add_quantiles("T", "ask -> the operator's command has run", rung, "1000");

    // No call of the agent's own after this: with a harness it acts inside turns alone.
    rig.start_harness("a0", &[]);
    let mut watch = rig.watch().await;
    watch.kind("a0", EventKind::HarnessAttached).await;
    let mut begun = Sample::default();
    for id in ids {
        let mut watch = rig.watch_from_now().await;
        let start = Instant::now();
        answer(&operator, id).await?;
        watch.kind("a0", EventKind::TurnBegun).await;
        begun.push(micros(start.elapsed()) / 1e3);
        watch.kind("a0", EventKind::TurnEnded).await;
    }
    report.add_quantiles("T", "answer -> the asker's turn has begun", begun, "2000");
    rig.end().await;
    Ok(())
}

async fn ask(asker: &Client, number: usize) -> anyhow::Result<u64> {
    let ask = request::ask("operator", &format!("Shall I go on with step {number}?"));
    let request = AskQuestionRequest { options: texts(&["yes", "no"]), ..ask };
    let asked =
        QuestionServiceClient::new(asker.channel()).ask_question(asker.request(request)).await?;
    Ok(asked.into_inner().question.unwrap_or_default().id)
}

async fn answer(operator: &Client, question_id: u64) -> anyhow::Result<()> {
    let request =
        AnswerQuestionRequest { choices: texts(&["yes"]), ..request::answer(question_id, "") };
    QuestionServiceClient::new(operator.channel())
        .answer_question(operator.request(request))
        .await?;
    Ok(())
}
