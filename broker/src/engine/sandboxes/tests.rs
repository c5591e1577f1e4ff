//! The permissions of a peer by its place, and the display of an isolation.

use hive_core::agent::Isolation;

use super::*;

/// Numbers of namespaces.
const HOST: u64 = 1;
const ADA: u64 = 10;
const BOB: u64 = 20;
const NEWER: u64 = 30;
const TASK: u64 = 90;

fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a good name")
}

fn namespace(lineage: &[u64]) -> PidNamespace {
    PidNamespace::made_up(lineage)
}

fn within(lineage: &[u64]) -> Place {
    Place::In(namespace(lineage))
}

fn supervised(knows_peers: bool) -> Sandboxes {
    let sandboxes = Sandboxes::default();
    sandboxes.supervise(namespace(&[HOST]), knows_peers);
    sandboxes
}

/// `ada` and `bob` in sandboxes, `eve` unconfined.
fn described() -> Sandboxes {
    let sandboxes = supervised(true);
    sandboxes.confine(&name("ada"), namespace(&[ADA, HOST])).expect("confined");
    sandboxes.confine(&name("bob"), namespace(&[BOB, HOST])).expect("confined");
    sandboxes.leave_unconfined(&name("eve")).expect("noted");
    sandboxes.complete();
    sandboxes
}

#[test]
fn without_a_supervisor_nothing_is_decided_here() {
    let sandboxes = Sandboxes::default();
    for place in
        [within(&[ADA, HOST]), Place::Gone, Place::Outside, Place::Hidden("EPERM".to_owned())]
    {
        assert_eq!(sandboxes.on_agent_socket(&name("ada"), &place), Ok(Scope::Everything));
        assert_eq!(sandboxes.on_operator_socket(&place, true), Ok(()));
    }
    assert_eq!(
        sandboxes.confine(&name("ada"), namespace(&[ADA, HOST])),
        Err(RegisterError::NotSupervised)
    );
    assert_eq!(sandboxes.leave_unconfined(&name("ada")), Err(RegisterError::NotSupervised));
}

#[test]
fn until_all_agents_are_described_their_sockets_wait() {
    let sandboxes = supervised(true);
    sandboxes.confine(&name("ada"), namespace(&[ADA, HOST])).expect("confined");
    for place in [within(&[ADA, HOST]), within(&[HOST])] {
        assert_eq!(sandboxes.on_agent_socket(&name("ada"), &place), Err(Denied::Starting));
    }
    // The broker does not know yet which peer is a sandbox.
    assert_eq!(sandboxes.on_operator_socket(&within(&[HOST]), true), Ok(()));
    assert_eq!(sandboxes.on_operator_socket(&within(&[TASK, HOST]), true), Err(Denied::Starting));
    assert_eq!(
        sandboxes.on_operator_socket(&within(&[ADA, HOST]), true),
        Err(Denied::NotTheOperator)
    );
    sandboxes.abandon();
    assert_eq!(
        sandboxes.on_agent_socket(&name("ada"), &within(&[ADA, HOST])),
        Err(Denied::Abandoned)
    );
    sandboxes.complete();
    assert_eq!(
        sandboxes.on_agent_socket(&name("ada"), &within(&[ADA, HOST])),
        Ok(Scope::Everything)
    );
}

#[test]
fn on_an_agents_socket_the_namespace_decides() {
    let sandboxes = described();
    let agent = name("ada");
    let outside = || Err(Denied::NotInSandbox { agent: agent.clone() });
    let hidden = Denied::Hidden { why: "EPERM".to_owned() };
    for (place, wanted) in [
        (within(&[ADA, HOST]), Ok(Scope::Everything)),
        (within(&[TASK, ADA, HOST]), Ok(Scope::Limited)),
        (within(&[TASK + 1, TASK, ADA, HOST]), Ok(Scope::Limited)),
        (within(&[HOST]), Ok(Scope::Limited)),
        (within(&[BOB, HOST]), outside()),
        (within(&[TASK, BOB, HOST]), outside()),
        (within(&[TASK, HOST]), outside()),
        (within(&[TASK]), outside()),
        (Place::Outside, outside()),
        (Place::Gone, Err(Denied::Gone)),
        (Place::Hidden("EPERM".to_owned()), Err(hidden)),
    ] {
        assert_eq!(sandboxes.on_agent_socket(&agent, &place), wanted, "{place:?}");
    }
}

#[test]
fn an_unconfined_agent_has_its_uids_only_and_an_unknown_one_the_host() {
    let sandboxes = described();
    for place in [within(&[HOST]), within(&[ADA, HOST]), Place::Gone, Place::Outside] {
        assert_eq!(sandboxes.on_agent_socket(&name("eve"), &place), Ok(Scope::Everything));
    }
    let stranger = name("stranger");
    assert_eq!(sandboxes.on_agent_socket(&stranger, &within(&[HOST])), Ok(Scope::Limited));
    assert_eq!(
        sandboxes.on_agent_socket(&stranger, &within(&[ADA, HOST])),
        Err(Denied::NotRunning { agent: stranger.clone() })
    );
}

#[test]
fn a_new_sandbox_ends_the_earlier_one() {
    let sandboxes = described();
    let ada = name("ada");
    let ended = sandboxes.ended(&ada).expect("registered");
    sandboxes.confine(&ada, namespace(&[NEWER, HOST])).expect("confined");
    assert!(ended.is_cancelled());
    assert!(!sandboxes.ended(&ada).expect("registered").is_cancelled());
    assert_eq!(sandboxes.on_agent_socket(&ada, &within(&[NEWER, HOST])), Ok(Scope::Everything));
    let earlier = sandboxes.on_agent_socket(&ada, &within(&[ADA, HOST]));
    assert_eq!(earlier, Err(Denied::NotInSandbox { agent: ada.clone() }));
    assert_eq!(
        sandboxes.on_operator_socket(&within(&[ADA, HOST]), true),
        Err(Denied::NotTheOperator)
    );
    sandboxes.remove(&ada);
    assert!(sandboxes.ended(&ada).is_none());
    assert_eq!(sandboxes.on_agent_socket(&ada, &within(&[HOST])), Ok(Scope::Limited));
    let gone = sandboxes.on_agent_socket(&ada, &within(&[NEWER, HOST]));
    assert_eq!(gone, Err(Denied::NotRunning { agent: ada.clone() }));
}

#[test]
fn on_the_operators_socket_no_sandbox_is_let_in() {
    let sandboxes = described();
    let hidden = || Place::Hidden("EPERM".to_owned());
    for (place, is_own_user, wanted) in [
        (within(&[HOST]), true, Ok(())),
        (within(&[TASK, HOST]), true, Ok(())),
        (Place::Outside, true, Ok(())),
        (within(&[ADA, HOST]), true, Err(Denied::NotTheOperator)),
        (within(&[TASK, BOB, HOST]), true, Err(Denied::NotTheOperator)),
        (Place::Gone, true, Err(Denied::Gone)),
        (hidden(), true, Err(Denied::Hidden { why: "EPERM".to_owned() })),
        (hidden(), false, Ok(())),
    ] {
        assert_eq!(sandboxes.on_operator_socket(&place, is_own_user), wanted, "{place:?}");
    }
}

#[test]
fn earlier_sandboxes_are_remembered_up_to_a_bound() {
    let sandboxes = described();
    let ada = name("ada");
    let count = u64::try_from(EARLIER_MAX).expect("few");
    for number in 0..=count {
        sandboxes.confine(&ada, namespace(&[1000 + number, HOST])).expect("confined");
    }
    assert_eq!(sandboxes.read().earlier.len(), EARLIER_MAX);
    // Of the last one it is known where it is, of the ones before that it was a sandbox, and the
    // first one is forgotten.
    for (number, wanted) in [(1000 + count, false), (1000, false), (ADA, true)] {
        assert_eq!(
            sandboxes.on_operator_socket(&within(&[number, HOST]), true).is_ok(),
            wanted,
            "{number}"
        );
    }
}

#[test]
fn a_namespace_outside_of_the_agents_sandbox_is_refused() {
    let sandboxes = described();
    let agent = name("mallory");
    for (lineage, wanted) in [
        (&[HOST][..], RegisterError::OwnNamespace(agent.clone())),
        (&[TASK], RegisterError::ForeignNamespace(agent.clone())),
        (&[ADA, HOST], RegisterError::SharedNamespace { agent: agent.clone(), owner: name("ada") }),
    ] {
        assert_eq!(sandboxes.confine(&agent, namespace(lineage)), Err(wanted));
    }
    let report = Report { reached: Isolation::Sandbox, notes: Vec::new(), accepted: true };
    assert_eq!(sandboxes.report(&agent, report), Err(RegisterError::UnknownAgent(agent.clone())));
    assert!(sandboxes.ended(&agent).is_none());
}

#[test]
fn an_isolation_is_shown_as_reported_until_the_next_sandbox() {
    let sandboxes = described();
    let ada = name("ada");
    let shown = || sandboxes.shown("ada", Some(Isolation::Uid));
    let unreported = shown();
    assert_eq!(
        (unreported.isolation, unreported.accepted, unreported.notes.len()),
        (Some(Isolation::None), Some(false), 1)
    );
    let note = "the socket @x can be reached".to_owned();
    sandboxes
        .report(
            &ada,
            Report { reached: Isolation::Partly, notes: vec![note.clone()], accepted: true },
        )
        .expect("stored");
    assert_eq!(
        shown(),
        Shown { isolation: Some(Isolation::Partly), notes: vec![note], accepted: Some(true) }
    );
    sandboxes.confine(&ada, namespace(&[NEWER, HOST])).expect("confined");
    assert_eq!(shown(), unreported);
    sandboxes.remove(&ada);
    assert_eq!(shown(), Shown { isolation: Some(Isolation::Uid), ..Shown::default() });
}

#[test]
fn an_unconfined_agent_is_not_isolated_unless_its_user_is_its_own() {
    let sandboxes = described();
    for (seen, wanted) in [
        (None, Isolation::None),
        (Some(Isolation::None), Isolation::None),
        (Some(Isolation::Uid), Isolation::Uid),
    ] {
        assert_eq!(
            sandboxes.shown("eve", seen),
            Shown { isolation: Some(wanted), ..Shown::default() }
        );
    }
}

#[test]
fn notes_are_bounded_and_name_the_race_of_an_older_kernel() {
    let sandboxes = supervised(false);
    let ada = name("ada");
    sandboxes.confine(&ada, namespace(&[ADA, HOST])).expect("confined");
    sandboxes.leave_unconfined(&name("eve")).expect("noted");
    let report =
        Report { reached: Isolation::Sandbox, notes: vec!["ä".repeat(1000); 100], accepted: true };
    sandboxes.report(&ada, report).expect("stored");
    let notes = sandboxes.shown("ada", None).notes;
    assert_eq!((notes.len(), notes[0].chars().count()), (33, 400));
    assert!(notes.last().is_some_and(|note| note.contains("SO_PEERPIDFD")), "{notes:?}");
    assert_eq!(sandboxes.shown("eve", None).notes, [""; 0]);
}
