//! A work queue: `enqueue` makes each line of its input a job, `work` runs a command for each job.
//!
//! A job is a message to the agent of the queue. It is acked when its command has succeeded, so it
//! runs at least once, over restarts of the broker and of this program.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "results and progress")]

mod worker;

use std::ffi::OsString;
use std::pin::pin;

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use futures_util::stream::{self, TryStreamExt as _};
use hive_client::v1::SendMessageRequest;
use hive_client::{Hive, MailOptions};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::worker::Worker;

/// Jobs that are on their way to the broker at once.
const SENDS_MAX: usize = 16;

/// A work queue on a hive. `HIVE_SOCKET` names the socket of an agent.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Sends each line of standard input as a job, from any agent that may send to the queue.
    Enqueue {
        /// The agent of the queue.
        #[arg(default_value = "queue")]
        agent: String,
        /// A name for this input. To send the same input under the same name again, after a fault,
        /// adds only the jobs that are missing.
        #[arg(long)]
        batch: Option<String>,
    },
    /// Runs a command for each job, with the job on its standard input, as the agent of the queue.
    Work {
        /// Commands that run at once.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=256))]
        consumers: u32,
        /// The command. Exit code 0 ends the job, another one has it tried again.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let verb = Args::parse().verb;
    let hive = Hive::connect()?;
    match verb {
        Verb::Enqueue { agent, batch } => enqueue(&hive, &agent, batch.as_deref()).await,
        Verb::Work { consumers, command } => work(&hive, consumers, command).await,
    }
}

async fn enqueue(hive: &Hive, agent: &str, batch: Option<&str>) -> anyhow::Result<()> {
    let input = BufReader::new(tokio::io::stdin()).lines();
    let jobs = stream::try_unfold((input, 1_u64), |(mut input, number)| async move {
        let line = input.next_line().await.with_context(|| format!("line {number}"))?;
        Ok(line.map(|line| ((number, line), (input, number + 1))))
    });
    // They are sent in order. Those that are on their way at the same time may overtake each other.
    let accepted = jobs
        .try_filter(|(_, line)| std::future::ready(!line.is_empty()))
        .map_ok(|(number, line)| async move {
            let request = SendMessageRequest {
                request_id: batch.map(|name| format!("{name}-{number}")).unwrap_or_default(),
                to: Some(agent.into()),
                body: line,
                ..Default::default()
            };
            hive.call(request).await.with_context(|| format!("line {number}"))
        })
        .try_buffered(SENDS_MAX);
    let mut accepted = pin!(accepted);
    let mut count = 0_u64;
    let ended = loop {
        match accepted.try_next().await {
            Ok(Some(_)) => count += 1,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        if count.is_multiple_of(1000) {
            eprintln!("{count} jobs are queued");
        }
    };
    println!("{count} jobs are queued");
    ended.context("the queue took only a part; a few behind the line may be queued as well")
}

async fn work(hive: &Hive, consumers: u32, command: Vec<OsString>) -> anyhow::Result<()> {
    let worker = Worker::new(command);
    let mut mail = hive.mail(MailOptions { window: consumers, ..Default::default() });
    let ended: anyhow::Result<()> = tokio::select! {
        ended = mail.each(|delivery| worker.job(delivery.message().body.clone())) => {
            ended.map_err(Into::into)
        }
        ended = worker.ended() => ended.map_err(Into::into),
    };
    // Waits for the results of the last jobs, and releases those that were not begun.
    mail.close().await;
    println!("{} jobs done, {} failed", worker.done.get(), worker.failed.get());
    ended?;
    if let Some(error) = worker.fault.take() {
        bail!("the command cannot run, and its jobs wait: {error}");
    }
    Ok(())
}
