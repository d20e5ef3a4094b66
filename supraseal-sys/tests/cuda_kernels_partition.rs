//! One partition through all kernels, run on the host, in the order in which the host
//! side calls them. The flat circuit and the packed witness go in. The results are h
//! and the five MSMs. Each is compared with that of `cuzk-pce` and `cuzk-kernels`.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_kernels::{naive, ntt::Domain, quotient};
use cuzk_pce::{Density, PackedWitness, compile};
use ff::Field;
use group::{Group, prime::PrimeCurveAffine};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use supraseal_sys::emulated::{self, Kernels, NO_BASE, Query, RootsShape, Scalars};

mod gadgets;

use gadgets::Gadgets;

/// Returns points to add, some of them equal.
fn bases<P>(len: usize, rng: &mut ChaCha8Rng) -> Vec<P>
where
    P: PrimeCurveAffine<Scalar = Scalar> + From<P::Curve>,
{
    let few: Vec<_> = (0..64u64)
        .map(|k| P::from(P::generator() * Scalar::from(k * k + 1)))
        .collect();
    (0..len).map(|_| few[rng.gen_range(0..few.len())]).collect()
}

/// The variables of a query.
struct Columns {
    inputs: Vec<usize>,
    /// All variables, if there is none.
    aux: Option<Density>,
}

/// Computes the MSM of a query as the host side does: the ones as a sum, and the inputs
/// and the wide values through buckets.
fn query_sum<P: Kernels>(
    bases: &[P],
    columns: &Columns,
    witness: &PackedWitness<Scalar>,
) -> P::Sum {
    let mask = columns.aux.as_ref().map_or(&[][..], Density::words);
    let counts = mask.iter().map(|word| word.count_ones());
    let ranks: Vec<u32> = counts
        .scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count)))
        .collect();
    let query = Query {
        mask: columns.aux.is_some().then_some((mask, &ranks)),
        before: u32::try_from(columns.inputs.len()).unwrap(),
        first_base: 0,
        num_bases: u32::try_from(bases.len()).unwrap(),
    };
    let packed = gadgets::packed(witness);
    let words = witness.to_plain().aux().len().div_ceil(64);
    let ones = P::sum(bases, &query, &packed.bits[..words]).unwrap();

    // The scalars are uploaded once for all queries: all inputs, then all wide values.
    let mut places = vec![NO_BASE; packed.inputs.len()];
    for (base, input) in columns.inputs.iter().enumerate() {
        places[*input] = u32::try_from(base).unwrap();
    }
    let wide = &packed.wide[..words];
    places.extend(emulated::wide_bases(&query, wide, packed.ranks).unwrap());
    let values = [packed.inputs, packed.wide_values].concat();
    let scalars = Scalars {
        values: &values,
        places: Some(&places),
        is_canonical: false,
    };
    let bits = emulated::window_bits(values.len());
    ones + P::msm(bases, &scalars, bits).unwrap()
}

/// Computes the MSM of a query value by value.
fn expected_sum<P: PrimeCurveAffine<Scalar = Scalar>>(
    bases: &[P],
    columns: &Columns,
    witness: &PackedWitness<Scalar>,
) -> P::Curve {
    let plain = witness.to_plain();
    let inputs = columns.inputs.iter().map(|input| plain.inputs()[*input]);
    let aux: Vec<_> = match &columns.aux {
        Some(aux) => aux.iter().map(|index| plain.aux()[index]).collect(),
        None => plain.aux().to_vec(),
    };
    let scalars: Vec<_> = inputs.chain(aux).collect();
    assert_eq!(scalars.len(), bases.len());
    naive::msm(bases, &scalars)
}

#[test]
fn a_partition_is_the_cpus() {
    let mut rng = ChaCha8Rng::seed_from_u64(40);
    let program = compile(Gadgets { turns: 12, seed: 9 }).unwrap();
    let witness = gadgets::witness(&program, 20, &mut rng);
    let len = program.rows() + program.num_inputs();
    let log = len.next_power_of_two().ilog2();

    let flat = program.flatten().unwrap();
    let packed = gadgets::packed(&witness);
    let [mut a, mut h] = emulated::evaluate(&gadgets::program(&flat), &packed, log, true).unwrap();
    let roots = RootsShape { log, low_log: log };
    assert_eq!(emulated::quotient(roots, &mut a, &mut h, true), 0);

    let [mut expected, mut b] = [(); 2].map(|()| vec![Scalar::ZERO; len]);
    program
        .evaluate_into(&witness, &mut expected, &mut b, &cuzk_memory::NEVER_STOP)
        .unwrap();
    expected.resize(1 << log, Scalar::ZERO);
    b.resize(1 << log, Scalar::ZERO);
    let domain = Domain::new(log).unwrap();
    quotient::quotient(&domain, &mut expected, &mut b).unwrap();
    // H has one base less than the domain has points.
    let h_bases = bases::<G1Affine>((1 << log) - 1, &mut rng);
    let scalars = Scalars {
        values: &h[..h_bases.len()],
        places: None,
        is_canonical: true,
    };
    let bits = emulated::window_bits(h_bases.len());
    let sum = G1Affine::msm(&h_bases, &scalars, bits).unwrap();
    let cpu = cuzk_kernels::msm::g1(&h_bases, &expected[..h_bases.len()]).unwrap();
    assert_eq!(sum, cpu);

    let densities = program.densities();
    let l = Columns {
        inputs: vec![],
        aux: None,
    };
    let a = Columns {
        inputs: (0..program.num_inputs()).collect(),
        aux: Some(densities.a_aux),
    };
    let b = Columns {
        inputs: densities.b_input.iter().collect(),
        aux: Some(densities.b_aux),
    };
    for columns in [&l, &a, &b] {
        let aux = columns
            .aux
            .as_ref()
            .map_or(program.num_aux(), Density::count);
        let len = columns.inputs.len() + aux;
        let points = bases::<G1Affine>(len, &mut rng);
        let expected: G1Projective = expected_sum(&points, columns, &witness);
        assert_eq!(query_sum(&points, columns, &witness), expected);
        assert!(!bool::from(expected.is_identity()));
    }
    let aux = b.aux.as_ref().map_or(0, Density::count);
    let points = bases::<G2Affine>(b.inputs.len() + aux, &mut rng);
    let expected: G2Projective = expected_sum(&points, &b, &witness);
    assert_eq!(query_sum(&points, &b, &witness), expected);
}
