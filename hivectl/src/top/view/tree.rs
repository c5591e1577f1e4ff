//! The tree of agents: a line each, with as many columns as there is room for.

use hive_core::time::Now;
use hive_proto::v1::{Agent, HarnessState};
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::paint::{Canvas, Cell, Theme};
use crate::output::text::visible_line;
use crate::output::wrap::width;
use crate::top::details::{model_in_use, word};
use crate::top::span;
use crate::top::state::State;
use crate::top::tree::Branch;

/// The longest state is `rate limited`.
const STATE: u16 = 12;
const AGE: u16 = 4;
const COUNT: u16 = 4;
const TURN: u16 = 7;
const MODEL_MAX: u16 = 20;
const NAME_MAX: u16 = 24;
/// From these widths of the screen on there is room for more columns.
const WITH_CONTEXT: u16 = 52;
const WITH_COUNTS: u16 = 64;
const WITH_TURN: u16 = 78;
const WITH_MODEL: u16 = 100;

/// Returns the title of the list, with the number of agents.
pub(super) fn title(shown: usize, all: usize) -> String {
    if all > shown { format!("Agents: {shown} of {all}") } else { format!("Agents: {shown}") }
}

/// Draws the lines of the tree from the first shown one on.
pub(super) fn tree(canvas: &mut Canvas<'_>, state: &State, now: Now, first: usize, area: Rect) {
    let rows = usize::from(area.height);
    let shown: Vec<&Branch> = state.hive.branches.iter().skip(first).take(rows).collect();
    let drawing = Drawing {
        state,
        now,
        screen: area.width,
        theme: canvas.theme,
        widths: widths(state, &shown),
    };
    for (y, branch) in (area.y..area.bottom()).zip(shown) {
        let cells = drawing.cells(branch, &state.hive.agents[branch.agent]);
        canvas.row(Rect { x: area.x + 2, y, width: area.width - 2, height: 1 }, &cells);
    }
}

fn widths(state: &State, shown: &[&Branch]) -> (u16, u16) {
    let widest = |text: &dyn Fn(&Branch) -> usize, most: u16| {
        let widest = shown.iter().map(|branch| text(branch)).max().unwrap_or(0);
        u16::try_from(widest).unwrap_or(u16::MAX).min(most)
    };
    let agent = |branch: &Branch| &state.hive.agents[branch.agent];
    (
        widest(&|branch| width(&branch.stem) + width(&visible_line(&agent(branch).name)), NAME_MAX),
        widest(&|branch| width(&visible_line(model_in_use(agent(branch)))), MODEL_MAX),
    )
}

struct Drawing<'s> {
    state: &'s State,
    now: Now,
    screen: u16,
    theme: Theme,
    widths: (u16, u16),
}

impl Drawing<'_> {
    fn cells(&self, branch: &Branch, agent: &Agent) -> Vec<Cell> {
        let theme = self.theme;
        let (name, width_of_model) = self.widths;
        let state = word(agent.state().as_str_name(), "HARNESS_STATE_");
        let since = span::age_of(agent.state_time, self.now.wall);
        let mut cells = vec![
            Cell::new(name, format!("{}{}", branch.stem, agent.name), theme.plain()),
            Cell::new(STATE, state, self.style(agent.state())),
            Cell::number(AGE, since, theme.plain()),
        ];
        if self.screen >= WITH_CONTEXT {
            cells.push(Cell::number(COUNT, context(agent), theme.plain()));
        }
        if self.screen >= WITH_COUNTS {
            cells.push(Cell::new(COUNT, counted(u64::from(agent.ready_count), 'm'), theme.plain()));
            cells.push(Cell::new(COUNT, counted(u64::from(agent.dead_count), 'd'), theme.bad()));
        }
        if self.screen >= WITH_TURN {
            let ends = self.state.hive.loose_end_count(&agent.name);
            cells.push(Cell::new(
                COUNT,
                counted(u64::try_from(ends).unwrap_or(u64::MAX), 'l'),
                theme.plain(),
            ));
            let turn = match &agent.open_turn_ids[..] {
                [] => "-".to_owned(),
                [turn] => format!("t{turn}"),
                [turn, others @ ..] => format!("t{turn}+{}", others.len()),
            };
            cells.push(Cell::new(TURN, turn, theme.plain()));
        }
        if self.screen >= WITH_MODEL && width_of_model > 0 {
            cells.push(Cell::new(width_of_model, model_in_use(agent), theme.faint()));
        }
        cells.push(Cell::new(0, agent.status_text.as_str(), theme.plain()));
        cells
    }

    fn style(&self, state: HarnessState) -> Style {
        match state {
            HarnessState::Idle => self.theme.good(),
            HarnessState::Starting | HarnessState::Thinking | HarnessState::Compacting => {
                self.theme.busy()
            }
            HarnessState::RateLimited | HarnessState::NeedsLogin | HarnessState::Unavailable => {
                self.theme.bad()
            }
            HarnessState::Offline | HarnessState::Stopped | HarnessState::Unspecified => {
                self.theme.faint()
            }
        }
    }
}

/// Returns how full the context window is, in hundredths.
fn context(agent: &Agent) -> String {
    match (agent.context_tokens, agent.context_window_tokens) {
        (0, _) | (_, 0) => "-".to_owned(),
        (used, window) => format!("{}%", used.saturating_mul(100) / window),
    }
}

fn counted(count: u64, letter: char) -> String {
    match count {
        0 => "-".to_owned(),
        1..=999 => format!("{count}{letter}"),
        _ => format!("++{letter}"),
    }
}
