//! One turn: the prompt comes in, steps are done, a result goes out.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};

use super::duo::{self, Letter, Plan};
use super::events::{self, Events};
use super::fill::fill;
use super::mail::{self, Mail, Sender};
use super::script::Step;
use super::servers::Servers;
use super::session::Session;

/// How much mail is taken at once.
const TAKEN_MAX: u32 = 8;

/// Which signals have no effect any more.
#[derive(Clone, Debug, Default)]
pub struct Deaf {
    /// SIGTERM.
    pub to_sigterm: Arc<AtomicBool>,
    /// SIGINT.
    pub to_sigint: Arc<AtomicBool>,
}

/// A turn that runs.
#[derive(Debug)]
pub struct Turn {
    /// What is written.
    pub events: Events,
    /// What is remembered.
    pub session: Session,
    /// Whose tools are called.
    pub servers: Servers,
    /// Tools that need no permission.
    pub allowed: Vec<String>,
    /// Which signals have no effect.
    pub deaf: Deaf,
    /// What the conversation cost before.
    pub cost_before: f64,
    /// The last that was said.
    pub said: String,
}

impl Turn {
    /// Does the steps, or what the friendly agent does where there are none; gives the exit code.
    pub async fn run(&mut self, prompt: &str, steps: Option<&[Step]>) -> io::Result<u8> {
        let held = self.held_text(prompt);
        self.session.append("user", json!({"role": "user", "content": prompt}), Value::Null)?;
        match steps {
            None => self.duo(prompt, held).await?,
            Some(steps) => {
                for step in steps {
                    if let Some(code) = self.step(step, prompt, held.as_deref()).await? {
                        return Ok(code);
                    }
                }
            }
        }
        self.result(&Map::new())
    }

    async fn step(&mut self, step: &Step, prompt: &str, held: Option<&str>) -> io::Result<Option<u8>> {
        match step {
            Step::Tool { tool, input } => {
                self.tool(tool, fill(input.clone(), prompt), Value::Null).await?;
            }
            Step::Call { call, input, touch } => {
                self.tool_telling(call, fill(input.clone(), prompt), Value::Null, Some(touch.as_path())).await?;
            }
            Step::Text { text } => self.say(text)?,
            Step::Duo { duo: true } => self.duo(prompt, held.map(str::to_owned)).await?,
            Step::Hang { hang: true } => std::future::pending().await,
            Step::Duo { duo: false } | Step::Hang { hang: false } => {}
            Step::Exit { exit } => return Ok(Some(*exit)),
            Step::Result { result } => return self.result(result).map(Some),
            Step::WaitFile { wait_file } => super::appear::wait(wait_file).await?,
            Step::Touch { touch } => {
                std::fs::write(touch, b"")?;
            }
            Step::Spawn { spawn, setsid } => start(spawn, *setsid)?,
            Step::IgnoreSigterm { ignore_sigterm } => self.deaf.to_sigterm.store(*ignore_sigterm, Ordering::SeqCst),
            Step::IgnoreSigint { ignore_sigint } => self.deaf.to_sigint.store(*ignore_sigint, Ordering::SeqCst),
            Step::Stderr { stderr } => super::run::complain(stderr),
            Step::Raw { raw } => events::raw(raw)?,
            Step::Usage { usage } => self.events.set_usage(usage),
        }
        Ok(None)
    }

    /// Deals with the mail of the prompt, and with what else waits.
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
            let (text, is_error) = self.tool("recv", json!({"max": TAKEN_MAX}), Value::Null).await?;
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
                Err(refusal) => self.answer(mail, asker, format!("I cannot ask {}: {refusal}", letter.to)).await,
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

    /// Calls a tool, with all that claude writes around it.
    async fn tool(&mut self, tool: &str, input: Value, cause: Value) -> io::Result<(String, bool)> {
        self.tool_telling(tool, input, cause, None).await
    }

    /// The same, and makes a file exist as soon as the call is with the server.
    async fn tool_telling(
        &mut self,
        tool: &str,
        input: Value,
        mut cause: Value,
        called: Option<&Path>,
    ) -> io::Result<(String, bool)> {
        let name = self.servers.resolve(tool);
        let id = format!("toolu_{}", events::hex(12));
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        self.events.assistant(std::slice::from_ref(&block))?;
        self.session.append("assistant", json!({"role": "assistant", "content": [block]}), Value::Null)?;
        let (text, is_error) = if !self.servers.tools().contains(&name) {
            (format!("<tool_use_error>Error: No such tool available: {name}.</tool_use_error>"), true)
        } else if !self.is_allowed(&name) {
            let message = format!("Claude requested permissions to use {name}, but you haven't granted it yet.");
            self.events.permission_denied(&name, &id, &message)?;
            (message, true)
        } else {
            self.servers.call(&name, input, &id, called).await.unwrap_or_else(|| ("Connection closed".to_owned(), true))
        };
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
            // `mcp__*` allows nothing: the server has to be named.
            Some(beginning) => beginning.matches("__").count() == 2 && tool.starts_with(beginning),
            None => tool == pattern || (pattern.matches("__").count() == 1 && tool.starts_with(&format!("{pattern}__"))),
        })
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.said = text.to_owned();
        let block = json!({"type": "text", "text": text});
        self.events.assistant(std::slice::from_ref(&block))?;
        self.session.append("assistant", json!({"role": "assistant", "content": [block]}), Value::Null)
    }

    /// Writes the result and gives the exit code.
    pub fn result(&mut self, fields: &Map<String, Value>) -> io::Result<u8> {
        self.events.result(&self.said, self.cost_before, fields)?;
        self.session.append("system", Value::Null, json!({"cost": self.events.cost()}))?;
        Ok(u8::from(fields.get("is_error").and_then(Value::as_bool).unwrap_or(false)))
    }

    /// The text of the prompt's message from earlier in the conversation, where the prompt does not repeat it.
    fn held_text(&self, prompt: &str) -> Option<String> {
        let asked = mail::read(prompt).into_iter().next().filter(|mail| mail.body.is_none() && mail.id != 0)?;
        let earlier = self.session.prompts().flat_map(mail::read);
        earlier.filter(|mail| mail.id == asked.id).find_map(|mail| mail.body)
    }
}

/// The number of the message that a send's result tells.
fn receipt(text: &str) -> Option<u64> {
    let (_, after) = text.split_once('#')?;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Starts a process that nobody waits for.
fn start(command: &[String], setsid: bool) -> io::Result<()> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    // Without a session of its own it stays in claude's process group, as any child of a tool does.
    let mut child = if setsid { Command::new("setsid") } else { Command::new(program) };
    if setsid {
        child.arg(program);
    }
    child.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}
