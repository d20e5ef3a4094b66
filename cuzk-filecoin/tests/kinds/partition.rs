//! One partition of a statement as bytes: it is proved alone as it is in its job, it is short,
//! and other bytes are refused.

use cuzk_filecoin::{
    PARTITION_FORMAT, PartitionHeader, ProofKind, ProofRequest, SectorSize, Statement, decode,
    decode_partition, vanilla,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::hostile::alter;

/// The bytes before the body.
const HEADER_BYTES: usize = 16;

fn sparse(kind: ProofKind, size: SectorSize) -> ProofRequest {
    vanilla::make_sparse(kind, size, 1).unwrap()
}

fn decoded(kind: ProofKind, size: SectorSize) -> Box<dyn Statement> {
    decode(&sparse(kind, size)).unwrap()
}

fn bundled(kind: ProofKind) -> Box<dyn Statement> {
    decode(&cuzk_testing::bundled_request(kind)).unwrap()
}

/// Decodes a partition of `job` alone, and compares it with the whole.
fn check_alone(job: &dyn Statement, partition: usize) -> Vec<u8> {
    let bytes = job.partition_request(partition).unwrap();
    let header = PartitionHeader::read(&bytes).unwrap();
    assert_eq!(header.circuit, job.circuit());
    assert_eq!(usize::try_from(header.partition), Ok(partition));
    let alone = decode_partition(&bytes).unwrap();
    assert_eq!((alone.circuit(), alone.partitions()), (job.circuit(), 1));
    assert_eq!(alone.writer(), job.writer());
    assert_eq!(
        alone.public_inputs(0).unwrap(),
        job.public_inputs(partition).unwrap()
    );
    assert_eq!(alone.partition_request(0).unwrap(), bytes, "sent on");
    assert!(alone.public_inputs(1).is_err(), "it has one partition");
    bytes
}

/// The witness is that of the partition in its job, and so is the proof with fixed randomness.
fn check_witness(job: &dyn Statement, partition: usize, bytes: &[u8]) {
    let alone = decode_partition(bytes).unwrap();
    let (ours, theirs) = (alone.witness(0).unwrap(), job.witness(partition).unwrap());
    assert_eq!(ours.inputs(), theirs.inputs());
    assert!(ours.to_plain().aux() == theirs.to_plain().aux());
}

#[test]
fn a_small_partition_is_the_same_alone_as_in_its_job() {
    for kind in ProofKind::ALL {
        for job in [bundled(kind), decoded(kind, SectorSize::KiB2)] {
            let bytes = check_alone(&*job, 0);
            check_witness(&*job, 0, &bytes);
            assert!(job.partition_request(job.partitions()).is_err(), "{kind}");
        }
    }
}

/// JSON has the same vanilla proofs in base64, or, for a PoRep, as lists of numbers.
#[test]
fn a_partition_is_shorter_than_its_request() {
    for kind in ProofKind::ALL {
        let request = sparse(kind, SectorSize::KiB2);
        let bytes = decode(&request).unwrap().partition_request(0).unwrap();
        let (bytes, json) = (bytes.len(), request.to_json().len());
        // Base64 takes four bytes for three.
        let bound = match kind {
            ProofKind::Porep => json / 3,
            _ => json * 4 / 5,
        };
        assert!(bytes < bound, "{kind}: {bytes} bytes, JSON {json}");
    }
}

/// The last partition of ten.
#[test]
fn a_partition_of_a_porep_of_32_gib() {
    let job = decoded(ProofKind::Porep, SectorSize::GiB32);
    assert_eq!(job.partitions(), 10);
    let mut bytes = check_alone(&*job, 9);
    // 18 challenges with 15 columns each, and a path of 10 levels for each column.
    let length = bytes.len();
    assert!((1_000_000..1_500_000).contains(&length), "{length}");
    println!("a partition of a PoRep of 32 GiB has {length} bytes");
    bytes[12] = 8;
    refused(&bytes, "does not verify");
}

#[test]
fn a_partition_of_snap_deals_of_32_gib() {
    let job = decoded(ProofKind::SnapDeals, SectorSize::GiB32);
    assert_eq!(job.partitions(), 16);
    let mut bytes = check_alone(&*job, 15);
    println!(
        "a partition of SnapDeals of 32 GiB has {} bytes",
        bytes.len()
    );
    bytes[12] = 14;
    refused(&bytes, "does not verify");
    bytes[12] = 16;
    refused(&bytes, "below 16 for snap-deals-32GiB, got 16");
}

#[test]
fn posts_of_32_gib() {
    for kind in [ProofKind::WinningPost, ProofKind::WindowPost] {
        check_alone(&*decoded(kind, SectorSize::GiB32), 0);
    }
}

/// Checks that bytes are refused with a text that names the problem.
fn refused(bytes: &[u8], problem: &str) {
    let error = decode_partition(bytes).err();
    let error = error.unwrap_or_else(|| panic!("it decoded, in spite of {problem:?}"));
    assert!(error.is_input(), "{error}");
    assert!(
        error.to_string().contains(problem),
        "{error}, not {problem:?}"
    );
}

#[test]
fn a_header_of_something_else_is_refused_by_name() {
    for kind in ProofKind::ALL {
        let good = bundled(kind).partition_request(0).unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        refused(&with(0, b'C'), "the bytes are no partition of a statement");
        let format = u8::try_from(PARTITION_FORMAT).unwrap();
        refused(&with(8, format + 1), "expected format 1, got 2");
        refused(&with(10, 4), "kind 4 is not known");
        refused(&with(11, 200), "registered_proof");
        refused(&with(12, 1), "expected a number below 1 for");
        refused(&with(15, 0xff), "expected a number below 1 for");
        let longer = [&good[..], &[0]].concat();
        refused(&longer, "partition: ");
        // The body of another kind.
        let other = (good[10] + 1) % 4;
        assert!(decode_partition(&with(10, other)).is_err(), "{kind}");
        // A body of 2 KiB under the number of 8 MiB.
        refused(&with(11, good[11] + 1), "expected");
    }
}

/// The first field of the body is comm_r.
#[test]
fn a_partition_of_a_porep_with_another_comm_r_is_refused() {
    let mut bytes = bundled(ProofKind::Porep).partition_request(0).unwrap();
    bytes[HEADER_BYTES] ^= 1;
    refused(&bytes, "comm_r is not the hash of the roots of its trees");
}

fn cut_is_refused(good: &[u8], lengths: impl Iterator<Item = usize>) {
    for length in lengths {
        let error = decode_partition(&good[..length]).err().unwrap();
        assert!(error.is_input(), "{length} bytes: {error}");
    }
}

/// All lengths of the header and of the first fields, and then one in each node.
#[test]
fn a_partition_that_is_cut_is_refused() {
    for kind in ProofKind::ALL {
        let good = bundled(kind).partition_request(0).unwrap();
        let all = good.len();
        cut_is_refused(&good, 0..all.min(512));
        cut_is_refused(&good, (512..all).step_by(31).chain([all - 1]));
    }
}

/// All lengths of the shortest kind.
#[test]
fn a_window_post_that_is_cut_at_any_byte_is_refused() {
    let good = bundled(ProofKind::WindowPost).partition_request(0).unwrap();
    cut_is_refused(&good, 0..good.len());
}

#[test]
fn altered_partitions_never_panic() {
    for kind in ProofKind::ALL {
        let good = bundled(kind).partition_request(0).unwrap();
        for seed in 0..150 {
            let mut bytes = good.clone();
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            alter(&mut bytes, &mut rng);
            if rng.gen_range(0..4) == 0 && !bytes.is_empty() {
                alter(&mut bytes, &mut rng);
            }
            // Some fields are of no statement: a miner's number, for example.
            match decode_partition(&bytes) {
                Ok(statement) => assert_eq!(statement.partitions(), 1, "{kind}, seed {seed}"),
                Err(error) => assert!(error.is_input(), "{kind}, seed {seed}: {error}"),
            }
        }
    }
}

/// A length that is a lie takes no memory: the bytes end before it.
#[test]
fn a_length_that_is_a_lie_is_refused() {
    for kind in ProofKind::ALL {
        let good = bundled(kind).partition_request(0).unwrap();
        let mut lies = 0;
        for at in HEADER_BYTES..good.len().min(2048) - 8 {
            let was = u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
            // Lengths are small.
            if was == 0 || was > 0xffff {
                continue;
            }
            for length in [u64::MAX, 1 << 40] {
                let mut bytes = good.clone();
                bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
                if let Err(error) = decode_partition(&bytes) {
                    assert!(error.is_input(), "{kind}, {length} at {at}: {error}");
                    lies += 1;
                }
            }
        }
        assert!(lies > 0, "{kind}");
    }
}
