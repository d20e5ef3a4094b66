//! Errors that `check_points` finds in a parameter file, and in a damaged one.

use cuzk_filecoin::ProofKind;
use cuzk_groth16::params::{ParamsError, QueryName, check_points};
use cuzk_kernels::Isa;

use crate::file::{BETA_G1, DELTA_G1, File, G1_BYTES, IN_G1};

fn good() -> File {
    File::good(ProofKind::WindowPost)
}

/// Files to be damaged, with the instructions that check them. A check of a real file takes seconds
/// with the slowest ones, and `generated_parameters_are_good` has it with all.
fn files() -> [(File, Vec<Isa>); 2] {
    [(good(), vec![Isa::best()]), (File::small(), Isa::all())]
}

fn check(file: &File, isa: Isa) -> Result<Vec<QueryName>, ParamsError> {
    let (_folder, params) = file.open();
    let mut seen = Vec::new();
    check_points(&params?, isa, |name| seen.push(name))?;
    Ok(seen)
}

/// A point of the curve outside of the subgroup, encoded.
pub(crate) fn outside_g1() -> Vec<u8> {
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
        let seen = check(&good(), isa).unwrap();
        assert_eq!(seen.len(), 5);
    }
}

/// Checks damaged files, each with one query that `damage` spoils.
fn each_damaged(
    queries: &[QueryName],
    damage: fn(&mut File, QueryName),
    is_told: fn(QueryName, &ParamsError) -> bool,
) {
    for &query in queries {
        for (mut file, instructions) in files() {
            damage(&mut file, query);
            for isa in instructions {
                let error = check(&file, isa).unwrap_err();
                assert!(is_told(query, &error), "{query:?}, {isa}: {error}");
            }
        }
    }
}

#[test]
fn a_point_outside_of_the_subgroup_is_told_with_its_query() {
    let damage = |file: &mut File, query| {
        let place = file.point(query, 77);
        file.bytes[place].copy_from_slice(&outside_g1());
    };
    each_damaged(&IN_G1, damage, |query, error| {
        let is_query =
            matches!(error, ParamsError::OutsideSubgroup { query: told, .. } if *told == query);
        is_query && error.to_string().contains("fetch it again")
    });
}

#[test]
fn a_point_off_the_curve_is_told_with_its_number() {
    let damage = |file: &mut File, query| {
        let place = file.point(query, 78);
        file.bytes[place.end - 1] ^= 1;
    };
    let queries = [&IN_G1[..], &[QueryName::BG2]].concat();
    each_damaged(&queries, damage, |_, error| {
        matches!(error, ParamsError::Points { .. }) && error.to_string().contains("78")
    });
}

#[test]
fn queries_over_b_that_differ_are_told() {
    let mut file = good();
    let [one, other] = [3, 4].map(|index| file.point(QueryName::BG1, index));
    file.swap(one, other);
    let error = check(&file, Isa::best()).unwrap_err();
    assert!(matches!(error, ParamsError::Inconsistent { .. }), "{error}");
    assert!(error.to_string().contains("over B"), "{error}");
}

#[test]
fn a_key_that_is_not_the_same_in_both_groups_is_told() {
    let mut file = good();
    file.swap(BETA_G1..BETA_G1 + G1_BYTES, DELTA_G1..DELTA_G1 + G1_BYTES);
    let error = check(&file, Isa::best()).unwrap_err();
    assert!(matches!(error, ParamsError::Inconsistent { .. }), "{error}");
    assert!(error.to_string().contains("beta and delta"), "{error}");
}
