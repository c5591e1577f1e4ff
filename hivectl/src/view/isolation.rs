//! The isolation of agents in words, and what of it needs attention.
//!
//! Invariant: an isolation that the configuration states needs no attention; each other one that is
//! less than a sandbox does.

use hive_proto::v1::Isolation;

use crate::output::text::visible_line;

/// Most agents that are named in one line.
const NAMES_MAX: usize = 5;

/// Returns how an isolation is shown; `None` for one that is not known.
pub(crate) fn label(isolation: Isolation) -> Option<&'static str> {
    match isolation {
        Isolation::Unspecified => None,
        Isolation::None => Some("NOT ISOLATED"),
        Isolation::Partly => Some("PARTLY ISOLATED"),
        Isolation::Uid => Some("isolated (uid)"),
        Isolation::Unit => Some("isolated (unit)"),
        Isolation::Sandbox => Some("isolated (sandbox)"),
    }
}

/// Agents with a harness whose isolation is incomplete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lacking<'a> {
    pub(crate) not_isolated: &'a [String],
    pub(crate) partly_isolated: &'a [String],
    pub(crate) accepted: &'a [String],
}

/// A finding about all agents with the same incomplete isolation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    pub(crate) kind: &'static str,
    pub(crate) sentence: String,
    pub(crate) command: String,
}

impl<'a> Lacking<'a> {
    /// Returns the agents of these that the configuration does not state.
    fn open(&self, agents: &'a [String]) -> Vec<&'a str> {
        agents.iter().filter(|agent| !self.accepted.contains(agent)).map(String::as_str).collect()
    }

    /// Returns how many of these agents the configuration states.
    fn accepted_count(&self, agents: &'a [String]) -> usize {
        agents.len() - self.open(agents).len()
    }

    pub(crate) fn findings(&self) -> Vec<Lack> {
        let not_isolated = (
            "not_isolated",
            "NOT ISOLATED: a shell tool could open the sockets of other agents, and the operator's",
        );
        let partly_isolated = (
            "partly_isolated",
            "PARTLY ISOLATED: something of the host, or of another agent, can be reached",
        );
        let groups = [(self.not_isolated, not_isolated), (self.partly_isolated, partly_isolated)];
        let lack = |(agents, (kind, meaning)): (&'a [String], _)| {
            let open = self.open(agents);
            let named = named(&open)?;
            let agent = if let [only] = open[..] { visible_line(only) } else { "NAME".to_owned() };
            let (sentence, command) =
                (format!("{named} {meaning}"), format!("hivectl agent show {agent}"));
            Some(Lack { kind, sentence, command })
        };
        groups.into_iter().filter_map(lack).collect()
    }

    /// Returns what the configuration accepts, in words; `None`: nothing.
    pub(crate) fn accepted(&self) -> Option<String> {
        let counts = [
            ("none", self.accepted_count(self.not_isolated)),
            ("partly", self.accepted_count(self.partly_isolated)),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(word, count)| format!("{word} for {}", super::counted(count, "agent", "agents")))
            .collect();
        (!counts.is_empty()).then(|| format!("{}, as the configuration accepts", counts.join(", ")))
    }
}

/// Returns the names of agents with the verb that follows; `None` if there are none.
fn named(agents: &[&str]) -> Option<String> {
    let shown: Vec<String> = agents.iter().take(NAMES_MAX).map(|name| visible_line(name)).collect();
    let (names, more) = (shown.join(", "), agents.len() - shown.len());
    match (agents.len(), more) {
        (0, _) => None,
        (1, _) => Some(format!("{names} is")),
        (_, 0) => Some(format!("{names} are")),
        _ => Some(format!("{names} and {more} more are")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn an_accepted_level_needs_no_attention() {
        let (not_isolated, partly_isolated) = (names(&["ada", "bob"]), names(&["cy", "di"]));
        let lines = |accepted: &[String]| {
            let found = Lacking {
                not_isolated: &not_isolated,
                partly_isolated: &partly_isolated,
                accepted,
            }
            .findings();
            found
                .into_iter()
                .map(|lack| (lack.sentence.split(':').next().map(str::to_owned), lack.command))
                .collect::<Vec<_>>()
        };
        let line = |sentence: &str, command: &str| {
            (Some(sentence.to_owned()), format!("hivectl agent show {command}"))
        };
        assert_eq!(
            lines(&[]),
            [line("ada, bob are NOT ISOLATED", "NAME"), line("cy, di are PARTLY ISOLATED", "NAME")]
        );
        assert_eq!(lines(&names(&["ada", "bob", "cy"])), [line("di is PARTLY ISOLATED", "di")]);
        assert_eq!(lines(&names(&["di", "cy", "bob", "ada"])), []);
        let accepted = |accepted: &[String]| {
            Lacking { not_isolated: &not_isolated, partly_isolated: &partly_isolated, accepted }
                .accepted()
        };
        assert_eq!(accepted(&[]), None);
        assert_eq!(
            accepted(&names(&["bob"])).as_deref(),
            Some("none for 1 agent, as the configuration accepts")
        );
        let all = names(&["ada", "bob", "cy"]);
        assert_eq!(
            accepted(&all).as_deref(),
            Some("none for 2 agents, partly for 1 agent, as the configuration accepts")
        );
    }

    #[test]
    fn many_agents_are_counted() {
        let many = names(&["a", "b", "c", "d", "e", "f", "g"]);
        let lacking = Lacking { not_isolated: &many, partly_isolated: &[], accepted: &[] };
        let sentence = &lacking.findings()[0].sentence;
        assert!(sentence.starts_with("a, b, c, d, e and 2 more are NOT ISOLATED: "), "{sentence}");
    }
}
