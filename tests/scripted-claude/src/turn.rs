//! A turn: claude reads the prompt, runs the steps, and prints a result. A resident process runs
//! one turn after another.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};

use super::duo::{self, Letter, Plan};
use super::events::{self, Events};
use super::failure::Failure;
use super::fill::fill;
use super::mail::{self, Mail, Sender};
use super::script::{self, Rule, Step};
use super::servers::Servers;
use super::session::Session;
use super::{auth, compact, deeds};

/// Maximum number of messages received at once.
const TAKEN_MAX: u32 = 8;
/// Claude does not call the model if at most this many tokens of the window are left.
const RESERVED_TOKENS: u64 = 23_000;
/// The result of a call that is broken off.
const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the \
    new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";

/// The signals that have no effect.
#[derive(Clone, Debug, Default)]
pub struct Deaf {
    pub to_sigterm: Arc<AtomicBool>,
    pub to_sigint: Arc<AtomicBool>,
}

/// The state of a process for its turns.
#[derive(Debug)]
pub struct Conversation {
    /// The home directory with claude's files.
    pub home: PathBuf,
    pub events: Events,
    pub session: Session,
    pub servers: Servers,
    pub builtin_tools: Vec<String>,
    /// Tools that need no permission.
    pub allowed: Vec<String>,
    /// The signals that have no effect.
    pub deaf: Deaf,
    /// The last text of the model.
    pub said: String,
    pub in_tool: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A result; the exit code of a process that runs only this turn.
    Result(u8),
    /// The end of the process without a result.
    Exit(u8),
}

impl Conversation {
    /// Handles a prompt: a command, the steps of its rule, or the friendly agent's reaction if
    /// there is none.
    pub async fn turn(&mut self, prompt: &str, rules: &[Rule]) -> io::Result<End> {
        self.events.begin();
        self.said.clear();
        let steps = script::steps(rules, prompt);
        self.session.queued(prompt)?;
        if let Some(command) = compact::command(prompt) {
            return self.command(command, steps.unwrap_or_default()).await;
        }
        self.init()?;
        let held = self.held_text(prompt);
        self.session.append("user", json!({"role": "user", "content": prompt}), Value::Null)?;
        if auth::is_needed(&self.home) {
            return self.fail(Failure::NotLoggedIn);
        }
        if self.session.context() + RESERVED_TOKENS >= self.events.window() {
            return self.fail(Failure::BlockingLimit);
        }
        match steps {
            None => self.duo(prompt, held).await?,
            Some(steps) => {
                if let Some(end) = self.steps(steps, prompt, held.as_deref()).await? {
                    return Ok(end);
                }
            }
        }
        self.result(&Map::new())
    }

    /// Reports the set-up of the process.
    pub fn init(&self) -> io::Result<()> {
        let tools = [self.builtin_tools.clone(), self.servers.tools()].concat();
        self.events.init(&tools, &self.servers.states())
    }

    /// Runs steps; returns the end of the turn if a step ends it.
    pub async fn steps(
        &mut self,
        steps: &[Step],
        prompt: &str,
        held: Option<&str>,
    ) -> io::Result<Option<End>> {
        for step in steps {
            if let Some(end) = self.step(step, prompt, held).await? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    async fn step(
        &mut self,
        step: &Step,
        prompt: &str,
        held: Option<&str>,
    ) -> io::Result<Option<End>> {
        match step {
            Step::Tool { tool, input } => {
                self.tool(tool, fill(input.clone(), prompt), Value::Null).await?;
            }
            Step::Call { call, input, touch } => {
                self.tool_with_reason(
                    call,
                    fill(input.clone(), prompt),
                    Value::Null,
                    Some(touch.as_path()),
                )
                .await?;
            }
            Step::Text { text } => self.say(text)?,
            Step::Duo { duo: true } => self.duo(prompt, held.map(str::to_owned)).await?,
            Step::Duo { duo: false } => {}
            Step::Result { result } => return self.result(result).map(Some),
            Step::Fail { fail } => return self.fail(*fail).map(Some),
            Step::CompactError { compact_error } => {
                return self.compaction_failed(compact_error).map(Some);
            }
            Step::First { first, steps } => {
                if !first.exists() {
                    std::fs::write(first, b"")?;
                    return Box::pin(self.steps(steps, prompt, held)).await;
                }
            }
            Step::IgnoreSigterm { ignore_sigterm } => {
                self.deaf.to_sigterm.store(*ignore_sigterm, Ordering::SeqCst);
            }
            Step::IgnoreSigint { ignore_sigint } => {
                self.deaf.to_sigint.store(*ignore_sigint, Ordering::SeqCst);
            }
            Step::Usage { usage } => self.events.set_usage(usage),
            Step::Exit { .. }
            | Step::Die { .. }
            | Step::Hang { .. }
            | Step::WaitFile { .. }
            | Step::Touch { .. }
            | Step::Spawn { .. }
            | Step::Daemon { .. }
            | Step::Stderr { .. }
            | Step::Raw { .. } => return Ok(deeds::step(step).await?.map(End::Exit)),
        }
        Ok(None)
    }

    /// Handles the mail of the prompt, and other waiting mail.
    async fn duo(&mut self, prompt: &str, held: Option<String>) -> io::Result<()> {
        let mut mails = mail::read(prompt);
        if let Some(first) = mails.first_mut().filter(|mail| mail.body.is_none()) {
            first.body = held;
        }
        for mail in &mails {
            self.deal_with(mail).await?;
        }
        let mut more = mail::more_waits(prompt);
        while more {
            let (text, is_error) =
                self.tool("recv", json!({"max": TAKEN_MAX}), Value::Null).await?;
            for mail in mail::read(&text).iter().filter(|_| !is_error) {
                self.deal_with(mail).await?;
            }
            more = !is_error && mail::more_waits(&text);
        }
        if self.said.is_empty() {
            self.say("Done.")?;
        }
        Ok(())
    }

    async fn deal_with(&mut self, mail: &Mail) -> io::Result<()> {
        let plan = duo::plan(mail, mail.body.as_deref().unwrap_or_default(), &self.session.sent());
        let asker = match &mail.sender {
            Sender::Operator => "operator",
            Sender::Agent(name) => name,
            Sender::Oneself | Sender::Other => "",
        };
        let cause = json!({"id": mail.id, "asker": asker});
        match plan {
            Plan::Rest(words) => self.say(&words),
            Plan::Answer(letter) => self.send(&letter, Value::Null).await.map(drop),
            Plan::Ask(letter) => match self.send(&letter, cause).await? {
                Ok(()) => self.say(&format!("I have asked {}.", letter.to)),
                Err(refusal) => {
                    self.answer(mail, asker, format!("I cannot ask {}: {refusal}", letter.to)).await
                }
            },
            Plan::Tell(letter) => {
                let done = match self.send(&letter, Value::Null).await? {
                    Ok(()) => format!("I have told {}.", letter.to),
                    Err(refusal) => format!("I cannot tell {}: {refusal}", letter.to),
                };
                self.answer(mail, asker, done).await
            }
        }
    }

    async fn answer(&mut self, mail: &Mail, to: &str, body: String) -> io::Result<()> {
        let letter = Letter { to: to.to_owned(), body, in_reply_to: mail.id };
        self.send(&letter, Value::Null).await.map(drop)
    }

    /// Sends a letter; an error is the tool's refusal.
    async fn send(&mut self, letter: &Letter, cause: Value) -> io::Result<Result<(), String>> {
        let Letter { to, body, in_reply_to } = letter;
        let mut input = json!({"to": to, "body": body});
        if *in_reply_to != 0 {
            input["in_reply_to"] = json!(in_reply_to);
        }
        let (text, is_error) = self.tool("send", input, cause).await?;
        Ok(if is_error { Err(text) } else { Ok(()) })
    }

    /// Calls a tool, with all events that claude writes for it.
    async fn tool(&mut self, tool: &str, input: Value, cause: Value) -> io::Result<(String, bool)> {
        self.tool_with_reason(tool, input, cause, None).await
    }

    /// The same, and creates a file as soon as the server has the call.
    async fn tool_with_reason(
        &mut self,
        tool: &str,
        input: Value,
        mut cause: Value,
        called: Option<&Path>,
    ) -> io::Result<(String, bool)> {
        let name = self.servers.resolve(tool);
        let id = format!("toolu_{}", events::hex(12));
        self.infer(json!({"type": "tool_use", "id": id, "name": name, "input": input}))?;
        self.in_tool = Some(id.clone());
        let (text, is_error) = if !self.servers.tools().contains(&name) {
            (
                format!("<tool_use_error>Error: No such tool available: {name}.</tool_use_error>"),
                true,
            )
        } else if !self.is_allowed(&name) {
            let message = format!(
                "Claude requested permissions to use {name}, but you haven't granted it yet."
            );
            self.events.permission_denied(&name, &id, &message)?;
            (message, true)
        } else {
            self.servers
                .call(&name, input, &id, called)
                .await
                .unwrap_or_else(|| ("Connection closed".to_owned(), true))
        };
        self.in_tool = None;
        self.events.tool_result(&id, &text, is_error)?;
        if let (Some(sent), true) = (receipt(&text), cause.is_object() && !is_error) {
            cause["sent"] = json!(sent);
        }
        let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]});
        self.session.append("user", result, cause)?;
        Ok((text, is_error))
    }

    fn is_allowed(&self, tool: &str) -> bool {
        self.allowed.iter().any(|pattern| match pattern.strip_suffix('*') {
            // `mcp__*` allows nothing: the pattern must name the server.
            Some(beginning) => beginning.matches("__").count() == 2 && tool.starts_with(beginning),
            None => {
                tool == pattern
                    || (pattern.matches("__").count() == 1
                        && tool.starts_with(&format!("{pattern}__")))
            }
        })
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.said = text.to_owned();
        self.infer(json!({"type": "text", "text": text}))
    }

    /// Writes an inference of one block.
    fn infer(&mut self, block: Value) -> io::Result<()> {
        let usage = self.events.assistant(std::slice::from_ref(&block))?;
        self.session.append(
            "assistant",
            json!({"role": "assistant", "content": [block], "usage": usage}),
            Value::Null,
        )
    }

    /// Writes the result.
    fn result(&mut self, fields: &Map<String, Value>) -> io::Result<End> {
        self.events.result(&self.said, fields)?;
        self.remember_cost()?;
        Ok(End::Result(u8::from(fields.get("is_error").and_then(Value::as_bool).unwrap_or(false))))
    }

    /// Ends the turn as the real one does if the API refuses. The prompt stays in the conversation.
    fn fail(&mut self, failure: Failure) -> io::Result<End> {
        let told = failure.report();
        if let Some(event) = told.before {
            self.events.line(event)?;
        }
        self.events.synthetic(&told.text, "stop_sequence", &told.assistant)?;
        let block = json!({"type": "text", "text": told.text});
        self.session.append(
            "assistant",
            json!({"role": "assistant", "model": "<synthetic>", "content": [block]}),
            Value::Null,
        )?;
        self.result(&told.result)
    }

    /// Ends an aborted turn; the process may continue.
    pub async fn interrupted(&mut self) -> io::Result<()> {
        let in_tool = self.in_tool.take();
        self.servers.cancel().await;
        let words = match &in_tool {
            None => "[Request interrupted by user]",
            Some(id) => {
                let block = json!({"type": "tool_result", "content": REJECTED, "is_error": true, "tool_use_id": id});
                self.broken_off(block)?;
                "[Request interrupted by user for tool use]"
            }
        };
        self.broken_off(json!({"type": "text", "text": words}))?;
        self.events.aborted(if in_tool.is_some() {
            "aborted_tools"
        } else {
            "aborted_streaming"
        })?;
        self.remember_cost()
    }

    fn broken_off(&mut self, block: Value) -> io::Result<()> {
        let message = json!({"role": "user", "content": [block]});
        self.events
            .line(json!({"type": "user", "parent_tool_use_id": null, "message": message}))?;
        self.session.append("user", message, Value::Null)
    }

    /// Stores the cost of the conversation for the next process.
    pub(super) fn remember_cost(&mut self) -> io::Result<()> {
        self.session.line(json!({"type": "cost-state", "totalCostUSD": self.events.cost()}))
    }

    /// Returns the text of the prompt's message from earlier in the conversation, if the prompt
    /// does not repeat it.
    fn held_text(&self, prompt: &str) -> Option<String> {
        let asked = mail::read(prompt)
            .into_iter()
            .next()
            .filter(|mail| mail.body.is_none() && mail.id != 0)?;
        let earlier = self.session.prompts().flat_map(mail::read);
        earlier.filter(|mail| mail.id == asked.id).find_map(|mail| mail.body)
    }
}

/// Returns the message's number from the result of a send.
fn receipt(text: &str) -> Option<u64> {
    let (_, after) = text.split_once('#')?;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
