use super::*;
use crate::subject::{Circuit, Fingerprint};

type W = Worker<u32>;

fn ability(name: &str, is_loaded: bool) -> Ability {
    let circuit = Circuit {
        name: name.parse().unwrap(),
        fingerprint: Fingerprint([1; 32]),
    };
    Ability { circuit, is_loaded }
}

fn worker(common: usize, urgent: usize, abilities: &[Ability]) -> W {
    let mut worker = W::default();
    worker.set_abilities(abilities, Duration::ZERO);
    worker.set_capacity(Capacity { common, urgent }, Duration::ZERO);
    worker
}

/// Returns a partition of the circuit `warm`.
fn delivery(number: u8, priority: Priority) -> Delivery<u32> {
    let circuit = ability("warm", true).circuit;
    Delivery {
        id: WorkId([number; 32]),
        subject: Subject { circuit, priority },
        is_excluded: false,
        lease: number.into(),
    }
}

/// Returns the subject of the only command, a request, with its number and its wait.
fn pull(worker: &mut W) -> (PullId, Subject, Duration) {
    match worker.next_command() {
        Some(Command::Pull {
            pull,
            subject,
            wait,
        }) => (pull, subject, wait),
        other => panic!("expected a request, got {other:?}"),
    }
}

/// Answers each request of a look with nothing. Returns what was asked for, and the waiting
/// requests that follow.
fn look_in_vain(worker: &mut W) -> (Vec<Subject>, Vec<(PullId, Subject)>) {
    let (mut asked, mut waiting) = (Vec::new(), Vec::new());
    while let Some(command) = worker.next_command() {
        let Command::Pull {
            pull,
            subject,
            wait,
        } = command
        else {
            panic!("expected a request, got {command:?}");
        };
        if wait.is_zero() {
            asked.push(subject);
            worker.pull_ended(pull, Duration::ZERO);
        } else {
            waiting.push((pull, subject));
        }
    }
    (asked, waiting)
}

#[test]
fn it_asks_for_the_most_urgent_first_and_for_loaded_circuits_before_others() {
    let abilities = [ability("cold", false), ability("warm", true)];
    let (asked, waiting) = look_in_vain(&mut worker(1, 0, &abilities));
    let names = |subjects: &[Subject]| -> Vec<String> {
        let name = |subject: &Subject| format!("{} {}", subject.priority, subject.circuit.name);
        subjects.iter().map(name).collect()
    };
    let expected = [
        "critical warm",
        "critical cold",
        "high warm",
        "high cold",
        "normal warm",
        "normal cold",
        "low warm",
        "low cold",
    ];
    assert_eq!(names(&asked), expected);
    let waits: Vec<Subject> = waiting.into_iter().map(|(_, subject)| subject).collect();
    assert_eq!(
        names(&waits),
        ["critical warm", "high warm", "normal warm", "low warm"],
        "only a warm worker lets requests wait"
    );
}

#[test]
fn without_room_it_asks_for_nothing() {
    let mut worker = worker(0, 0, &[ability("warm", true)]);
    worker.tick(Duration::from_secs(60));
    assert!(worker.next_command().is_none());
}

#[test]
fn urgent_work_has_room_beside_sealing() {
    let mut worker = worker(1, 1, &[ability("warm", true)]);
    let (_, waiting) = look_in_vain(&mut worker);
    let (normal, _) = waiting[2].clone();
    assert_eq!(waiting[2].1.priority, Priority::Normal);
    worker.delivered(normal, delivery(1, Priority::Normal), Duration::ZERO);
    let start = worker.next_command();
    assert!(matches!(start, Some(Command::Start { lease: 1, .. })));
    // The other requests still wait. Sealing has no room, and a PoSt has.
    let (low, high) = (waiting[3].0, waiting[1].0);
    worker.delivered(low, delivery(2, Priority::Low), Duration::ZERO);
    let delay = Duration::ZERO;
    let returned = Command::Return { lease: 2, delay };
    assert_eq!(worker.next_command(), Some(returned));
    worker.delivered(high, delivery(3, Priority::High), Duration::ZERO);
    let start = worker.next_command();
    assert!(matches!(start, Some(Command::Start { lease: 3, .. })));
    assert_eq!(worker.running(), 2);
    // The room of the normal one is asked for again when it has ended.
    worker.pull_ended(normal, Duration::ZERO);
    worker.pull_ended(high, Duration::ZERO);
    worker.pull_ended(low, Duration::ZERO);
    assert!(worker.next_command().is_none());
    worker.ended(&WorkId([1; 32]), RunEnd::Proved, Duration::ZERO);
    let (_, subject, _) = pull(&mut worker);
    assert_eq!(
        subject.priority,
        Priority::High,
        "critical work still waits"
    );
}

#[test]
fn a_second_delivery_of_a_running_partition_joins_it() {
    let mut worker = worker(2, 0, &[ability("warm", true)]);
    let (first, ..) = pull(&mut worker);
    worker.delivered(first, delivery(1, Priority::Normal), Duration::ZERO);
    worker.next_command();
    worker.pull_ended(first, Duration::ZERO);
    let (second, ..) = pull(&mut worker);
    worker.delivered(second, delivery(1, Priority::Normal), Duration::ZERO);
    let id = WorkId([1; 32]);
    let joined = Command::Join { id, lease: 1 };
    assert_eq!(worker.next_command(), Some(joined));
    assert_eq!(worker.running(), 1);
}

#[test]
fn a_partition_that_excludes_it_goes_back_for_a_while() {
    let mut worker = worker(1, 0, &[ability("warm", true)]);
    let (first, ..) = pull(&mut worker);
    let excluded = Delivery {
        is_excluded: true,
        ..delivery(1, Priority::Normal)
    };
    worker.delivered(first, excluded, Duration::ZERO);
    let delay = EXCLUDED_DELAY;
    let returned = Command::Return { lease: 1, delay };
    assert_eq!(worker.next_command(), Some(returned));
}

/// Lets a worker ask a server that has nothing from `from` to `until`. Returns the times in
/// which requests of `subject` were at the server, in milliseconds.
fn asked(worker: &mut W, subject: &Subject, from: u64, until: u64) -> Vec<(u64, u64)> {
    let mut at_server: Vec<(u64, PullId)> = Vec::new();
    let mut asked = Vec::new();
    for now in from..until {
        worker.tick(Duration::from_millis(now));
        while let Some(command) = worker.next_command() {
            let Command::Pull {
                pull,
                subject: of,
                wait,
            } = command
            else {
                panic!("expected a request, got {command:?}");
            };
            let end = now + u64::try_from(wait.as_millis()).unwrap();
            at_server.push((end, pull));
            if of == *subject {
                asked.push((now, end));
            }
        }
        let (over, rest) = at_server.into_iter().partition(|(end, _)| *end <= now);
        at_server = rest;
        for (_, pull) in over {
            worker.pull_ended(pull, Duration::from_millis(now));
        }
    }
    asked
}

#[test]
fn a_partition_that_excludes_it_is_left_to_others_when_it_comes_back() {
    let mut worker = worker(1, 0, &[ability("warm", true)]);
    let (_, waiting) = look_in_vain(&mut worker);
    let (normal, subject) = waiting[2].clone();
    let excluded = Delivery {
        is_excluded: true,
        ..delivery(1, Priority::Normal)
    };
    worker.delivered(normal, excluded, Duration::ZERO);
    worker.next_command();
    worker.pull_ended(normal, Duration::ZERO);
    for (_, (pull, other)) in waiting.into_iter().enumerate().filter(|(at, _)| *at != 2) {
        assert_ne!(other, subject);
        worker.pull_ended(pull, Duration::ZERO);
    }
    let asked = asked(&mut worker, &subject, 0, 10_000);
    let back = u64::try_from(EXCLUDED_DELAY.as_millis()).unwrap();
    let precedence = back - 500..back + 2000;
    let is_apart =
        |(from, until): &(u64, u64)| *until < precedence.start || *from >= precedence.end;
    assert!(asked.iter().all(is_apart), "{asked:?}");
    assert!(asked.iter().any(|(from, _)| *from < 1000), "{asked:?}");
    assert!(asked.iter().any(|(from, _)| *from > back), "{asked:?}");
}

#[test]
fn a_worker_that_fails_in_a_row_asks_less_and_less_often() {
    let mut worker = worker(1, 0, &[ability("warm", true)]);
    let subject = delivery(1, Priority::Critical).subject;
    let (mut first, ..) = pull(&mut worker);
    let mut now = Duration::ZERO;
    let mut run = |worker: &mut W, end: RunEnd, rest: Duration| {
        worker.delivered(first, delivery(1, Priority::Critical), now);
        let start = worker.next_command();
        assert!(matches!(start, Some(Command::Start { .. })), "{start:?}");
        worker.pull_ended(first, now);
        worker.ended(&WorkId([1; 32]), end, now);
        if !rest.is_zero() {
            worker.tick(now + rest - Duration::from_millis(1));
            assert!(worker.next_command().is_none(), "it rests for {rest:?}");
        }
        now += rest;
        worker.tick(now);
        let (next, of, _) = pull(worker);
        assert_eq!(of, subject);
        first = next;
    };
    for rest_s in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        run(&mut worker, RunEnd::Failed, Duration::from_secs(rest_s));
    }
    run(&mut worker, RunEnd::Stopped, Duration::ZERO);
    run(&mut worker, RunEnd::Failed, FAILURE_REST_MAX);
    run(&mut worker, RunEnd::Proved, Duration::ZERO);
    run(&mut worker, RunEnd::Failed, FAILURE_REST);
}

#[test]
fn a_drained_worker_finishes_and_leaves() {
    let mut worker = worker(1, 0, &[ability("warm", true)]);
    let (first, ..) = pull(&mut worker);
    worker.delivered(first, delivery(1, Priority::Normal), Duration::ZERO);
    worker.next_command();
    worker.drain();
    worker.pull_ended(first, Duration::ZERO);
    worker.tick(Duration::from_secs(60));
    assert!(worker.next_command().is_none(), "it still runs");
    worker.ended(&WorkId([1; 32]), RunEnd::Proved, Duration::ZERO);
    assert_eq!(worker.next_command(), Some(Command::Leave));
    worker.drain();
    assert!(worker.next_command().is_none(), "it leaves once");
}

#[test]
fn a_worker_at_rest_asks_for_nothing_until_the_rest_is_over() {
    let mut worker = worker(1, 0, &[ability("warm", true)]);
    let (first, ..) = pull(&mut worker);
    worker.rest(Duration::from_secs(60));
    worker.pull_ended(first, Duration::ZERO);
    worker.tick(Duration::from_secs(59));
    assert!(worker.next_command().is_none());
    worker.tick(Duration::from_secs(60));
    pull(&mut worker);
}

#[test]
fn only_running_partitions_are_stopped() {
    let mut worker = worker(1, 0, &[ability("warm", true)]);
    let (first, ..) = pull(&mut worker);
    worker.delivered(first, delivery(1, Priority::Normal), Duration::ZERO);
    worker.next_command();
    worker.cancel(&[WorkId([2; 32]), WorkId([1; 32])]);
    let id = WorkId([1; 32]);
    assert_eq!(worker.next_command(), Some(Command::Stop { id }));
    assert!(worker.next_command().is_none());
}
