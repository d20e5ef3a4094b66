//! A small circuit with all that a proof of it needs. Its five MSMs are computed the
//! slow way: each point is a known multiple of the generator.

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_kernels::Isa;
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::quotient::quotient;
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use supraseal_sys::device::{
    CircuitArrays, CircuitSource, DeviceSums, Intermediates, Queries, WitnessArrays, WitnessSource,
};

const INPUT_BIT: u32 = 1 << 31;

/// The size of a circuit to make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) log_domain: u32,
    pub(crate) num_inputs: u32,
    pub(crate) num_aux: u32,
}

/// A term: a variable (inputs first) and the index of its coefficient.
type Term = (u32, u32);

pub(crate) struct Small {
    size: Size,
    rows: Vec<[Vec<Term>; 2]>,
    coefficients: Vec<Scalar>,
    integers: Vec<i32>,
    part_ends: Vec<u32>,
    items: Vec<[u32; 2]>,
    shapes: Vec<[u32; 2]>,
    unit_rows: Vec<[u32; 2]>,
    block_references: Vec<u32>,
    a_aux: Vec<u64>,
    b_aux: Vec<u64>,
    b_inputs: Vec<u32>,
    /// By query, each point's multiple of the generator.
    multiples: Queries<Vec<Scalar>>,
    pub(crate) points: Queries<Vec<u8>>,
}

// SAFETY: the indices are made below, each in range.
unsafe impl CircuitSource for Small {
    fn arrays(&self) -> CircuitArrays<'_> {
        CircuitArrays {
            log_domain: self.size.log_domain,
            rows: self.rows.len() as u32,
            num_inputs: self.size.num_inputs,
            num_aux: self.size.num_aux,
            max_wide: self.size.num_aux,
            coefficients: &self.coefficients,
            integers: &self.integers,
            part_ends: &self.part_ends,
            items: self.items.as_flattened(),
            shapes: self.shapes.as_flattened(),
            unit_rows: self.unit_rows.as_flattened(),
            references: &[0, 0, 0],
            block_references: &self.block_references,
            a_aux: &self.a_aux,
            b_aux: &self.b_aux,
            b_inputs: &self.b_inputs,
            points: Queries {
                h: &self.points.h,
                l: &self.points.l,
                a: &self.points.a,
                b_g1: &self.points.b_g1,
                b_g2: &self.points.b_g2,
            },
        }
    }
}

fn mask(words: &mut [u64], index: u32) {
    words[index as usize / 64] |= 1 << (index % 64);
}

fn has(words: &[u64], index: u32) -> bool {
    words[index as usize / 64] >> (index % 64) & 1 == 1
}

impl Small {
    pub(crate) fn new(size: Size, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let words = size.num_aux.div_ceil(64) as usize;
        let variables = size.num_inputs + size.num_aux;
        let num_rows = (1u32 << size.log_domain) * 7 / 8 - size.num_inputs;
        let integers = vec![1, -1, 2, 0];
        let coefficients = vec![
            Scalar::ONE,
            -Scalar::ONE,
            Scalar::from(2),
            Scalar::random(&mut rng),
        ];
        let mut small = Self {
            size,
            rows: Vec::new(),
            coefficients,
            integers,
            part_ends: Vec::new(),
            items: Vec::new(),
            shapes: Vec::new(),
            unit_rows: Vec::new(),
            block_references: vec![0; num_rows.div_ceil(256) as usize + 1],
            a_aux: vec![0; words],
            b_aux: vec![0; words],
            b_inputs: Vec::new(),
            multiples: Queries::default(),
            points: Queries::default(),
        };
        for row in 0..num_rows {
            let mut part = |terms: u32| -> Vec<Term> {
                (0..rng.gen_range(0..terms))
                    .map(|_| (rng.gen_range(0..variables), rng.gen_range(0..4)))
                    .collect()
            };
            small.push_row(row, [part(5), part(3)]);
        }
        small.make_points(&mut rng);
        small
    }

    fn push_row(&mut self, row: u32, parts: [Vec<Term>; 2]) {
        for part in &parts {
            for &(variable, coefficient) in part {
                let col = match variable.checked_sub(self.size.num_inputs) {
                    None => INPUT_BIT | variable,
                    // Counted back from the cursor.
                    Some(aux) => self.size.num_aux - aux,
                };
                self.items.push([col, coefficient]);
            }
            self.part_ends.push(self.items.len() as u32);
        }
        for (which, part) in parts.iter().enumerate() {
            for &(variable, _) in part {
                match variable.checked_sub(self.size.num_inputs) {
                    None if which == 1 => self.b_inputs.push(variable),
                    None => {}
                    Some(aux) => mask([&mut self.a_aux, &mut self.b_aux][which], aux),
                }
            }
        }
        self.shapes.push([2 * row, 2 * row + 1]);
        self.unit_rows.push([row, self.size.num_aux]);
        self.rows.push(parts);
    }

    fn make_points(&mut self, rng: &mut ChaCha8Rng) {
        self.b_inputs.sort_unstable();
        self.b_inputs.dedup();
        let ones = |words: &[u64]| {
            words
                .iter()
                .map(|word| word.count_ones() as usize)
                .sum::<usize>()
        };
        let a = self.size.num_inputs as usize + ones(&self.a_aux);
        let b = self.b_inputs.len() + ones(&self.b_aux);
        let mut random = |len| {
            (0..len)
                .map(|_| Scalar::random(&mut *rng))
                .collect::<Vec<_>>()
        };
        let multiples = Queries {
            h: random((1 << self.size.log_domain) - 1),
            l: random(self.size.num_aux as usize),
            a: random(a),
            b_g1: random(b),
            b_g2: random(b),
        };
        let g1 = |multiples: &[Scalar]| -> Vec<u8> {
            let of = |multiple: &Scalar| (G1Affine::generator() * multiple).to_affine();
            multiples
                .iter()
                .flat_map(|multiple| of(multiple).to_uncompressed())
                .collect()
        };
        let g2 = |multiples: &[Scalar]| -> Vec<u8> {
            let of = |multiple: &Scalar| (G2Affine::generator() * multiple).to_affine();
            multiples
                .iter()
                .flat_map(|multiple| of(multiple).to_uncompressed())
                .collect()
        };
        self.points = Queries {
            h: g1(&multiples.h),
            l: g1(&multiples.l),
            a: g1(&multiples.a),
            b_g1: g1(&multiples.b_g1),
            b_g2: g2(&multiples.b_g2),
        };
        self.multiples = multiples;
    }

    /// Returns a witness of which about one value in `wide_every` is not a bit.
    pub(crate) fn witness(&self, seed: u64, wide_every: u32) -> Arc<Packed> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = vec![Scalar::ONE];
        values.extend((1..self.size.num_inputs).map(|_| Scalar::random(&mut rng)));
        let words = self.size.num_aux.div_ceil(64) as usize + 1;
        let (mut bits, mut wide) = (vec![0; words], vec![0; words]);
        let mut wide_values = Vec::new();
        for aux in 0..self.size.num_aux {
            let value = if rng.gen_ratio(1, wide_every) {
                mask(&mut wide, aux);
                wide_values.push(Scalar::random(&mut rng));
                wide_values[wide_values.len() - 1]
            } else if rng.r#gen() {
                mask(&mut bits, aux);
                Scalar::ONE
            } else {
                Scalar::ZERO
            };
            values.push(value);
        }
        Arc::new(Packed {
            num_inputs: self.size.num_inputs as usize,
            values,
            bits,
            wide,
            wide_values,
        })
    }

    /// Computes the MSMs from the multiples of the points.
    pub(crate) fn sums(&self, witness: &Packed) -> DeviceSums {
        let (inputs, aux) = witness.values.split_at(witness.num_inputs);
        let chosen = |words: &[u64]| -> Vec<Scalar> {
            let of = |&(index, _): &(usize, &Scalar)| has(words, index as u32);
            aux.iter()
                .enumerate()
                .filter(of)
                .map(|(_, value)| *value)
                .collect()
        };
        let a = [inputs, &chosen(&self.a_aux)].concat();
        let b_inputs: Vec<_> = self.b_inputs.iter().map(|&i| inputs[i as usize]).collect();
        let b = [b_inputs, chosen(&self.b_aux)].concat();
        let h = self.intermediates(witness).h;
        let g1 = |scalars: &[Scalar], multiples: &[Scalar]| {
            G1Projective::generator() * inner_product(scalars, multiples)
        };
        DeviceSums {
            h: g1(&h[..h.len() - 1], &self.multiples.h),
            l: g1(aux, &self.multiples.l),
            a: g1(&a, &self.multiples.a),
            b_g1: g1(&b, &self.multiples.b_g1),
            b_g2: G2Projective::generator() * inner_product(&b, &self.multiples.b_g2),
        }
    }

    /// Computes A and B row by row, and the quotient with the CPU's kernels.
    pub(crate) fn intermediates(&self, witness: &Packed) -> Intermediates {
        let domain = Domain::with(Isa::SCALAR, self.size.log_domain).unwrap();
        let len = 1 << self.size.log_domain;
        let part = |which: usize| -> Vec<Scalar> {
            let term = |&(variable, coefficient): &Term| {
                witness.values[variable as usize] * self.coefficients[coefficient as usize]
            };
            let of = |parts: &[Vec<Term>; 2]| parts[which].iter().map(term).sum();
            self.rows.iter().map(of).collect()
        };
        let (mut a, mut b) = (part(0), part(1));
        a.extend(&witness.values[..witness.num_inputs]);
        a.resize(len, Scalar::ZERO);
        b.resize(len, Scalar::ZERO);
        let (mut h, mut spoilt) = (a.clone(), b.clone());
        quotient(&domain, &mut h, &mut spoilt).unwrap();
        Intermediates { a, b, h }
    }
}

fn inner_product(a: &[Scalar], b: &[Scalar]) -> Scalar {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) struct Packed {
    num_inputs: usize,
    values: Vec<Scalar>,
    bits: Vec<u64>,
    wide: Vec<u64>,
    wide_values: Vec<Scalar>,
}

impl WitnessSource for Packed {
    fn arrays(&self) -> WitnessArrays<'_> {
        WitnessArrays {
            inputs: &self.values[..self.num_inputs],
            bits: &self.bits,
            wide: &self.wide,
            wide_values: &self.wide_values,
        }
    }
}
