//! Errors that `check_points` finds in a parameter file, and in a damaged one.

use std::fs;
use std::ops::Range;

use cuzk_filecoin::ProofKind;
use cuzk_groth16::params::{
    ParamCache, ParamsError, ParamsFile, QueryLengths, QueryName, check_points,
};
use cuzk_kernels::Isa;

const G1_BYTES: usize = 96;
const G2_BYTES: usize = 192;
/// β₁ and δ₁ within the verifying key.
const BETA_G1: usize = G1_BYTES;
const DELTA_G1: usize = 2 * G1_BYTES + 2 * G2_BYTES;
/// Six points, then the count of IC.
const IC: usize = 3 * G1_BYTES + 3 * G2_BYTES + 4;

/// The queries of points in G1.
const IN_G1: [QueryName; 4] = [QueryName::H, QueryName::L, QueryName::A, QueryName::BG1];

/// A file's bytes and where its queries are.
struct File {
    bytes: Vec<u8>,
    lengths: QueryLengths,
}

impl File {
    fn good() -> Self {
        let circuit = crate::circuit_with_params(ProofKind::WindowPost);
        let files = cuzk_testing::files(ProofKind::WindowPost);
        let path = ParamCache::new(crate::param_cache()).params_path(&files);
        Self {
            bytes: fs::read(path).unwrap(),
            lengths: circuit.query_lengths(),
        }
    }

    /// The bytes of a point of a query.
    fn point(&self, query: QueryName, index: usize) -> Range<usize> {
        let QueryLengths { ic, h, l, a, .. } = self.lengths;
        let b = self.lengths.b;
        // Each query's count is before its points.
        let start = |counts: usize, points: usize| IC + counts * 4 + points * G1_BYTES;
        let (start, bytes) = match query {
            QueryName::H => (start(1, ic), G1_BYTES),
            QueryName::L => (start(2, ic + h), G1_BYTES),
            QueryName::A => (start(3, ic + h + l), G1_BYTES),
            QueryName::BG1 => (start(4, ic + h + l + a), G1_BYTES),
            QueryName::BG2 => (start(5, ic + h + l + a + b), G2_BYTES),
            QueryName::Key | QueryName::Ic => unreachable!("no query"),
        };
        start + index * bytes..start + (index + 1) * bytes
    }

    fn swap(&mut self, a: Range<usize>, b: Range<usize>) {
        let kept = self.bytes[a.clone()].to_vec();
        self.bytes.copy_within(b.clone(), a.start);
        self.bytes[b].copy_from_slice(&kept);
    }

    fn check(&self, isa: Isa) -> Result<Vec<QueryName>, ParamsError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("params");
        fs::write(&path, &self.bytes).unwrap();
        let mut seen = Vec::new();
        check_points(&ParamsFile::open(&path)?, isa, |name| seen.push(name))?;
        Ok(seen)
    }
}

/// A point of the curve outside of the subgroup, encoded.
fn outside_g1() -> Vec<u8> {
    use ff::Field;
    let fp = |value: u8| (0..value).fold(blstrs::Fp::ZERO, |sum, _| sum + blstrs::Fp::ONE);
    let on_curve = |x: u8| {
        let y = (fp(x).square() * fp(x) + fp(4)).sqrt().into_option()?;
        Some(blstrs::G1Affine::from_raw_unchecked(fp(x), y, false))
    };
    let mut points = (1..).filter_map(on_curve);
    let outside = |point: &blstrs::G1Affine| !bool::from(point.is_torsion_free());
    let point = points.find(outside).unwrap();
    point.to_uncompressed().as_ref().to_vec()
}

#[test]
fn generated_parameters_are_good() {
    for isa in Isa::all() {
        let seen = File::good().check(isa).unwrap();
        assert_eq!(seen.len(), 5);
    }
}

#[test]
fn a_point_outside_of_the_subgroup_is_told_with_its_query() {
    for query in IN_G1 {
        let mut file = File::good();
        let place = file.point(query, 77);
        file.bytes[place].copy_from_slice(&outside_g1());
        for isa in Isa::all() {
            let error = file.check(isa).unwrap_err();
            let ParamsError::OutsideSubgroup { query: told, .. } = &error else {
                unreachable!("{error}");
            };
            assert_eq!(*told, query);
            assert!(error.to_string().contains("fetch it again"), "{error}");
        }
    }
}

#[test]
fn a_point_off_the_curve_is_told_with_its_number() {
    for query in IN_G1.into_iter().chain([QueryName::BG2]) {
        let mut file = File::good();
        let place = file.point(query, 78);
        file.bytes[place.end - 1] ^= 1;
        for isa in Isa::all() {
            let error = file.check(isa).unwrap_err();
            assert!(matches!(error, ParamsError::Points { .. }), "{error}");
            assert!(error.to_string().contains("78"), "{query:?}: {error}");
        }
    }
}

#[test]
fn queries_over_b_that_differ_are_told() {
    let mut file = File::good();
    let [one, other] = [3, 4].map(|index| file.point(QueryName::BG1, index));
    file.swap(one, other);
    let error = file.check(Isa::best()).unwrap_err();
    assert!(matches!(error, ParamsError::Inconsistent { .. }), "{error}");
    assert!(error.to_string().contains("over B"), "{error}");
}

#[test]
fn a_key_that_is_not_the_same_in_both_groups_is_told() {
    let mut file = File::good();
    file.swap(BETA_G1..BETA_G1 + G1_BYTES, DELTA_G1..DELTA_G1 + G1_BYTES);
    let error = file.check(Isa::best()).unwrap_err();
    assert!(matches!(error, ParamsError::Inconsistent { .. }), "{error}");
    assert!(error.to_string().contains("beta and delta"), "{error}");
}
