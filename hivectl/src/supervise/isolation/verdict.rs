//! The meaning of a harness's report: the isolation to show, its notes, and whether the
//! configuration accepts it.
//!
//! Invariant: the best verdict of a level is the level; a report can only make it worse.

use hive_core::isolation::{Finding, Found, Level, Severity};
use hive_proto::supervisor::Reached;

use crate::supervise::broker::link::Shown;

/// The facts about an agent before its harness reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(super) level: Level,
    pub(super) stated: Option<Level>,
    /// Remarks that do not change the verdict and are shown with it, such as shared directories.
    pub(super) notes: Vec<String>,
}

impl Verdict {
    pub(crate) fn judge(&self, found: Found) -> Shown {
        let worst = found.findings.iter().map(|finding| finding.severity).max();
        let best = match self.level {
            Level::Sandbox => Reached::Sandbox,
            Level::SharedFiles => Reached::Partly,
            Level::None => Reached::None,
        };
        let reached = match (best, worst) {
            (Reached::None, _) | (_, Some(Severity::Broken)) => Reached::None,
            (Reached::Partly, _) | (_, Some(Severity::Partly)) => Reached::Partly,
            (Reached::Sandbox, None) => Reached::Sandbox,
        };
        let sentences: Vec<String> =
            found.findings.into_iter().map(|Finding { sentence, .. }| sentence).collect();
        let refused = self.stated.filter(|stated| !reaches(reached, *stated)).map(|stated| {
            format!(
                "isolation = \"{}\" is not reached: {}; remove the cause, or state a weaker level in hive.toml",
                stated.word(),
                sentences.join("; ")
            )
        });
        let notes = sentences.into_iter().chain(self.notes.iter().cloned()).collect();
        Shown { reached, notes, accepted: self.accepts(reached), refused }
    }

    /// Returns the isolation to show if the report cannot be read.
    pub(crate) fn unknown(&self) -> Shown {
        let sentence = "its harness has not reported what it can reach".to_owned();
        self.judge(Found { findings: vec![Finding { severity: Severity::Broken, sentence }] })
    }

    /// Returns whether the configuration states a level that is reached, so that a weak one is no
    /// finding.
    fn accepts(&self, reached: Reached) -> bool {
        self.stated.is_some_and(|stated| reaches(reached, stated))
    }
}

fn reaches(reached: Reached, stated: Level) -> bool {
    match stated {
        Level::Sandbox => reached == Reached::Sandbox,
        Level::SharedFiles => reached != Reached::None,
        Level::None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(severities: &[Severity]) -> Found {
        let finding = |severity: &Severity| Finding {
            severity: *severity,
            sentence: format!("{severity:?} was found"),
        };
        Found { findings: severities.iter().map(finding).collect() }
    }

    fn judge(level: Level, stated: Option<Level>, severities: &[Severity]) -> Shown {
        Verdict { level, stated, notes: vec!["shares x".to_owned()] }.judge(found(severities))
    }

    #[test]
    fn only_a_sandbox_without_findings_is_isolated() {
        use Severity::{Broken, Partly};
        for (level, severities, reached) in [
            (Level::Sandbox, &[][..], Reached::Sandbox),
            (Level::Sandbox, &[Partly], Reached::Partly),
            (Level::Sandbox, &[Partly, Broken], Reached::None),
            (Level::SharedFiles, &[], Reached::Partly),
            (Level::SharedFiles, &[Broken], Reached::None),
            (Level::None, &[], Reached::None),
        ] {
            assert_eq!(judge(level, None, severities).reached, reached, "{level:?} {severities:?}");
        }
        assert_eq!(judge(Level::Sandbox, None, &[Partly]).notes, ["Partly was found", "shares x"]);
    }

    #[test]
    fn a_stated_level_is_accepted_or_refused() {
        let weak = judge(Level::SharedFiles, Some(Level::SharedFiles), &[Severity::Partly]);
        assert!(weak.accepted && weak.refused.is_none());
        let broken = judge(Level::SharedFiles, Some(Level::SharedFiles), &[Severity::Broken]);
        assert!(
            !broken.accepted
                && broken.refused.is_some_and(
                    |why| why.contains("\"shared_files\" is not reached: Broken was found")
                )
        );
        assert!(judge(Level::Sandbox, Some(Level::Sandbox), &[Severity::Partly]).refused.is_some());
        let best = judge(Level::SharedFiles, None, &[]);
        assert!(!best.accepted && best.refused.is_none());
        assert!(judge(Level::None, Some(Level::None), &[]).accepted);
    }
}
