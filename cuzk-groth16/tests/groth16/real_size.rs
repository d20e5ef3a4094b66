//! Parameter files of the size of a 32 GiB PoRep's: 60 GB of addresses, and a few pages of
//! disk. All of a file but its counts, its key and a few points is a hole.
//!
//! Each rule of the format is held at this size, where offsets have more than 32 bits.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use blstrs::{G1Affine, G2Affine};
use cuzk_filecoin::ProofKind;
use cuzk_groth16::params::{ParamsError, ParamsFile, QueryLengths, QueryName};
use cuzk_kernels::msm::{Bases, BasesError};
use group::prime::PrimeCurveAffine;
use tempfile::TempDir;

use crate::check::outside_g1;
use crate::file::{BETA_G1, DELTA_G1, G1_BYTES, G2_BYTES, IC};

/// About as many as the circuit has: its rows need the domain 2^27.
const LENGTHS: QueryLengths = QueryLengths {
    ic: 79,
    h: (1 << 27) - 1,
    l: 128_998_279,
    a: 128_998_358,
    b: 44_257_543,
};

/// Bytes of a count.
const COUNT: u64 = size_of::<u32>() as u64;

/// The counted parts in their order, with their points' size.
const PARTS: [(QueryName, u64); 6] = [
    (QueryName::Ic, G1_BYTES as u64),
    (QueryName::H, G1_BYTES as u64),
    (QueryName::L, G1_BYTES as u64),
    (QueryName::A, G1_BYTES as u64),
    (QueryName::BG1, G1_BYTES as u64),
    (QueryName::BG2, G2_BYTES as u64),
];

fn counts(lengths: &QueryLengths) -> [u64; 6] {
    let QueryLengths { ic, h, l, a, b } = *lengths;
    [ic, h, l, a, b, b].map(|count| count as u64)
}

/// A file, and where each part's count is in it.
struct Sparse {
    _folder: TempDir,
    path: PathBuf,
    file: File,
    counts_at: [u64; 6],
    bytes: u64,
}

impl Sparse {
    fn new() -> Self {
        Self::of(&LENGTHS)
    }

    /// Writes a good key and the counts, and points into the first and the last place of each
    /// query.
    fn of(lengths: &QueryLengths) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("real.params");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = options.open(&path).unwrap();
        let key = crate::file::File::good(ProofKind::WindowPost).bytes;
        // The six points, and the first input's, which stands for each.
        let (key, input) = (&key[..IC - size_of::<u32>()], &key[IC..IC + G1_BYTES]);
        file.write_all_at(key, 0).unwrap();
        let mut at = key.len() as u64;
        let mut counts_at = [0; 6];
        for (index, ((part, point_bytes), count)) in
            PARTS.into_iter().zip(counts(lengths)).enumerate()
        {
            counts_at[index] = at;
            let encoded = u32::try_from(count).unwrap().to_be_bytes();
            file.write_all_at(&encoded, at).unwrap();
            at += COUNT;
            let places = match (part, count) {
                (QueryName::Ic, _) | (_, 0) => (0..count).collect(),
                _ => vec![0, count - 1],
            };
            let g2 = G2Affine::generator().to_uncompressed();
            let point = if point_bytes == G2_BYTES as u64 {
                &g2[..]
            } else {
                input
            };
            for place in places {
                file.write_all_at(point, at + place * point_bytes).unwrap();
            }
            at += count * point_bytes;
        }
        file.set_len(at).unwrap();
        Self {
            _folder: folder,
            path,
            file,
            counts_at,
            bytes: at,
        }
    }

    fn open(&self) -> Result<ParamsFile, ParamsError> {
        ParamsFile::open(&self.path)
    }

    /// Opens it with another count of a part, which is put back.
    fn with_count(&self, part: usize, count: u32) -> ParamsError {
        let at = self.counts_at[part];
        self.file.write_all_at(&count.to_be_bytes(), at).unwrap();
        let error = self.open().unwrap_err();
        let good = u32::try_from(counts(&LENGTHS)[part]).unwrap();
        self.file.write_all_at(&good.to_be_bytes(), at).unwrap();
        error
    }

    fn bytes(&self, (at, bytes): (u64, usize)) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.file.read_exact_at(&mut read, at).unwrap();
        read
    }

    /// Opens it with other bytes, which are put back.
    fn with_bytes(&self, at: u64, bytes: &[u8]) -> ParamsError {
        let good = self.bytes((at, bytes.len()));
        self.file.write_all_at(bytes, at).unwrap();
        let error = self.open().unwrap_err();
        self.file.write_all_at(&good, at).unwrap();
        error
    }

    /// Opens it with another length.
    fn cut(self, bytes: u64) -> ParamsError {
        self.file.set_len(bytes).unwrap();
        self.open().unwrap_err()
    }
}

/// Reads the first point, the last, and one of the hole between, which is none; and no point
/// beyond.
fn check_points<P: PrimeCurveAffine>(query: &impl Bases<P>, count: usize) {
    assert_eq!(query.len(), count);
    let mut point = [P::identity()];
    for place in [0, count - 1] {
        query.read(place, &mut point).unwrap();
        assert!(!bool::from(point[0].is_identity()));
    }
    let hole = count / 2;
    let error = query.read(hole, &mut point).unwrap_err();
    assert!(error.to_string().contains(&hole.to_string()), "{error}");
    let error = query.read(count, &mut point).unwrap_err();
    assert!(matches!(error, BasesError::OutOfRange { .. }), "{error}");
}

#[test]
fn a_file_of_the_real_size_is_read_at_both_ends_of_each_query() {
    let sparse = Sparse::new();
    assert!(sparse.bytes > 40 << 30, "{}", sparse.bytes);
    let params = sparse.open().unwrap();
    assert_eq!(params.file_bytes() as u64, sparse.bytes);
    assert_eq!(params.vk().ic.len(), LENGTHS.ic);
    check_points::<G1Affine>(&params.h(), LENGTHS.h);
    check_points::<G1Affine>(&params.l(), LENGTHS.l);
    check_points::<G1Affine>(&params.a(), LENGTHS.a);
    check_points::<G1Affine>(&params.b_g1(), LENGTHS.b);
    check_points::<G2Affine>(&params.b_g2(), LENGTHS.b);
    assert!(takes_little(&sparse.path), "the file is no hole");
}

/// Returns true if a file takes less than 16 MiB of the disk.
fn takes_little(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let blocks = path.metadata().unwrap().blocks();
    blocks * 512 < 16 << 20
}

#[test]
fn each_length_of_a_file_of_the_real_size_is_checked_against_its_circuit() {
    let sparse = Sparse::new();
    let params = sparse.open().unwrap();
    params.check_circuit(&LENGTHS).unwrap();
    type Change = fn(&mut QueryLengths);
    let change: [(QueryName, Change); 5] = [
        (QueryName::Ic, |lengths| lengths.ic += 1),
        (QueryName::H, |lengths| lengths.h -= 1),
        (QueryName::L, |lengths| lengths.l += 1),
        (QueryName::A, |lengths| lengths.a -= 1),
        (QueryName::BG1, |lengths| lengths.b += 1),
    ];
    for (expected, change) in change {
        let mut lengths = LENGTHS;
        change(&mut lengths);
        let error = params.check_circuit(&lengths).unwrap_err();
        let ParamsError::OtherCircuit { query, .. } = error else {
            unreachable!("{error}");
        };
        assert_eq!(query, expected);
    }
}

/// The file counts the points of B in each group.
#[test]
fn a_file_with_a_point_of_b_less_in_g2_is_of_another_circuit() {
    let sparse = Sparse::new();
    let less = u32::try_from(LENGTHS.b - 1).unwrap();
    let [.., at] = sparse.counts_at;
    sparse.file.write_all_at(&less.to_be_bytes(), at).unwrap();
    let bytes = sparse.bytes - G2_BYTES as u64;
    sparse.file.set_len(bytes).unwrap();
    let error = sparse.open().unwrap().check_circuit(&LENGTHS).unwrap_err();
    let ParamsError::OtherCircuit { query, .. } = error else {
        unreachable!("{error}");
    };
    assert_eq!(query, QueryName::BG2);
}

#[test]
fn a_file_of_the_real_size_that_is_short_or_long_is_refused() {
    let whole = Sparse::new();
    let ends = whole.counts_at.into_iter().skip(1).chain([whole.bytes]);
    for ((part, _), end) in PARTS.into_iter().zip(ends) {
        let error = Sparse::new().cut(end - 1);
        let ParamsError::Truncated {
            part: told,
            expected_bytes,
            got_bytes,
            ..
        } = error
        else {
            unreachable!("{part}: {error}");
        };
        assert_eq!((told, expected_bytes, got_bytes), (part, end, end - 1));
    }
    let bytes = whole.bytes;
    let error = whole.cut(bytes + 1);
    let is_told = matches!(
        error,
        ParamsError::TrailingBytes { expected_bytes, got_bytes, .. }
            if (expected_bytes, got_bytes) == (bytes, bytes + 1)
    );
    assert!(is_told, "{error}");
}

/// One more and one less shift all that follows, so that a later count is some point's bytes
/// or the file has another end. The greatest count of all needs no memory to be refused.
#[test]
fn a_wrong_count_in_a_file_of_the_real_size_is_refused() {
    let sparse = Sparse::new();
    for (index, count) in counts(&LENGTHS).into_iter().enumerate() {
        let (part, _) = PARTS[index];
        let count = u32::try_from(count).unwrap();
        for wrong in [count - 1, count + 1] {
            let error = sparse.with_count(index, wrong);
            let is_length = matches!(
                error,
                ParamsError::Truncated { .. } | ParamsError::TrailingBytes { .. }
            );
            assert!(is_length, "{part} counts {wrong}: {error}");
        }
        let error = sparse.with_count(index, u32::MAX);
        let ParamsError::Truncated { part: told, .. } = error else {
            unreachable!("{part}: {error}");
        };
        assert_eq!(told, part);
    }
    sparse.open().unwrap();
}

/// Returns the points of the key, and the first and the last one of IC. Each has its place, its bytes, and
/// its name in the error of a point at infinity.
fn key_points() -> [(u64, usize, &'static str); 8] {
    let ic = IC as u64;
    let last = ic + (LENGTHS.ic as u64 - 1) * G1_BYTES as u64;
    [
        (0, G1_BYTES, "alpha in G1"),
        (BETA_G1 as u64, G1_BYTES, "beta in G1"),
        (2 * G1_BYTES as u64, G2_BYTES, "beta in G2"),
        ((2 * G1_BYTES + G2_BYTES) as u64, G2_BYTES, "gamma in G2"),
        (DELTA_G1 as u64, G1_BYTES, "delta in G1"),
        ((DELTA_G1 + G1_BYTES) as u64, G2_BYTES, "delta in G2"),
        (ic, G1_BYTES, "point at infinity"),
        (last, G1_BYTES, "point at infinity"),
    ]
}

/// A key is checked before anything else of a file is used.
#[test]
fn each_point_of_the_key_of_a_file_of_the_real_size_is_checked() {
    let sparse = Sparse::new();
    for (at, bytes, name) in key_points() {
        let good = sparse.bytes((at, bytes));
        let mut infinity = vec![0; bytes];
        infinity[0] = 0x40;
        let mut compressed = good.clone();
        compressed[0] |= 0x80;
        let mut off_the_curve = good;
        off_the_curve[bytes - 1] ^= 1;
        let mut cases = vec![
            (infinity, name),
            (compressed, "compressed"),
            (off_the_curve, "not on curve"),
        ];
        if bytes == G1_BYTES {
            // The library has one text for both.
            cases.push((outside_g1(), "not on curve"));
        }
        for (bad, expected) in cases {
            let error = sparse.with_bytes(at, &bad);
            let ParamsError::VerifyingKey { problem, .. } = &error else {
                unreachable!("{at}: {error}");
            };
            assert!(problem.contains(expected), "{at}: {problem}");
        }
    }
    sparse.open().unwrap();
}

/// A query without points is read, and is none of the circuit. Nor may anything come after the last
/// count, although it counts nothing.
#[test]
fn a_count_of_zero_at_the_end_of_a_file_of_the_real_size_is_of_another_circuit() {
    let sparse = Sparse::of(&QueryLengths { b: 0, ..LENGTHS });
    assert!(sparse.bytes > 30 << 30, "{}", sparse.bytes);
    let params = sparse.open().unwrap();
    let mut point = [G2Affine::identity()];
    let error = params.b_g2().read(0, &mut point).unwrap_err();
    assert!(matches!(error, BasesError::OutOfRange { .. }), "{error}");
    let error = params.check_circuit(&LENGTHS).unwrap_err();
    let ParamsError::OtherCircuit { query, got, .. } = error else {
        unreachable!("{error}");
    };
    assert_eq!((query, got), (QueryName::BG1, 0));
    drop(params);
    let bytes = sparse.bytes;
    let error = sparse.cut(bytes + 1);
    assert!(
        matches!(error, ParamsError::TrailingBytes { .. }),
        "{error}"
    );
}

#[test]
fn a_key_without_inputs_in_a_file_of_the_real_size_is_refused() {
    let error = Sparse::of(&QueryLengths { ic: 0, ..LENGTHS })
        .open()
        .unwrap_err();
    let ParamsError::VerifyingKey { problem, .. } = &error else {
        unreachable!("{error}");
    };
    assert!(problem.contains("no public input"), "{problem}");
}
