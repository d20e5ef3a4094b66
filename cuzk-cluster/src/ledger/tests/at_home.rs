//! Partitions between the owner and the nodes: who has them, and who begins them.

use super::*;

fn all(ledger: &mut Ledger) -> Vec<Action> {
    std::iter::from_fn(|| ledger.next_action()).collect()
}

fn taken() -> Action {
    Action::Taken { id: id(1) }
}

fn returned() -> Action {
    Action::Returned { id: id(1) }
}

#[test]
fn the_owner_hears_when_nodes_have_a_partition_and_when_none_has() {
    let mut ledger = published(Priority::Normal);
    ledger.signed(&name("a"), &[id(1)], at(1));
    ledger.signed(&name("b"), &[id(1)], at(1));
    ledger.signed(&name("a"), &[id(1)], at(2));
    assert_eq!(all(&mut ledger), [taken()], "once");
    ledger.tick(at(46));
    assert!(all(&mut ledger).is_empty(), "one node still runs it");
    ledger.tick(at(47));
    assert_eq!(all(&mut ledger), [returned()]);
    // The first that it hears of a node may be the proof.
    ledger.result(outcome(1, "liar", 0, b"wrong"), Receipt(10), at(50));
    assert_eq!(all(&mut ledger), [verify(0, "liar", b"wrong"), taken()]);
    ledger.verified(&id(1), CheckId(0), false, at(50));
    assert_eq!(all(&mut ledger)[0], returned());
    assert_eq!(ledger.others(&id(1)), Others::HaveFailed);
}

#[test]
fn a_partition_that_the_owner_begins_is_withdrawn_unless_both_are_to_prove_it() {
    let mut ledger = published(Priority::Normal);
    ledger.begun_at_home(&id(1), at(1));
    assert_eq!(all(&mut ledger), [withdraw(1)]);
    // A node that had begun it meanwhile goes on, and the first proof counts.
    ledger.signed(&name("a"), &[id(1)], at(1));
    assert!(all(&mut ledger).is_empty());
    ledger.result(outcome(1, "a", 0, b"a's"), Receipt(10), at(2));
    ledger.verified(&id(1), CheckId(0), true, at(2));
    let end = proved(Prover::Node(name("a")), b"a's");
    assert!(all(&mut ledger).contains(&end));

    let mut ledger = Ledger::new(Settings::default());
    ledger.connected(true, at(0));
    let critical = subject(Priority::Critical);
    ledger.offer(id(1), critical, true, at(0)).unwrap();
    ledger.published(&id(1), 0, position(1), at(0));
    all(&mut ledger);
    ledger.begun_at_home(&id(1), at(1));
    assert!(all(&mut ledger).is_empty(), "it stays outside, too");
}

#[test]
fn urgent_work_that_no_node_begins_is_proved_here_and_stays_outside() {
    let mut ledger = published(Priority::High);
    ledger.tick(at(4));
    assert!(all(&mut ledger).is_empty());
    ledger.tick(at(5));
    assert_eq!(all(&mut ledger), [home()], "not withdrawn");
    assert_eq!(ledger.others(&id(1)), Others::MayProve);

    let mut ledger = published(Priority::High);
    ledger.signed(&name("a"), &[id(1)], at(4));
    ledger.tick(at(40));
    assert_eq!(all(&mut ledger), [taken()]);
    ledger.tick(at(49));
    assert_eq!(all(&mut ledger), [returned()]);
    ledger.tick(at(54));
    assert_eq!(all(&mut ledger), [withdraw(1), home()], "it fell silent");

    let mut ledger = published(Priority::High);
    ledger.result(failure(1, "only"), Receipt(10), at(1));
    ledger.published(&id(1), 1, position(2), at(1));
    all(&mut ledger);
    ledger.tick(at(6));
    assert_eq!(all(&mut ledger), [withdraw(2), home()], "it failed");

    let mut ledger = published(Priority::Normal);
    ledger.tick(at(10_000));
    assert!(all(&mut ledger).is_empty(), "sealing waits");
}

#[test]
fn a_partition_that_cannot_be_published_is_proved_here() {
    let mut ledger = Ledger::new(Settings::default());
    ledger.connected(true, at(0));
    let normal = subject(Priority::Normal);
    ledger.offer(id(1), normal, false, at(0)).unwrap();
    all(&mut ledger);
    ledger.unpublishable(&id(1), at(1));
    assert_eq!(all(&mut ledger), [home()]);
    assert_eq!(ledger.others(&id(1)), Others::MayNot);
    ledger.publish_failed(&id(1), 0, at(1));
    ledger.tick(at(10));
    assert!(all(&mut ledger).is_empty(), "it is not tried again");
}
