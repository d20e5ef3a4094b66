use cuzk_fuzz::Corpus;
use cuzk_scheduler::priority::Priority;
use proptest::prelude::*;

use super::*;
use crate::name::Name;
use crate::subject::{Circuit, Fingerprint};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn work(input: Input) -> Work {
    Work {
        owner: name("daemon"),
        job: "job 7".to_owned(),
        partition: 3,
        circuit: Circuit {
            name: name("porep-2KiB"),
            fingerprint: Fingerprint([7; 32]),
        },
        priority: Priority::High,
        attempt: 1,
        excluded: vec![name("bad")],
        input,
    }
}

fn outcome(result: WorkResult) -> Outcome {
    Outcome {
        id: WorkId([1; 32]),
        node: name("node"),
        attempt: 0,
        elapsed_ms: 5,
        result,
    }
}

fn presence(version: &str, circuits: usize) -> Presence {
    let circuit = work(Input::stored(b"input")).circuit;
    Presence {
        node: name("node"),
        version: version.to_owned(),
        loaded: vec![circuit.clone(); circuits],
        others: vec![circuit],
    }
}

fn reads_back<M: Message + PartialEq + fmt::Debug>(message: &M) {
    assert_eq!(M::decode(&message.encode().unwrap()).as_ref(), Ok(message));
}

#[test]
fn messages_read_back() {
    reads_back(&work(Input::inline(b"input".to_vec())));
    reads_back(&work(Input::stored(b"input")));
    reads_back(&outcome(WorkResult::Proof(vec![9; 192])));
    reads_back(&outcome(WorkResult::Failure(Failure::new("no memory"))));
    reads_back(&Sign {
        node: name("node"),
        running: vec![WorkId([2; 32]); IDS_MAX],
    });
    reads_back(&presence("1.2.3", 2));
    reads_back(&Control::Cancel(vec![WorkId([2; 32])]));
    reads_back(&Control::Rest {
        node: name("node"),
        rest_ms: 60_000,
    });
}

#[test]
fn each_reason_is_told_by_name() {
    let good = outcome(WorkResult::Proof(vec![9; 192])).encode().unwrap();
    let with = |place: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[place] = byte;
        Outcome::decode(&bytes).unwrap_err()
    };
    let bytes = good.len();
    assert_eq!(with(0, b'c'), MessageError::Foreign { bytes });
    assert_eq!(with(4, 9), MessageError::Schema { found: 9 });
    let (expected, found) = (2, 1);
    assert_eq!(with(6, 1), MessageError::Kind { expected, found });
    assert_eq!(with(bytes - 1, 8), MessageError::Damaged { bytes });
    let bytes = HEADER_BYTES - 1;
    let cut = Outcome::decode(&good[..bytes]);
    assert_eq!(cut, Err(MessageError::Foreign { bytes }));
    let long = outcome(WorkResult::Proof(vec![9; PROOF_BYTES_MAX + 1]));
    assert!(matches!(long.encode(), Err(MessageError::Malformed(_))));
}

#[test]
fn an_input_whose_digest_is_wrong_is_refused() {
    let mut input = Input::inline(b"input".to_vec());
    input.inline = Some(b"Input".to_vec());
    let error = work(input).encode().unwrap_err();
    assert!(error.to_string().contains("digest"), "{error}");
}

#[test]
fn an_id_names_the_input_and_not_the_attempt() {
    let first = work(Input::inline(b"input".to_vec()));
    let again = Work {
        attempt: 2,
        excluded: Vec::new(),
        ..work(Input::stored(b"input"))
    };
    assert_eq!(first.id(), again.id());
    let other_job = Work {
        job: "job 8".to_owned(),
        ..first.clone()
    };
    assert_ne!(first.id(), other_job.id());
    assert_ne!(first.id(), work(Input::stored(b"other")).id());
}

#[test]
fn a_node_says_no_more_of_itself_than_fits() {
    let long = "1".repeat(VERSION_BYTES_MAX + 1);
    for bad in [
        presence(&long, 1),
        presence("1", CIRCUITS_MAX),
        presence("1\n", 1),
    ] {
        let error = bad.encode();
        assert!(matches!(error, Err(MessageError::Malformed(_))), "{bad:?}");
    }
}

#[test]
fn the_partitions_of_a_job_have_one_trace() {
    let first = work(Input::inline(b"input".to_vec()));
    let partition = Work {
        partition: 4,
        ..first.clone()
    };
    let (one, other) = (first.trace_parent(), partition.trace_parent());
    let parts: Vec<_> = one.split('-').map(str::len).collect();
    assert_eq!(parts, [2, 32, 16, 2]);
    assert_eq!(one[..35], other[..35]);
    assert_ne!(one, other);
    let other_job = Work {
        job: "job 8".to_owned(),
        ..first
    };
    assert_ne!(other_job.trace_parent()[..35], one[..35]);
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let reason = Failure::new(&"ä".repeat(REASON_BYTES_MAX)).reason;
    assert!(reason.len() <= REASON_BYTES_MAX);
    assert!(reason.chars().all(|symbol| symbol == 'ä'));
    assert_eq!(Failure::new("short").reason, "short");
}

/// Decodes as each kind. The results do not matter; no input makes a decoder panic.
fn decode_all(bytes: &[u8]) {
    let _ = Work::decode(bytes);
    let _ = Outcome::decode(bytes);
    let _ = Sign::decode(bytes);
    let _ = Control::decode(bytes);
    let _ = Presence::decode(bytes);
}

proptest! {
    #[test]
    fn no_bytes_make_a_decoder_panic(body in proptest::collection::vec(any::<u8>(), 0..512)) {
        decode_all(&body);
        for kind in 1..=5 {
            let mut bytes = MAGIC.to_vec();
            bytes.extend_from_slice(&SCHEMA.to_le_bytes());
            bytes.push(kind);
            bytes.extend_from_slice(&digest(kind, &body));
            bytes.extend_from_slice(&body);
            decode_all(&bytes);
        }
    }
}

/// Returns a message with this kind and body, and a good digest.
fn sealed(kind: u8, body: &[u8]) -> Vec<u8> {
    let header = [&MAGIC[..], &SCHEMA.to_le_bytes(), &[kind]].concat();
    [&header[..], &digest(kind, body), body].concat()
}

/// A message that decodes is encoded again, and has the same meaning then.
fn decodes<M: Message + PartialEq + fmt::Debug>(bytes: &[u8]) -> bool {
    let Ok(message) = M::decode(bytes) else {
        return false;
    };
    reads_back(&message);
    true
}

/// The input is the kind and the body. Each mutant has a good digest.
#[test]
fn mutated_messages_are_errors_or_within_their_bounds() {
    let messages = [
        work(Input::inline(b"input".to_vec())).encode(),
        work(Input::stored(b"input")).encode(),
        outcome(WorkResult::Proof(vec![9; 192])).encode(),
        outcome(WorkResult::Failure(Failure::new("no memory"))).encode(),
        Sign {
            node: name("node"),
            running: vec![WorkId([2; 32]); 3],
        }
        .encode(),
        presence("1.2.3", 2).encode(),
        Control::Cancel(vec![WorkId([2; 32])]).encode(),
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/messages");
    let corpus = messages
        .into_iter()
        .fold(Corpus::read(folder), |corpus, message| {
            let message = message.unwrap();
            let kind_at = HEADER_BYTES - DIGEST_BYTES - 1;
            corpus.with([&message[kind_at..=kind_at], &message[HEADER_BYTES..]].concat())
        });
    let (mut good, mut bad) = (0, 0);
    let count = corpus.fuzz(20_000, |input| {
        let Some((kind, body)) = input.split_first() else {
            return;
        };
        for bytes in [input, &sealed(*kind, body)] {
            let decoded = [
                decodes::<Work>(bytes),
                decodes::<Outcome>(bytes),
                decodes::<Sign>(bytes),
                decodes::<Presence>(bytes),
                decodes::<Control>(bytes),
            ];
            let kinds = decoded.into_iter().filter(|is_one| *is_one).count();
            assert!(kinds <= 1, "a message has one kind");
            good += kinds;
            bad += 1 - kinds;
        }
    });
    println!("{count} messages");
    assert!(good > 0 && bad > 0, "{good} good, {bad} bad");
}
