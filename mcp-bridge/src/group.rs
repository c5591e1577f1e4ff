//! Tool groups: which tools an agent is offered.
//!
//! What it is not: a permission. The broker enforces those; here a group only decides what is
//! listed.

use std::collections::BTreeSet;

/// The groups whose tools this bridge has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Sending and receiving.
    Messaging,
    /// What waits, and when the next turn comes.
    Inbox,
    /// Who is who.
    Meta,
    /// Shell tasks; they are offered by the server `bash`.
    Execution,
}

impl Group {
    const ALL: [Self; 4] = [Self::Messaging, Self::Inbox, Self::Meta, Self::Execution];

    /// The group's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Messaging => "messaging",
            Self::Inbox => "inbox",
            Self::Meta => "meta",
            Self::Execution => "execution",
        }
    }
}

/// Reads a comma list. Groups whose tools live elsewhere (`web_tools`) or that this version does
/// not know are passed over.
#[must_use]
pub fn parse(list: &str) -> BTreeSet<Group> {
    let words: BTreeSet<&str> = list.split(',').map(str::trim).collect();
    Group::ALL.into_iter().filter(|group| words.contains(group.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gives_the_groups_this_bridge_has() {
        assert_eq!(
            parse(" meta,execution, messaging,nonsense"),
            BTreeSet::from([Group::Messaging, Group::Meta, Group::Execution])
        );
        assert_eq!(parse(&hive_core::agent::DEFAULT_TOOL_GROUPS.join(",")).len(), 4);
        assert!(parse("").is_empty());
    }

    #[test]
    fn every_group_is_one_that_a_policy_knows() {
        for group in Group::ALL {
            assert!(hive_core::agent::TOOL_GROUPS.contains(&group.as_str()));
        }
    }
}
