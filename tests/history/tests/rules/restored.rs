//! Histories with a backup and its restore.

use hive_history::{Cause, Kind, Mark, Origin, Rule};

use crate::world::World;

fn back_up(world: &mut World) {
    world.mark(Mark::BackupBegun { backup: 1 });
    world.mark(Mark::BackedUp { backup: 1 });
}

fn restore(world: &mut World) {
    world.mark(Mark::BrokerDown);
    world.mark(Mark::Restored { backup: 1 });
    world.mark(Mark::BrokerReady);
}

#[test]
fn what_was_done_after_the_backup_is_taken_back() {
    let (mut world, kept) = World::with_message();
    back_up(&mut world);
    let lost = world.send("lost");
    world.receive(kept, "a", 1, None);
    world.ack(kept, "a");
    restore(&mut world);
    world.last.messages.retain(|message| message.id != lost);
    world.last.deliveries.retain(|delivery| delivery.message != lost);
    world.receive(kept, "b", 1, None);
    world.ack(kept, "b");
    world.fine();
}

#[test]
fn what_was_accepted_before_the_backup_is_lost() {
    let (mut world, kept) = World::with_message();
    back_up(&mut world);
    restore(&mut world);
    world.last.messages.clear();
    world.last.deliveries.clear();
    world.breaks(Rule::NothingLost, &format!("message {kept} was accepted, and is not there"));
}

#[test]
fn an_id_is_used_again() {
    let (mut world, _) = World::with_message();
    back_up(&mut world);
    let lost = world.send("lost");
    restore(&mut world);
    for message in world.last.messages.iter_mut().filter(|message| message.id == lost) {
        message.origin = Origin::System(Kind::Unavailable);
    }
    world.breaks(Rule::Restored, "id 2 was given out after a backup, and is there");
}

#[test]
fn a_lease_of_the_backup_settles_after_its_restore() {
    let (mut world, kept) = World::with_message();
    world.receive(kept, "a", 1, None);
    back_up(&mut world);
    restore(&mut world);
    world.ack(kept, "a");
    world.breaks(Rule::Restored, "a lease from before a restore, was not refused");
}

#[test]
fn a_lease_of_the_backup_goes_back_as_restored() {
    let (mut world, kept) = World::with_message();
    world.receive(kept, "a", 1, None);
    back_up(&mut world);
    restore(&mut world);
    world.receive(kept, "b", 1, Some(Cause::Restored));
    world.ack(kept, "b");
    world.fine();
}

#[test]
fn mail_says_that_it_was_restored_and_nothing_was() {
    let (mut world, kept) = World::with_message();
    world.receive(kept, "a", 1, None);
    world.pass(crate::world::LEASE);
    world.receive(kept, "b", 2, Some(Cause::Restored));
    world.ack(kept, "b");
    world.breaks(Rule::Redelivery, "came back as Restored, and nothing did that");
}

#[test]
fn what_was_handed_over_and_settled_during_the_backup_may_be_in_it() {
    for is_acked in [true, false] {
        let (mut world, kept) = World::with_message();
        world.mark(Mark::BackupBegun { backup: 1 });
        world.receive(kept, "a", 1, None);
        if is_acked {
            world.ack(kept, "a");
        } else {
            world.nack(kept, "a");
        }
        world.mark(Mark::BackedUp { backup: 1 });
        restore(&mut world);
        if !is_acked {
            world.receive(kept, "b", 2, Some(Cause::Nacked));
            world.ack(kept, "b");
        }
        world.fine();
    }
}
