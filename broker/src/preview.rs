//! Previews: programs of the operator that run before an agent's question is asked.
//!
//! The agent waits for its preview, and the operator has not approved anything yet. Invariants: of
//! one agent one preview runs at a time, and few of all agents together; a preview whose caller
//! goes away ends, with its process group; its lines are harmless and few.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::engine::Refusal;
use crate::engine::launch::lines;
use crate::engine::mail::question::Preview;
use crate::program::{self, Program, RunError};

/// Previews that run at once.
const AT_ONCE: usize = 2;
/// Time limit of a preview, and of the wait for its turn.
const LIMIT: Duration = Duration::from_secs(30);
/// Most lines of a preview.
const LINES_MAX: u32 = 200;
/// Most bytes of a preview.
const BYTES_MAX: usize = 16 * 1024;
/// Most characters of the output of a preview that failed, in its refusal.
const END_CHARS_MAX: usize = 500;
/// The first line if there was more.
const CUT: &str = "(only the end is shown: it has more than 200 lines or 16 KiB)";

/// The previews that run.
#[derive(Clone, Debug)]
pub(crate) struct Previews {
    places: Arc<Semaphore>,
    askers: Arc<Mutex<BTreeSet<String>>>,
}

impl Default for Previews {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)), askers: Arc::default() }
    }
}

/// The place of an agent; released when it is dropped.
struct Place<'a> {
    askers: &'a Mutex<BTreeSet<String>>,
    agent: &'a str,
}

impl<'a> Place<'a> {
    fn take(askers: &'a Mutex<BTreeSet<String>>, agent: &'a str) -> Option<Self> {
        let mut taken = askers.lock().unwrap_or_else(PoisonError::into_inner);
        taken.insert(agent.to_owned()).then(|| Self { askers, agent })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.askers.lock().unwrap_or_else(PoisonError::into_inner).remove(self.agent);
    }
}

impl Previews {
    /// Runs a preview; returns its lines. `draining` ends it.
    pub(crate) async fn run(
        &self,
        preview: &Preview,
        draining: &CancellationToken,
    ) -> Result<Vec<String>, Refusal> {
        let shown = draining.run_until_cancelled(self.shown(preview)).await;
        let shown = shown.ok_or(Refusal::Draining)?;
        shown.map_err(|problem| Refusal::Field { field: "effect.run_action", problem })
    }

    async fn shown(&self, preview: &Preview) -> Result<Vec<String>, String> {
        let Some(_own) = Place::take(&self.askers, &preview.agent) else {
            let agent = &preview.agent;
            return Err(format!("another preview of {agent} runs; ask again when it has ended"));
        };
        let Ok(_place) = tokio::time::timeout(LIMIT, self.places.acquire()).await else {
            return Err("other previews are still running; ask again later".to_owned());
        };
        let limit = preview.timeout.min(LIMIT);
        let program = Program {
            words: &preview.argv,
            env: program::for_action(&preview.action, &preview.agent),
            input: String::new(),
            limit,
            output_bytes_max: BYTES_MAX,
        };
        let name = preview.argv.first().map_or("", String::as_str);
        let ended = program.run().await.map_err(|error| match error {
            RunError::Start(error) => failed(&format!("`{name}` cannot be started: {error}"), ""),
            RunError::Lost(error) => failed(&format!("`{name}` was lost: {error}"), ""),
        })?;
        let (in_time, status) = (ended.in_time, ended.status);
        let (output, is_cut) = ended.cut_output().await;
        if !in_time {
            let seconds = limit.as_secs();
            return Err(failed(&format!("it did not end within {seconds} s"), &output));
        }
        if !status.success() {
            return Err(failed(&status.to_string(), &output));
        }
        Ok(harmless(&output, is_cut))
    }
}

/// Returns the lines that the operator is shown.
fn harmless(output: &str, is_cut: bool) -> Vec<String> {
    let output = output.trim_end();
    let is_cut = is_cut || output.lines().count() > LINES_MAX as usize;
    let last = lines::last_within(output, LINES_MAX, BYTES_MAX, is_cut);
    last.truncated.then(|| CUT.to_owned()).into_iter().chain(last.lines).collect()
}

/// Returns why a question is refused, on one line.
fn failed(how: &str, output: &str) -> String {
    let lines = lines::last_within(output.trim(), LINES_MAX, BYTES_MAX, false).lines;
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    let end = words.join(" ");
    let surplus = end.chars().count().saturating_sub(END_CHARS_MAX);
    let end: String = end.chars().skip(surplus).collect();
    let end = if end.is_empty() { end } else { format!("; the end of its output: {end}") };
    format!("the preview of the action failed, so no question was asked: {how}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_shown_with_a_word_that_there_was_more() {
        let few = harmless(" a | 2 \u{1b}[32m+\u{1b}[m\n\n b | 1\n\n", false);
        assert_eq!(few, [" a | 2 +", "", " b | 1"]);
        assert!(harmless("\n", false).is_empty());
        let long: String = (0..201).map(|number| format!("{number}\n")).collect();
        let shown = harmless(&long, false);
        assert_eq!((shown.len(), &*shown[0], &*shown[1]), (201, CUT, "1"));
        assert_eq!(harmless("the end", true), [CUT, "the end"]);
        let wide = format!("{}\nend", "x".repeat(BYTES_MAX));
        assert_eq!(harmless(&wide, false), [CUT, "end"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_preview_without_a_place_is_refused_and_the_next_one_runs() {
        let (previews, draining) = (Previews::default(), CancellationToken::new());
        let preview = Preview {
            action: "show".to_owned(),
            agent: "ada".to_owned(),
            argv: vec!["echo".to_owned(), "seen".to_owned()],
            timeout: LIMIT,
        };
        let all = u32::try_from(AT_ONCE).expect("few");
        let places = previews.places.acquire_many(all).await.expect("they are free");
        let refused = previews.run(&preview, &draining).await.expect_err("no place");
        let Refusal::Field { problem, .. } = refused else { panic!("{refused:?}") };
        assert_eq!(problem, "other previews are still running; ask again later");
        drop(places);
        // A program takes real time.
        tokio::time::resume();
        assert_eq!(previews.run(&preview, &draining).await.expect("it runs"), ["seen"]);
    }

    #[test]
    fn a_failure_is_one_line() {
        let output = format!("{}\n\u{1b}[31mno such\u{1b}[m\ncommit\n", "x".repeat(2000));
        let line = failed("exit status: 128", &output);
        assert!(line.ends_with("x no such commit") && !line.contains('\n'), "{line}");
        assert!(line.chars().count() < 700, "{line}");
        assert!(failed("gone", " ").ends_with("asked: gone"));
    }
}
