use super::*;
use crate::subject::Fingerprint;

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

fn delivery(number: u8, priority: Priority) -> Delivery<u32> {
    Delivery {
        id: WorkId([number; 32]),
        priority,
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
    worker.delivered(normal, delivery(1, Priority::Normal));
    let start = worker.next_command();
    assert!(matches!(start, Some(Command::Start { lease: 1, .. })));
    // The other requests still wait. Sealing has no room, and a PoSt has.
    let (low, high) = (waiting[3].0, waiting[1].0);
    worker.delivered(low, delivery(2, Priority::Low));
    let delay = Duration::ZERO;
    let returned = Command::Return { lease: 2, delay };
    assert_eq!(worker.next_command(), Some(returned));
    worker.delivered(high, delivery(3, Priority::High));
    let start = worker.next_command();
    assert!(matches!(start, Some(Command::Start { lease: 3, .. })));
    assert_eq!(worker.running(), 2);
    // The room of the normal one is asked for again when it has ended.
    worker.pull_ended(normal, Duration::ZERO);
    worker.pull_ended(high, Duration::ZERO);
    worker.pull_ended(low, Duration::ZERO);
    assert!(worker.next_command().is_none());
    worker.ended(&WorkId([1; 32]), Duration::ZERO);
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
    worker.delivered(first, delivery(1, Priority::Normal));
    worker.next_command();
    worker.pull_ended(first, Duration::ZERO);
    let (second, ..) = pull(&mut worker);
    worker.delivered(second, delivery(1, Priority::Normal));
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
    worker.delivered(first, excluded);
    let delay = EXCLUDED_DELAY;
    let returned = Command::Return { lease: 1, delay };
    assert_eq!(worker.next_command(), Some(returned));
}

#[test]
fn a_drained_worker_finishes_and_leaves() {
    let mut worker = worker(1, 0, &[ability("warm", true)]);
    let (first, ..) = pull(&mut worker);
    worker.delivered(first, delivery(1, Priority::Normal));
    worker.next_command();
    worker.drain();
    worker.pull_ended(first, Duration::ZERO);
    worker.tick(Duration::from_secs(60));
    assert!(worker.next_command().is_none(), "it still runs");
    worker.ended(&WorkId([1; 32]), Duration::ZERO);
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
    worker.delivered(first, delivery(1, Priority::Normal));
    worker.next_command();
    worker.cancel(&[WorkId([2; 32]), WorkId([1; 32])]);
    let id = WorkId([1; 32]);
    assert_eq!(worker.next_command(), Some(Command::Stop { id }));
    assert!(worker.next_command().is_none());
}
