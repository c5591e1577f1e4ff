//! Declaring: the agents of the configuration file.
//!
//! Invariant: only agents of the file are changed, and of them only the keys that the file changed
//! since it was last applied. So what the operator changed at run time survives a restart.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hive_core::agent::{PolicyPart, Source};
use hive_core::event::{AgentChange, AgentChanged, AgentCreated};
use hive_core::limits::Limits;
use hive_core::name::AgentName;

use super::agents::{check_tree, retire};

use crate::engine::declared::Declared;
use crate::engine::{Engine, Refusal, actor};
use crate::store::agent::{self as agents, AgentRow, NewAgent, Place};
use crate::store::event::{Fact, log};
use crate::store::{AgentKey, Effect, Tx};

impl Engine {
    /// Updates the agents of the file to its present content.
    pub async fn declare(&self, declared: BTreeMap<AgentName, Declared>) -> Result<(), Refusal> {
        let limits = Arc::clone(&self.limits);
        self.store.write(move |tx| declare(tx, &limits, &declared)).await
    }
}

/// Updates the agents of the file to its present content.
pub(in crate::engine) fn declare(
    tx: &Tx<'_>,
    limits: &Limits,
    declared: &BTreeMap<AgentName, Declared>,
) -> Result<(), Refusal> {
    for (name, wanted) in declared {
        create_or_return(tx, name, wanted)?;
    }
    // Parents second: they may be declared after their children.
    for (name, wanted) in declared {
        apply(tx, name, wanted)?;
    }
    // The tree is checked once it is complete: two agents may have changed places.
    let places = agents::places(tx)?;
    check_trees(tx, &places, declared)?;
    for place in places {
        if place.source == Some(Source::File) && !is_named(declared, &place) {
            // Its parent may just have been retired, and it moved up.
            retire(tx, limits, &*agents::by_key(tx, place.key)?)?;
        }
    }
    Ok(())
}

/// Refuses an agent of the file that is below a circle. Each place is visited once.
fn check_trees(
    tx: &Tx<'_>,
    places: &[Place],
    declared: &BTreeMap<AgentName, Declared>,
) -> Result<(), Refusal> {
    let parents: HashMap<AgentKey, Option<AgentKey>> =
        places.iter().map(|place| (place.key, place.parent)).collect();
    let mut rooted = HashSet::new();
    for place in places.iter().filter(|place| is_named(declared, place)) {
        let mut way = HashSet::new();
        let mut next = Some(place.key);
        while let Some(key) = next.filter(|key| !rooted.contains(key)) {
            if !way.insert(key) {
                // It finds the same circle, and names it.
                return check_tree(tx, &*agents::by_key(tx, place.key)?);
            }
            next = parents.get(&key).copied().flatten();
        }
        rooted.extend(way);
    }
    Ok(())
}

fn is_named(declared: &BTreeMap<AgentName, Declared>, place: &Place) -> bool {
    AgentName::parse(&place.name).is_ok_and(|name| declared.contains_key(&name))
}

fn create_or_return(tx: &Tx<'_>, name: &AgentName, wanted: &Declared) -> Result<(), Refusal> {
    match agents::by_name(tx, name.as_str())? {
        None => {
            let new = NewAgent {
                name: name.as_str(),
                source: Source::File,
                parent: None,
                role: &wanted.role,
                model: &wanted.model,
                policy: &wanted.policy,
                declared: None,
            };
            let key = agents::insert(tx, &new)?;
            tx.after_commit(Effect::Changed(key));
            let created = AgentCreated { source: Source::File };
            log(tx, Fact::about(created, key).detail("by the configuration file"));
        }
        // The file is the declared state of the agents that it names, so it restores a name that
        // it, or the operator, had retired.
        Some(row) if row.retired || row.source != Some(Source::File) => {
            let key = row.key;
            agents::update(
                tx,
                &AgentRow {
                    retired: false,
                    source: Some(Source::File),
                    declared: None,
                    ..(*row).clone()
                },
            )?;
            let created = AgentCreated { source: Source::File };
            log(tx, Fact::about(created, key).detail("by the configuration file"));
        }
        Some(_) => {}
    }
    Ok(())
}

fn apply(tx: &Tx<'_>, name: &AgentName, wanted: &Declared) -> Result<(), Refusal> {
    let row = actor::active(tx, name.as_str())?;
    let before: Option<Declared> =
        row.declared.as_deref().and_then(|json| serde_json::from_str(json).ok());
    if before.as_ref() == Some(wanted) {
        return Ok(());
    }
    let (old, mut row) = (Arc::clone(&row), (*row).clone());
    let changed = |unchanged: fn(&Declared, &Declared) -> bool| {
        before.as_ref().is_none_or(|before| !unchanged(before, wanted))
    };
    if changed(|before, now| before.parent == now.parent) {
        row.parent = match &wanted.parent {
            Some(parent) => Some(actor::active(tx, parent.as_str())?.key),
            None => None,
        };
    }
    if changed(|before, now| before.role == now.role) {
        row.role.clone_from(&wanted.role);
    }
    if changed(|before, now| before.model == now.model) {
        row.model.clone_from(&wanted.model);
    }
    if changed(|before, now| before.available_models == now.available_models) {
        row.available_models.clone_from(&wanted.available_models);
        // If the operator chose a model at run time that the file no longer allows, the file
        // overrides it. It overrides no other choice of the operator.
        if !row.available_models.is_empty() && !row.available_models.contains(&row.model) {
            row.model.clone_from(&wanted.model);
        }
    }
    if changed(|before, now| before.on_demand == now.on_demand) {
        row.on_demand = wanted.on_demand;
    }
    for part in PolicyPart::ALL {
        if before.as_ref().is_none_or(|before| !part.same(&before.policy, &wanted.policy)) {
            part.copy(&wanted.policy, &mut row.policy);
        }
    }
    let visible_of = |row: &AgentRow| {
        let AgentRow { parent, role, model, policy, available_models, on_demand, .. } = row.clone();
        (parent, role, model, policy, available_models, on_demand)
    };
    let visible = visible_of(&row) != visible_of(&old);
    row.declared = Some(serde_json::to_string(wanted).expect("a declaration is plain data"));
    agents::update(tx, &row)?;
    if visible && before.is_some() {
        let changed = AgentChanged { change: AgentChange::File };
        log(tx, Fact::about(changed, row.key).detail("by the configuration file"));
    }
    Ok(())
}
