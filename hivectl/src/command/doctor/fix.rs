//! `--fix`: the repairs are made, and reported with the result of the checks after them.
//!
//! Invariant: a repair is `done` only if the later checks have no finding about its file any more.

use super::list::List;
use super::repair::NotRepaired;
use crate::view::check::{Check, Fix, Outcome, State};

/// The repairs that were tried, with their checks.
#[derive(Debug, Default)]
pub(super) struct Tried {
    checks: Vec<Check>,
    /// Whether a repair needs another user.
    pub(super) lacks_rights: bool,
}

impl Tried {
    /// Makes the repairs of a list; with `is_dry` it only finds out which could be made.
    pub(super) fn repair(List { mut checks, repairs }: List, is_dry: bool) -> Self {
        let mut tried = Self::default();
        for (place, repair) in repairs {
            let check = &mut checks[place];
            let result = repair.apply(is_dry);
            tried.lacks_rights |= result.as_ref().is_err_and(NotRepaired::lacks_rights);
            if let Some(fix) = &mut check.fix {
                (fix.outcome, fix.error) = match result {
                    Ok(()) if is_dry => (Outcome::Would, None),
                    Ok(()) => (Outcome::Done, None),
                    Err(error) => (Outcome::Failed, Some(error.to_string())),
                };
            }
            tried.checks.push(check.clone());
        }
        tried
    }

    /// Puts the repairs into the list of the checks after them: each into the finding that is left
    /// of its file, or as a check of its own before all others if none is left.
    pub(super) fn report(self, list: &mut List) {
        let mut fixed = Vec::new();
        for mut check in self.checks {
            let Some(fix) = check.fix.take() else { continue };
            match list
                .checks
                .iter_mut()
                .find_map(|left| left.fix.as_mut().filter(|left| is_of(left, &fix)))
            {
                Some(left) => {
                    *left = fix;
                    if left.outcome == Outcome::Done {
                        left.outcome = Outcome::Failed;
                        left.error = Some("it was made, and the finding is there again".to_owned());
                    }
                }
                None if fix.outcome == Outcome::Would => {}
                None => {
                    let fix = Fix { outcome: Outcome::Done, error: None, ..fix };
                    fixed.push(Check { state: State::Ok, next: None, fix: Some(fix), ..check });
                }
            }
        }
        list.checks.splice(0..0, fixed);
        // Their places have changed.
        list.repairs.clear();
    }
}

/// Returns whether two repairs are the same one.
fn is_of(left: &Fix, right: &Fix) -> bool {
    (left.name, &left.path) == (right.name, &right.path)
}
