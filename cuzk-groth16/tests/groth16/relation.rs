//! Damaged points that only the circuit shows: `check_relation`.

use std::ops::Range;
use std::sync::Arc;

use bellperson::{ConstraintSystem, SynthesisError};
use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_filecoin::ProofKind;
use cuzk_groth16::params::{
    ParamCache, ParamsError, ParamsFile, QueryName, Relation, ToxicWaste, check_points,
    check_relation, generate,
};
use cuzk_groth16::{Circuit, compile, setup};
use cuzk_kernels::Isa;
use cuzk_testing::circuits::Mimc;
use group::prime::PrimeCurveAffine;
use group::{Curve, UncompressedEncoding};

use crate::file::{File, G1_BYTES, IC};

const KIND: ProofKind = ProofKind::WindowPost;

fn check(file: &File, isa: Isa) -> Result<Relation, ParamsError> {
    let (_folder, params) = file.open();
    check_of(&params?, KIND, isa)
}

fn check_of(params: &ParamsFile, kind: ProofKind, isa: Isa) -> Result<Relation, ParamsError> {
    let circuit = crate::circuit_with_params(kind);
    let parts = (circuit.program(), circuit.densities());
    check_relation(params, parts, isa, |_| ())
}

/// Both checks that `cuzk params verify` makes. Returns the first error.
fn check_all(file: &File) -> Result<(), ParamsError> {
    let (_folder, params) = file.open();
    check_points(&params?, Isa::best(), |_| ())?;
    check(file, Isa::best()).map(|relation| assert_eq!(relation, Relation::Holds))
}

/// Returns true if the file is as it was generated, so that a damage changed nothing.
fn is_unchanged(file: &File) -> bool {
    file.bytes == File::good(KIND).bytes
}

/// Replaces a point by its negative.
fn negate(bytes: &mut [u8]) {
    fn negative<P>(bytes: &mut [u8])
    where
        P: UncompressedEncoding + std::ops::Neg<Output = P>,
    {
        let mut encoded = P::Uncompressed::default();
        encoded.as_mut().copy_from_slice(bytes);
        let point = P::from_uncompressed(&encoded).unwrap();
        bytes.copy_from_slice((-point).to_uncompressed().as_ref());
    }
    match bytes.len() {
        G1_BYTES => negative::<G1Affine>(bytes),
        _ => negative::<G2Affine>(bytes),
    }
}

#[test]
fn other_generators_are_told() {
    let circuit = Arc::new(compile("mimc", Mimc::blank(20)).unwrap());
    let standard = ToxicWaste::from_seed(3);
    let other = ToxicWaste {
        g1: (G1Affine::generator() * Scalar::from(2)).to_affine(),
        ..standard
    };
    let check = |waste: &ToxicWaste| {
        let bytes = setup(&circuit, waste).unwrap().bytes().to_vec();
        let lengths = circuit.query_lengths();
        let (_folder, params) = File { bytes, lengths }.open();
        let parts = (circuit.program(), circuit.densities());
        check_relation(&params.unwrap(), parts, Isa::best(), |_| ())
    };
    assert_eq!(check(&standard).unwrap(), Relation::Holds);
    let told = check(&other).unwrap_err().to_string();
    assert!(told.contains("not of the standard generators"), "{told}");
}

/// Damages the point at one place. The other place is of the same query.
type Damage = fn(&mut File, Range<usize>, Range<usize>);

const DAMAGES: [(&str, Damage); 3] = [
    ("replaced", |file, at, other| {
        let other = file.bytes[other].to_vec();
        file.bytes[at].copy_from_slice(&other);
    }),
    ("swapped", File::swap),
    ("negated", |file, at, _| negate(&mut file.bytes[at])),
];

/// The first, a middle and the last point of a query.
fn indices(file: &File, query: QueryName) -> [usize; 3] {
    let lengths = &file.lengths;
    let len = match query {
        QueryName::H => lengths.h,
        QueryName::L => lengths.l,
        QueryName::A => lengths.a,
        _ => lengths.b,
    };
    [0, len / 2, len - 1]
}

fn check_generated(kinds: [ProofKind; 2]) {
    for kind in kinds {
        crate::circuit_with_params(kind);
        let cache = ParamCache::new(crate::param_cache());
        let path = cache.params_path(&cuzk_testing::files(kind));
        let params = ParamsFile::open(&path).unwrap();
        let checked = check_of(&params, kind, Isa::best()).unwrap();
        assert_eq!(checked, Relation::Holds, "{kind}");
    }
}

#[test]
fn generated_parameters_of_posts_are_those_of_the_circuit() {
    check_generated([ProofKind::WindowPost, ProofKind::WinningPost]);
}

#[test]
#[ignore = "takes minutes; .ci/nightly runs it"]
fn generated_parameters_of_sealing_are_those_of_the_circuit() {
    check_generated([ProofKind::Porep, ProofKind::SnapDeals]);
}

#[test]
fn each_form_of_the_kernels_says_the_same() {
    let good = File::good(KIND);
    let mut damaged = File::good(KIND);
    let place = damaged.point(QueryName::L, 5);
    negate(&mut damaged.bytes[place]);
    for isa in Isa::all() {
        assert_eq!(check(&good, isa).unwrap(), Relation::Holds, "{isa}");
        assert!(check(&damaged, isa).is_err(), "{isa}");
    }
}

#[test]
fn a_point_that_was_replaced_swapped_or_negated_is_found() {
    for (number, query) in [QueryName::H, QueryName::L, QueryName::A]
        .into_iter()
        .enumerate()
    {
        for (offset, (how, damage)) in DAMAGES.into_iter().enumerate() {
            let mut file = File::good(KIND);
            let [first, middle, last] = indices(&file, query);
            // Each damage of a query has another place.
            let places = [(first, last), (middle, first), (last, middle)];
            let (index, other) = places[(number + offset) % places.len()];
            let (at, other) = (file.point(query, index), file.point(query, other));
            damage(&mut file, at, other);
            assert!(!is_unchanged(&file));
            // The points alone say nothing, whichever query and damage it is: tried once for each.
            let error = match number == offset {
                true => check_all(&file).unwrap_err(),
                false => check(&file, Isa::best()).unwrap_err(),
            };
            assert!(
                matches!(error, ParamsError::Inconsistent { .. }),
                "{query} {how} at {index}: {error}"
            );
            assert!(error.to_string().contains("of the circuit"), "{error}");
        }
    }
}

/// Both queries over B can be damaged in the same way, so that they agree.
#[test]
fn damage_of_both_queries_over_b_is_found() {
    for (how, damage) in DAMAGES {
        let mut file = File::good(KIND);
        let [_, middle, last] = indices(&file, QueryName::BG1);
        for query in [QueryName::BG1, QueryName::BG2] {
            let (at, other) = (file.point(query, middle), file.point(query, last));
            damage(&mut file, at, other);
        }
        // The points alone say nothing, and the queries agree.
        let error = check_all(&file).unwrap_err();
        assert!(
            error.to_string().contains("of the circuit"),
            "{how}: {error}"
        );
    }
}

#[test]
fn damage_of_the_key_is_found() {
    let alpha = 0..G1_BYTES;
    let last_input = |file: &File| {
        let start = IC + (file.lengths.ic - 1) * G1_BYTES;
        start..start + G1_BYTES
    };
    for place in [alpha, last_input(&File::good(KIND))] {
        let mut file = File::good(KIND);
        negate(&mut file.bytes[place]);
        let error = check_all(&file).unwrap_err();
        assert!(error.to_string().contains("of the circuit"), "{error}");
    }
}

#[test]
fn parameters_of_another_circuit_are_told_by_their_lengths() {
    let (_folder, params) = File::good(KIND).open();
    let error = check_of(&params.unwrap(), ProofKind::WinningPost, Isa::best()).unwrap_err();
    assert!(matches!(error, ParamsError::OtherCircuit { .. }), "{error}");
}

/// Rows of the constant ONE alone. No choice of its three multipliers satisfies the last row
/// but one that the check cannot find.
struct Constants;

impl bellperson::Circuit<Scalar> for Constants {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let aux = cs.alloc(|| "aux", || Ok(Scalar::from(6)))?;
        let times = |factor: u64| (Scalar::from(factor), CS::one());
        for [a, b] in [[1, 1], [2, 3], [5, 7]] {
            cs.enforce(
                || "",
                |lc| lc + times(a),
                |lc| lc + times(b),
                |lc| lc + times(a * b),
            );
        }
        cs.enforce(|| "", |lc| lc + aux, |lc| lc + CS::one(), |lc| lc + aux);
        Ok(())
    }
}

#[test]
fn a_circuit_that_cannot_be_solved_is_told_and_not_called_good() {
    let circuit = Circuit::new("constants", cuzk_pce::compile(Constants).unwrap());
    let (waste, mut bytes) = (ToxicWaste::from_seed(1), Vec::new());
    generate(
        circuit.program(),
        &waste,
        Isa::best(),
        &mut bytes,
        |_, _| {},
    )
    .unwrap();
    let lengths = circuit.query_lengths();
    let (_folder, params) = File { bytes, lengths }.open();
    let parts = (circuit.program(), circuit.densities());
    let relation = check_relation(&params.unwrap(), parts, Isa::best(), |_| ()).unwrap();
    assert!(
        matches!(relation, Relation::Unsolved { rows: 1.. }),
        "{relation:?}"
    );
}
