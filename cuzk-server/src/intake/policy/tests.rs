use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;

/// The budget of the tests: 900 MiB are for all, 300 MiB for PoSts.
const TOTAL: u64 = 1200 * MIB;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A policy in which these messages have been admitted or wait.
fn policy(messages: &[(Class, u64)]) -> Policy {
    let mut policy = Policy::new(TOTAL);
    for (class, mib) in messages {
        policy.enter(*class, mib * MIB).unwrap();
        policy.admit(seconds(0));
    }
    policy
}

#[test]
fn a_quarter_is_for_posts_unless_the_largest_message_needs_it() {
    let sealing_max = |total_mib: u64| Policy::new(total_mib * MIB).sealing_max_bytes;
    assert_eq!(sealing_max(1200), 900 * MIB);
    assert_eq!(sealing_max(320), 256 * MIB + SMALL_BYTES_MAX);
}

#[test]
fn poreps_leave_a_quarter_for_posts() {
    let mut policy = policy(&[(Class::Sealing, 250); 4]);
    assert_eq!((policy.held_bytes(), policy.waiting()), (750 * MIB, 1));
    policy.enter(Class::Post, 250 * MIB).unwrap();
    assert_eq!(policy.admit(seconds(0)), [4]);
    assert_eq!(policy.waiting(), 1);
}

#[test]
fn a_post_that_waits_is_before_every_porep() {
    let mut policy = policy(&[(Class::Post, 250); 5]);
    assert_eq!(policy.waiting(), 1);
    policy.enter(Class::Sealing, MIB).unwrap();
    assert!(policy.admit(seconds(0)).is_empty());
    policy.leave(0);
    assert_eq!(policy.admit(seconds(0)), [4, 5]);
}

#[test]
fn a_large_message_is_not_overtaken_by_small_ones_of_its_class() {
    let mut policy = policy(&[(Class::Sealing, 250), (Class::Sealing, 250)]);
    policy.enter(Class::Sealing, 450 * MIB).unwrap();
    policy.enter(Class::Sealing, MIB).unwrap();
    assert!(policy.admit(seconds(0)).is_empty());
    policy.leave(1);
    assert_eq!(policy.admit(seconds(0)), [2, 3]);
}

#[test]
fn so_many_may_wait_and_no_more() {
    let mut policy = policy(&[(Class::Sealing, 250); 3 + WAITING_MAX / 2]);
    assert_eq!(policy.enter(Class::Sealing, MIB), Err(Refusal::TooMany));
    assert!(policy.enter(Class::Post, MIB).is_ok());
    assert_eq!(policy.enter(Class::Sealing, TOTAL), Err(Refusal::TooLarge));
}

/// The answers to the question, second by second, about a sender of so many bytes a second.
fn looks(policy: &mut Policy, a_second: u64, times: std::ops::Range<u64>) -> Vec<bool> {
    let mut look = |second| {
        policy.receive(0, a_second);
        policy.is_slow(0, seconds(second))
    };
    times.map(&mut look).collect()
}

#[test]
fn a_slow_sender_is_ended_while_others_wait() {
    let full = [(Class::Sealing, 250); 4];
    assert_eq!(
        looks(&mut policy(&full), MIB - 1, 1..6),
        [false, false, false, false, true]
    );
    assert_eq!(looks(&mut policy(&full), MIB, 1..100), [false; 99]);
}

#[test]
fn a_slow_sender_goes_on_while_nobody_waits() {
    let mut policy = policy(&[(Class::Sealing, 250); 3]);
    assert_eq!(looks(&mut policy, 1, 1..100), [false; 99]);
    policy.enter(Class::Sealing, 250 * MIB).unwrap();
    policy.admit(seconds(100));
    // The time before somebody waited does not count.
    assert_eq!(looks(&mut policy, 1, 100..107)[..5], [false; 5]);
    assert!(looks(&mut policy, 1, 107..112).contains(&true));
}

#[test]
fn a_message_that_is_whole_has_no_slow_sender() {
    let mut policy = policy(&[(Class::Sealing, 250); 4]);
    policy.receive(0, 250 * MIB);
    assert_eq!(looks(&mut policy, 0, 1..60), [false; 59]);
}

/// One thing that happens.
#[derive(Debug, Clone)]
enum Event {
    Enter(bool, u64),
    /// The call of that place among those that are there.
    Leave(usize),
    Receive(usize, u64),
    Look(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (any::<bool>(), 1..=300 * MIB).prop_map(|(post, bytes)| Event::Enter(post, bytes)),
        2 => any::<usize>().prop_map(Event::Leave),
        1 => (any::<usize>(), 0..=10 * MIB).prop_map(|(at, bytes)| Event::Receive(at, bytes)),
        1 => any::<usize>().prop_map(Event::Look),
    ]
}

/// The calls, as their callers know them.
#[derive(Default)]
struct Model {
    /// Class, bytes, and whether it was admitted.
    calls: BTreeMap<Ticket, (Class, u64, bool)>,
}

impl Model {
    fn pick(&self, at: usize) -> Option<Ticket> {
        let count = self.calls.len().max(1);
        self.calls.keys().nth(at % count).copied()
    }

    fn held(&self, class: Class) -> u64 {
        let held = self.calls.values().filter(|call| call.0 == class && call.2);
        held.map(|call| call.1).sum()
    }

    fn first_waiting(&self, class: Class) -> Option<(Ticket, u64)> {
        let mut calls = self.calls.iter();
        calls.find_map(|(&ticket, call)| (call.0 == class && !call.2).then_some((ticket, call.1)))
    }

    /// Checks an admission against the rules, in the words of the module.
    fn admitted(&mut self, ticket: Ticket) {
        let class = self.calls[&ticket].0;
        assert_eq!(self.first_waiting(class).unwrap().0, ticket, "out of order");
        if class == Class::Sealing {
            assert_eq!(self.first_waiting(Class::Post), None, "behind a PoRep");
        }
        self.calls.get_mut(&ticket).unwrap().2 = true;
    }

    /// Checks that the budget holds, and that nobody waits for nothing.
    fn check(&self, policy: &Policy) {
        let (posts, sealing) = (self.held(Class::Post), self.held(Class::Sealing));
        assert_eq!(policy.held_bytes(), posts + sealing);
        assert!(posts + sealing <= TOTAL && sealing <= TOTAL * 3 / 4);
        match (
            self.first_waiting(Class::Post),
            self.first_waiting(Class::Sealing),
        ) {
            (Some((_, bytes)), _) => assert!(posts + sealing + bytes > TOTAL),
            (None, Some((_, bytes))) => {
                assert!(posts + sealing + bytes > TOTAL || sealing + bytes > TOTAL * 3 / 4);
            }
            (None, None) => assert_eq!(policy.waiting(), 0),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_invariants_hold_whatever_happens(events in proptest::collection::vec(event(), 0..120)) {
        let (mut policy, mut model) = (Policy::new(TOTAL), Model::default());
        for (second, event) in (0..).zip(events) {
            let now = seconds(second);
            match event {
                Event::Enter(post, bytes) => {
                    let class = if post { Class::Post } else { Class::Sealing };
                    let ticket = policy.enter(class, bytes).unwrap();
                    model.calls.insert(ticket, (class, bytes, false));
                }
                Event::Leave(at) => if let Some(ticket) = model.pick(at) {
                    policy.leave(ticket);
                    policy.leave(ticket);
                    model.calls.remove(&ticket);
                },
                Event::Receive(at, bytes) => if let Some(ticket) = model.pick(at) {
                    policy.receive(ticket, bytes);
                },
                Event::Look(at) => if let Some(ticket) = model.pick(at) {
                    let is_slow = policy.is_slow(ticket, now);
                    prop_assert!(!is_slow || policy.waiting() > 0);
                },
            }
            for ticket in policy.admit(now) {
                model.admitted(ticket);
            }
            model.check(&policy);
        }
        let rest: Vec<_> = model.calls.keys().copied().collect();
        for ticket in rest {
            policy.leave(ticket);
        }
        prop_assert_eq!((policy.held_bytes(), policy.waiting()), (0, 0));
    }
}
