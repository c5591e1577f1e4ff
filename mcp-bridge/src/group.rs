//! Tool groups: the tools that an agent is offered.
//!
//! What it is not: a permission. The broker enforces those; a group only decides which tools are
//! listed.

use std::collections::BTreeSet;

/// The tool groups of this bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Sending and receiving.
    Messaging,
    /// Loose ends, reminders and the next turn.
    Inbox,
    /// Agents and statuses.
    Meta,
    /// Shell tasks; the server `bash` offers them.
    Execution,
    /// Starting and stopping the agents below the agent; in no default policy.
    Lifecycle,
    /// Asking the operator to approve changes; in no default policy.
    Approvals,
    /// Reading logs; in no default policy.
    Diagnostics,
    /// Schedules; in no default policy.
    Scheduling,
}

impl Group {
    const ALL: [Self; 8] = [
        Self::Messaging,
        Self::Inbox,
        Self::Meta,
        Self::Execution,
        Self::Lifecycle,
        Self::Approvals,
        Self::Diagnostics,
        Self::Scheduling,
    ];

    /// Returns the name of the group.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Messaging => "messaging",
            Self::Inbox => "inbox",
            Self::Meta => "meta",
            Self::Execution => "execution",
            Self::Lifecycle => hive_core::agent::LIFECYCLE,
            Self::Approvals => hive_core::agent::APPROVALS,
            Self::Diagnostics => hive_core::agent::DIAGNOSTICS,
            Self::Scheduling => hive_core::agent::SCHEDULING,
        }
    }
}

/// Parses a comma-separated list. Groups without tools here (`web_tools`) and unknown groups are
/// ignored.
#[must_use]
pub fn parse(list: &str) -> BTreeSet<Group> {
    let names: BTreeSet<&str> = list.split(',').map(str::trim).collect();
    Group::ALL.into_iter().filter(|group| names.contains(group.as_str())).collect()
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
        assert_eq!(
            parse("web_tools,lifecycle,approvals,diagnostics,scheduling"),
            BTreeSet::from([
                Group::Lifecycle,
                Group::Approvals,
                Group::Diagnostics,
                Group::Scheduling
            ])
        );
        assert!(parse("").is_empty());
    }

    #[test]
    fn every_group_is_one_that_a_policy_knows() {
        for group in Group::ALL {
            assert!(hive_core::agent::TOOL_GROUPS.contains(&group.as_str()));
        }
    }
}
