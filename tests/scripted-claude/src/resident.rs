//! A resident process: one line of stdin is one turn, until stdin ends.
//!
//! Invariant: at most one turn runs. A prompt during a turn waits for its end; the real one instead
//! adds it to the next tool result. The harness writes a prompt only when no turn runs.

use std::collections::VecDeque;
use std::io;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::args::Args;
use super::files::Files;
use super::run::{begin, complain};
use super::script::Rule;
use super::signals::{Heard, Signals, TERMINATED};
use super::stdin;
use super::turn::{Conversation, Deaf, End};

/// A line of stdin.
#[derive(Debug, PartialEq)]
enum Line {
    /// A prompt for the model.
    Prompt(String),
    /// A request to the process; its id and its content.
    Control(String, Value),
    /// An unknown line.
    Other,
}

/// The result of the wait for a turn's end.
enum Ended {
    ByItself(End),
    /// By a control request with this id.
    Interrupted(String),
    Signalled(Heard),
}

/// Runs turns until stdin ends; returns the exit code.
pub(super) async fn serve(args: &Args, files: &Files, rules: &[Rule]) -> io::Result<u8> {
    let deaf = Deaf::default();
    let mut signals = Signals::listen(&deaf)?;
    let mut input = stdin::lines();
    let Some(mut conversation) = begin(args, files, &deaf, &mut signals).await? else {
        return Ok(TERMINATED);
    };
    let mut waiting = VecDeque::new();
    let code = loop {
        let line = match waiting.pop_front() {
            Some(line) => line,
            None => tokio::select! {
                line = input.recv() => match line {
                    Some(line) => line,
                    None => break 0,
                },
                heard = signals.heard() => break if heard == Heard::Terminate { TERMINATED } else { 0 },
            },
        };
        match parse(&line) {
            Err(words) => {
                complain(&words);
                break 1;
            }
            Ok(Line::Other) => {}
            Ok(Line::Control(id, request)) => control(&mut conversation, &id, &request)?,
            Ok(Line::Prompt(prompt)) => {
                match turn(
                    &mut conversation,
                    &prompt,
                    rules,
                    &mut signals,
                    &mut input,
                    &mut waiting,
                )
                .await?
                {
                    Ended::ByItself(End::Result(_)) => {}
                    Ended::ByItself(End::Exit(code)) => break code,
                    Ended::Interrupted(id) => {
                        success(&id, json!({"still_queued": []}))?;
                        conversation.interrupted().await?;
                    }
                    Ended::Signalled(Heard::Terminate) => break TERMINATED,
                    Ended::Signalled(Heard::Interrupt) => {
                        conversation.interrupted().await?;
                        break 0;
                    }
                }
            }
        }
    };
    if code == TERMINATED {
        conversation.servers.interrupt();
    } else {
        conversation.servers.stop().await;
    }
    Ok(code)
}

/// Runs one turn; lines that arrive during it wait, except for an interrupt.
async fn turn(
    conversation: &mut Conversation,
    prompt: &str,
    rules: &[Rule],
    signals: &mut Signals,
    input: &mut UnboundedReceiver<String>,
    waiting: &mut VecDeque<String>,
) -> io::Result<Ended> {
    let work = conversation.turn(prompt, rules);
    tokio::pin!(work);
    loop {
        tokio::select! {
            end = &mut work => return Ok(Ended::ByItself(end?)),
            heard = signals.heard() => return Ok(Ended::Signalled(heard)),
            Some(line) = input.recv() => match parse(&line) {
                Ok(Line::Control(id, request)) if request["subtype"] == "interrupt" => return Ok(Ended::Interrupted(id)),
                Ok(_) | Err(_) => waiting.push_back(line),
            },
        }
    }
}

/// Reads a line; the error is what claude writes before it exits.
fn parse(line: &str) -> Result<Line, String> {
    if line.trim().is_empty() {
        return Ok(Line::Other);
    }
    let value: Value = serde_json::from_str(line).map_err(|_| {
        format!(
            "Error parsing streaming input line (type=unknown, {} chars): SyntaxError",
            line.chars().count()
        )
    })?;
    match value["type"].as_str() {
        Some("user") => {
            let role = value["message"]["role"].as_str().unwrap_or("undefined");
            if role != "user" {
                return Err(format!("Error: Expected message role 'user', got '{role}'"));
            }
            Ok(Line::Prompt(text(&value["message"]["content"])))
        }
        Some("control_request") => Ok(Line::Control(
            value["request_id"].as_str().unwrap_or_default().to_owned(),
            value["request"].clone(),
        )),
        Some(_) | None => Ok(Line::Other),
    }
}

/// Returns the text of a content that is a text or a list of blocks.
fn text(content: &Value) -> String {
    let blocks =
        content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    content.as_str().map_or_else(|| blocks.collect::<Vec<_>>().join("\n"), str::to_owned)
}

/// Handles a control request while no turn runs.
fn control(conversation: &mut Conversation, id: &str, request: &Value) -> io::Result<()> {
    let subtype = request["subtype"].as_str().unwrap_or_default();
    let answer = match subtype {
        "interrupt" => json!({"still_queued": []}),
        "initialize" => json!({}),
        "set_model" => {
            conversation.events.set_model(request["model"].as_str().unwrap_or("sonnet"));
            let model = conversation.events.model().to_owned();
            let words =
                format!("<local-command-stdout>Set model to `{model}`</local-command-stdout>");
            let message = json!({"role": "user", "content": words});
            conversation
                .events
                .line(json!({"type": "user", "message": message, "parent_tool_use_id": null, "isReplay": true}))?;
            json!({"model": model})
        }
        "mcp_status" => {
            let status = |connected: bool| if connected { "connected" } else { "failed" };
            let servers = conversation.servers.states().into_iter();
            let servers: Vec<Value> =
                servers.map(|(name, up)| json!({"name": name, "status": status(up)})).collect();
            json!({"mcpServers": servers})
        }
        "get_context_usage" => {
            let (used, window) = (conversation.session.context(), conversation.events.window());
            json!({"totalTokens": used, "maxTokens": window, "rawMaxTokens": window})
        }
        unknown => {
            let error = format!("Unsupported control request subtype: {unknown}");
            let response = json!({"subtype": "error", "request_id": id, "error": error, "error_code": "unsupported_request"});
            return respond(&response);
        }
    };
    success(id, answer)
}

fn success(id: &str, response: Value) -> io::Result<()> {
    respond(&json!({"subtype": "success", "request_id": id, "response": response}))
}

/// Writes a response; such a line has neither a session nor an id of its own.
fn respond(response: &Value) -> io::Result<()> {
    super::events::raw(&json!({"type": "control_response", "response": response}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_by_claude() {
        let user = |content: Value| {
            json!({"type": "user", "message": {"role": "user", "content": content}}).to_string()
        };
        assert_eq!(parse(&user(json!("hi"))), Ok(Line::Prompt("hi".to_owned())));
        let blocks = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        assert_eq!(parse(&user(blocks)), Ok(Line::Prompt("a\nb".to_owned())));
        let request = json!({"subtype": "interrupt"});
        let line =
            json!({"type": "control_request", "request_id": "r1", "request": request}).to_string();
        assert_eq!(parse(&line), Ok(Line::Control("r1".to_owned(), request)));
        assert_eq!(parse(r#"{"type":"novelty"}"#), Ok(Line::Other));
    }

    #[test]
    fn bad_lines_are_reported_as_by_claude() {
        let told = |line: &str| parse(line).expect_err("it is bad");
        assert_eq!(
            told("no json at all!"),
            "Error parsing streaming input line (type=unknown, 15 chars): SyntaxError"
        );
        assert_eq!(
            told(r#"{"type":"user"}"#),
            "Error: Expected message role 'user', got 'undefined'"
        );
    }
}
