//! `hivectl turn show`: a turn and its output.

use clap::Args;
use hive_proto::v1::EventKind;

use crate::complete;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::feed::turn::TurnFeed;
use crate::feed::{Feed, Step};
use crate::fetch;
use crate::interrupt::until_interrupted;
use crate::output::note;
use crate::output::text::visible_line;
use crate::view::turn::Turn;
use crate::view::turn_event::TurnEvent;

/// Turns that one read of the newest ones returns.
const PAGE_TURNS: usize = 100;

const AFTER_HELP: &str = "\
Examples:
  hivectl turn show ada             the turn that ada runs, or ran last
  hivectl turn show ada --follow    what ada does, turn by turn, until Ctrl-C
  hivectl turn show 12 --output     what turn 12 said, as far as it is kept
  hivectl turn show 12 --raw | jq   claude's own lines";

/// Show a turn; with --output, --follow or --raw its output.
///
/// A number is a turn; a name is an agent, and means its open turn, or else its last one. Without
/// either it is the newest turn of the hive.
///
/// The output is shown as text: the model's text, each call of a tool with its arguments and the
/// beginning of its result, errors, retries, rate limits, compactions and notes of the harness. At
/// the end come outcome, duration, tokens and cost. With --raw claude's lines go to stdout
/// unchanged, and everything else to stderr; on a terminal control characters are still made
/// visible. As JSON, all three print the lines only, one object each.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Show {
    /// A turn, or an agent
    #[arg(value_name = "TURN|AGENT", add = complete::turns_and_agents())]
    subject: Option<String>,
    /// Show the output that is kept
    #[arg(long)]
    output: bool,
    /// Show the output, and go on with it until the turn ends; of an agent, with its next turns
    /// too, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Show the output as it came
    #[arg(long, conflicts_with = "json")]
    raw: bool,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        // Names begin with a letter, so a number is no name.
        let turn_id = self.subject.as_deref().and_then(|subject| subject.parse::<u64>().ok());
        let agent = if turn_id.is_none() { self.subject.clone() } else { None };
        if let (Some(agent), true) = (&agent, self.follow) {
            return until_interrupted(self.agent(context, &broker, agent)).await.unwrap_or(Ok(()));
        }
        let turn = match turn_id {
            Some(turn_id) => fetch::turn(&broker, turn_id).await?,
            None => {
                let newest =
                    fetch::turns(&broker, agent.as_deref().unwrap_or_default(), 1).await?.pop();
                newest.ok_or(Failure::NoTurn { agent })?
            }
        };
        if self.output || self.follow || self.raw {
            return until_interrupted(self.turn(context, &broker, &turn)).await.unwrap_or(Ok(()));
        }
        context.out.one(&turn)
    }

    /// Prints the output of a turn, then how it ended.
    async fn turn(
        &self,
        context: &mut Context,
        broker: &Broker,
        shown: &Turn,
    ) -> Result<(), Failure> {
        let words = !self.raw && !context.out.json;
        if words {
            let beginning = shown.beginning(&context.out.style);
            context.out.line(&beginning)?;
        }
        let mut feed = TurnFeed::open(context, broker, shown.id, self.follow).await?;
        let mut silent = true;
        while let Some(events) = feed.next().await? {
            silent = false;
            for event in events {
                self.event(context, &TurnEvent::new(shown.id, event))?;
            }
        }
        if silent {
            note("none of its output is kept");
        }
        if words {
            // The broker may have restarted.
            let ended =
                fetch::turn::<Turn>(feed.broker(), shown.id).await?.summary(&context.out.style);
            context.out.line(&ended)?;
        }
        Ok(())
    }

    fn event(&self, context: &mut Context, event: &TurnEvent) -> Result<(), Failure> {
        if context.out.json {
            return context.out.one(event);
        }
        if self.raw {
            let line = context.out.style.body(&event.line);
            if event.stream.as_deref() == Some("stdout") {
                return context.out.line(&line);
            }
            note(&visible_line(&event.line));
            return Ok(());
        }
        event.render(&context.out.style).map_or(Ok(()), |text| context.out.line(&text))
    }

    async fn agent(
        &self,
        context: &mut Context,
        broker: &Broker,
        agent: &str,
    ) -> Result<(), Failure> {
        // The watch begins before the first read, so that no turn begins between them.
        let mut feed = Feed::open(context, broker, agent, None).await?;
        let mut broker = broker.clone();
        let mut newest: Vec<Turn> = fetch::turns(&broker, agent, 1).await?;
        let mut shown = 0;
        loop {
            // The oldest line that was not shown is first.
            newest.retain(|turn| turn.id > shown);
            if let Some(next) = newest.pop() {
                self.turn(context, &broker, &next).await?;
                shown = next.id;
                continue;
            }
            note(&format!("waiting for the next turn of {agent}"));
            loop {
                match feed.next().await? {
                    Step::Event(event)
                        if event.kind() == EventKind::TurnBegun && event.turn_id > shown =>
                    {
                        break;
                    }
                    Step::Event(_) => {}
                    Step::Gap => break,
                }
            }
            broker = context.broker().await?;
            newest = fetch::turns(&broker, agent, PAGE_TURNS).await?;
        }
    }
}
