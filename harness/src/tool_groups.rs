//! The tool groups of the policy that `HIVE_TOOL_GROUPS` allows.
//!
//! Invariant: the variable narrows the policy's groups and never widens them.

use hive_core::agent::{Policy, TOOL_GROUPS};

/// The groups that the variable names; `None`: it is not set, and the policy applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing(Option<Vec<String>>);

/// An unknown group in the variable.
#[derive(Debug, thiserror::Error)]
#[error("HIVE_TOOL_GROUPS names the unknown tool group `{0}`; known are {known}", known = TOOL_GROUPS.join(", "))]
pub struct UnknownGroup(String);

impl Narrowing {
    /// Checks the groups that the variable names.
    pub fn new(groups: Option<&[String]>) -> Result<Self, UnknownGroup> {
        let Some(groups) = groups else { return Ok(Self(None)) };
        let groups: Vec<String> = groups.iter().map(|group| group.trim().to_owned()).collect();
        match groups.iter().find(|group| !TOOL_GROUPS.contains(&group.as_str())) {
            Some(unknown) => Err(UnknownGroup(unknown.escape_debug().to_string())),
            None => Ok(Self(Some(groups))),
        }
    }

    /// Removes the groups from a policy that the variable does not name.
    pub fn narrow(&self, policy: &mut Policy) {
        if let Some(groups) = &self.0 {
            policy.tool_groups.retain(|group| groups.contains(group));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed(named: Option<&[&str]>, of_policy: &[&str]) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let named = named.map(words);
        let mut policy = Policy { tool_groups: words(of_policy), ..Policy::default() };
        Narrowing::new(named.as_deref()).expect("known groups").narrow(&mut policy);
        policy.tool_groups
    }

    #[test]
    fn groups_are_taken_away_and_never_added() {
        assert_eq!(narrowed(None, &["messaging", "execution"]), ["messaging", "execution"]);
        assert_eq!(
            narrowed(Some(&["messaging", " meta"]), &["messaging", "execution"]),
            ["messaging"]
        );
        assert_eq!(narrowed(Some(&["execution", "web_tools"]), &["messaging"]), [""; 0]);
        assert_eq!(narrowed(Some(&["lifecycle"]), &["messaging", "lifecycle"]), ["lifecycle"]);
        assert_eq!(narrowed(Some(&["messaging", "lifecycle"]), &["messaging"]), ["messaging"]);
    }

    #[test]
    fn an_unknown_group_is_refused_with_its_name() {
        for unknown in ["", "mesaging"] {
            let error = Narrowing::new(Some(&["meta".to_owned(), unknown.to_owned()]))
                .expect_err("refused")
                .to_string();
            assert!(
                error.contains(&format!(
                    "unknown tool group `{unknown}`; known are messaging, inbox"
                )),
                "{error}"
            );
        }
    }
}
