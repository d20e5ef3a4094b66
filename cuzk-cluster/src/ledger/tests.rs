use cuzk_scheduler::priority::Priority;

use super::*;
use crate::message::Failure;
use crate::subject::{Circuit, Fingerprint};

mod at_home;

const STREAM: StreamId = StreamId(7);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(number: u8) -> WorkId {
    WorkId([number; 32])
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn subject(priority: Priority) -> Subject {
    let circuit = Circuit {
        name: name("porep-32GiB"),
        fingerprint: Fingerprint([1; 32]),
    };
    Subject { circuit, priority }
}

fn position(sequence: u64) -> Position {
    let stream = STREAM;
    Position { stream, sequence }
}

fn outcome(number: u8, node: &str, attempt: u32, proof: &[u8]) -> Outcome {
    Outcome {
        id: id(number),
        node: name(node),
        attempt,
        elapsed_ms: 1,
        result: WorkResult::Proof(proof.to_vec()),
    }
}

fn failure(number: u8, node: &str) -> Outcome {
    let result = WorkResult::Failure(Failure::new("no memory"));
    Outcome {
        result,
        ..outcome(number, node, 0, b"")
    }
}

/// Returns all actions but the notes of who has a partition, which have tests of their own.
fn actions(ledger: &mut Ledger) -> Vec<Action> {
    let is_note =
        |action: &Action| matches!(action, Action::Taken { .. } | Action::Returned { .. });
    let all = std::iter::from_fn(|| ledger.next_action());
    all.filter(|action| !is_note(action)).collect()
}

/// Returns a connected ledger with partition 1 in the stream, at position 1.
fn published(priority: Priority) -> Ledger {
    let mut ledger = Ledger::new(Settings::default());
    ledger.connected(true, at(0));
    ledger
        .offer(id(1), subject(priority), false, at(0))
        .unwrap();
    assert_eq!(actions(&mut ledger), [publish(1, 0, &[])]);
    ledger.published(&id(1), 0, position(1), at(0));
    assert!(actions(&mut ledger).is_empty());
    ledger
}

fn publish(number: u8, attempt: u32, excluded: &[&str]) -> Action {
    Action::Publish {
        id: id(number),
        attempt,
        excluded: excluded.iter().copied().map(name).collect(),
    }
}

fn verify(check: u64, node: &str, proof: &[u8]) -> Action {
    Action::Verify {
        id: id(1),
        check: CheckId(check),
        node: name(node),
        proof: proof.to_vec(),
    }
}

fn proved(by: Prover, proof: &[u8]) -> Action {
    let proof = proof.to_vec();
    let end = End::Proved { proof, by };
    Action::End { id: id(1), end }
}

fn acknowledge(receipt: u64) -> Action {
    let receipt = Receipt(receipt);
    Action::Acknowledge { receipt }
}

fn home() -> Action {
    Action::ProveAtHome { id: id(1) }
}

fn withdraw(sequence: u64) -> Action {
    let position = position(sequence);
    Action::Withdraw { position }
}

#[test]
fn the_first_verified_proof_is_the_end_and_later_ones_are_dropped() {
    let mut ledger = published(Priority::Normal);
    ledger.signed(&name("a"), &[id(1)], at(1));
    ledger.signed(&name("b"), &[id(1)], at(1));
    ledger.result(outcome(1, "a", 0, b"a's"), Receipt(10), at(2));
    ledger.result(outcome(1, "c", 0, b"c's"), Receipt(11), at(2));
    assert_eq!(actions(&mut ledger), [verify(0, "a", b"a's")]);
    ledger.verified(&id(1), CheckId(0), true, at(3));
    let end = proved(Prover::Node(name("a")), b"a's");
    let cancel = Action::Cancel { id: id(1) };
    let expected = [end, acknowledge(11), cancel.clone(), acknowledge(10)];
    assert_eq!(actions(&mut ledger), expected);
    assert!(ledger.is_empty());
    ledger.result(outcome(1, "b", 0, b"b's"), Receipt(12), at(4));
    ledger.verified(&id(1), CheckId(0), true, at(4));
    ledger.signed(&name("b"), &[id(1)], at(4));
    assert_eq!(actions(&mut ledger), [acknowledge(12), cancel]);
}

#[test]
fn a_rejected_proof_is_no_end_and_excludes_its_node() {
    let mut ledger = published(Priority::Normal);
    ledger.result(outcome(1, "liar", 0, b"wrong"), Receipt(10), at(1));
    ledger.verified(&id(1), CheckId(0), false, at(1));
    let expected = [
        verify(0, "liar", b"wrong"),
        acknowledge(10),
        withdraw(1),
        publish(1, 1, &["liar"]),
    ];
    assert_eq!(actions(&mut ledger), expected);
    // A second answer to the same question changes nothing.
    ledger.verified(&id(1), CheckId(0), true, at(1));
    assert!(actions(&mut ledger).is_empty());
    assert_eq!(ledger.len(), 1);
}

#[test]
fn failures_on_two_nodes_lead_home_and_the_reason_to_the_caller() {
    let mut ledger = published(Priority::Normal);
    ledger.result(failure(1, "a"), Receipt(10), at(1));
    let expected = [acknowledge(10), withdraw(1), publish(1, 1, &["a"])];
    assert_eq!(actions(&mut ledger), expected);
    ledger.published(&id(1), 1, position(2), at(1));
    ledger.result(failure(1, "b"), Receipt(11), at(2));
    assert_eq!(actions(&mut ledger), [acknowledge(11), withdraw(2), home()]);
    ledger.failed_at_home(&id(1), "row 7 does not hold".to_owned(), at(3));
    let reason = "row 7 does not hold".to_owned();
    let end = End::Failed { reason };
    assert_eq!(actions(&mut ledger), [Action::End { id: id(1), end }]);
}

#[test]
fn without_another_node_a_failed_partition_goes_home_after_a_while() {
    let mut ledger = published(Priority::Normal);
    ledger.result(failure(1, "only"), Receipt(10), at(0));
    ledger.published(&id(1), 1, position(2), at(0));
    actions(&mut ledger);
    ledger.tick(at(59));
    assert!(actions(&mut ledger).is_empty());
    ledger.tick(at(60));
    assert_eq!(actions(&mut ledger), [withdraw(2), home()]);
    ledger.proved_at_home(&id(1), b"proof".to_vec(), at(61));
    assert_eq!(actions(&mut ledger), [proved(Prover::Home, b"proof")]);
}

#[test]
fn a_partition_that_silences_three_nodes_goes_home() {
    let mut ledger = published(Priority::Normal);
    for (node, begun_s) in [("a", 0), ("b", 100), ("c", 200)] {
        assert!(actions(&mut ledger).is_empty());
        ledger.signed(&name(node), &[id(1)], at(begun_s));
        ledger.tick(at(begun_s + 44));
        assert!(actions(&mut ledger).is_empty());
        ledger.tick(at(begun_s + 45));
    }
    assert_eq!(actions(&mut ledger), [withdraw(1), home()]);
}

#[test]
fn critical_work_starts_here_and_outside_and_the_first_proof_counts() {
    let mut ledger = Ledger::new(Settings::default());
    ledger.connected(true, at(0));
    let critical = subject(Priority::Critical);
    ledger.offer(id(1), critical.clone(), true, at(0)).unwrap();
    assert_eq!(actions(&mut ledger), [home(), publish(1, 0, &[])]);
    let again = ledger.offer(id(1), critical, true, at(0));
    assert_eq!(again, Err(Known(id(1))));
    ledger.published(&id(1), 0, position(1), at(0));
    ledger.result(outcome(1, "a", 0, b"a's"), Receipt(10), at(1));
    ledger.verified(&id(1), CheckId(0), true, at(1));
    let stop = Action::StopAtHome { id: id(1) };
    let end = proved(Prover::Node(name("a")), b"a's");
    let expected = [verify(0, "a", b"a's"), end, stop, acknowledge(10)];
    assert_eq!(actions(&mut ledger), expected);
    ledger.proved_at_home(&id(1), b"late".to_vec(), at(2));
    assert!(actions(&mut ledger).is_empty());
}

#[test]
fn urgent_work_goes_home_while_the_server_is_gone_and_sealing_waits() {
    let mut ledger = published(Priority::High);
    ledger.connected(false, at(1));
    assert_eq!(actions(&mut ledger), [home()]);
    ledger
        .offer(id(2), subject(Priority::High), false, at(2))
        .unwrap();
    assert_eq!(actions(&mut ledger), [Action::ProveAtHome { id: id(2) }]);
    ledger
        .offer(id(3), subject(Priority::Normal), false, at(2))
        .unwrap();
    assert!(actions(&mut ledger).is_empty());
    ledger.connected(true, at(3));
    let both = [publish(2, 0, &[]), publish(3, 0, &[])];
    assert_eq!(actions(&mut ledger), both);
}

#[test]
fn an_unconfirmed_publication_is_repeated_with_the_same_number() {
    let mut ledger = Ledger::new(Settings::default());
    ledger.connected(true, at(0));
    ledger
        .offer(id(1), subject(Priority::Normal), false, at(0))
        .unwrap();
    ledger.publish_failed(&id(1), 0, at(0));
    assert_eq!(actions(&mut ledger), [publish(1, 0, &[])]);
    ledger.tick(Duration::from_millis(999));
    assert!(actions(&mut ledger).is_empty());
    ledger.tick(at(1));
    assert_eq!(actions(&mut ledger), [publish(1, 0, &[])]);
}

#[test]
fn what_the_stream_has_lost_is_published_again() {
    let survey = |asked_s, stream, last_sequence, floor| Survey {
        asked_at: at(asked_s),
        stream: StreamId(stream),
        last_sequence,
        floors: vec![(subject(Priority::Normal), floor)],
    };
    // Another stream; a stream that has forgotten its end.
    for lost in [survey(1, 8, 9, 0), survey(1, 6, 9, 0), survey(1, 7, 0, 0)] {
        let mut ledger = published(Priority::Normal);
        ledger.survey(&lost, at(2));
        assert_eq!(actions(&mut ledger), [publish(1, 1, &[])]);
    }
    // A survey from before the publication says nothing.
    let mut ledger = published(Priority::Normal);
    ledger.survey(&survey(0, 7, 0, 0), at(2));
    assert!(actions(&mut ledger).is_empty());
    // A message that was acknowledged without a result.
    ledger.survey(&survey(10, 7, 1, 1), at(10));
    ledger.survey(&survey(19, 7, 1, 1), at(19));
    assert!(
        actions(&mut ledger).is_empty(),
        "the result may be on its way"
    );
    ledger.survey(&survey(20, 7, 1, 1), at(20));
    assert_eq!(actions(&mut ledger), [publish(1, 1, &[])]);
}

#[test]
fn two_partitions_at_one_position_mean_that_the_first_is_lost() {
    let mut ledger = published(Priority::Normal);
    ledger
        .offer(id(2), subject(Priority::High), false, at(1))
        .unwrap();
    ledger.published(&id(2), 0, position(1), at(1));
    let expected = [publish(2, 0, &[]), publish(1, 1, &[])];
    assert_eq!(actions(&mut ledger), expected);
}

#[test]
fn the_window_holds_sealing_back_and_urgent_work_not() {
    let mut ledger = Ledger::new(Settings {
        window: 1,
        ..Settings::default()
    });
    ledger.connected(true, at(0));
    for number in [1, 2] {
        ledger
            .offer(id(number), subject(Priority::Normal), false, at(0))
            .unwrap();
    }
    ledger
        .offer(id(3), subject(Priority::High), false, at(0))
        .unwrap();
    let both = [publish(1, 0, &[]), publish(3, 0, &[])];
    assert_eq!(actions(&mut ledger), both);
    ledger.cancel(&id(1), at(1));
    assert_eq!(actions(&mut ledger), [publish(2, 0, &[])]);
    ledger.published(&id(1), 0, position(1), at(1));
    assert_eq!(
        actions(&mut ledger),
        [withdraw(1)],
        "it was cancelled meanwhile"
    );
}

#[test]
fn the_owner_takes_the_most_urgent_partition_that_no_node_runs() {
    let mut ledger = published(Priority::Normal);
    ledger
        .offer(id(2), subject(Priority::High), false, at(0))
        .unwrap();
    ledger
        .offer(id(3), subject(Priority::Normal), false, at(0))
        .unwrap();
    actions(&mut ledger);
    ledger.published(&id(2), 0, position(2), at(0));
    ledger.signed(&name("a"), &[id(1)], at(0));
    assert_eq!(ledger.take_home(at(1)), Some(id(2)));
    assert_eq!(actions(&mut ledger), [withdraw(2)]);
    assert_eq!(ledger.take_home(at(1)), Some(id(3)));
    assert_eq!(ledger.take_home(at(1)), None);
    ledger.published(&id(3), 0, position(3), at(2));
    assert_eq!(actions(&mut ledger), [withdraw(3)], "it was on its way");
}

#[test]
fn a_node_that_floods_a_partition_with_proofs_is_cut_short() {
    let mut ledger = published(Priority::Normal);
    for receipt in 0..20 {
        ledger.result(outcome(1, "liar", 0, b"wrong"), Receipt(receipt), at(1));
    }
    let all = actions(&mut ledger);
    assert_eq!(all[0], verify(0, "liar", b"wrong"));
    assert_eq!(all.len(), 20 - CANDIDATES_MAX, "the rest is acknowledged");
    for check in 0..=CANDIDATES_MAX as u64 {
        ledger.verified(&id(1), CheckId(check), false, at(1));
    }
    let rests = actions(&mut ledger);
    let is_rest = |action: &&Action| matches!(action, Action::Rest { .. });
    assert_eq!(rests.iter().filter(is_rest).count(), 3);
    assert_eq!(rests.last(), Some(&home()), "it failed often enough");
}
