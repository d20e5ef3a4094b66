//! Which bases have multiples, and how many each.

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::Isa;
use cuzk_kernels::msm::{Chosen, Shape, WithMultiples};
use cuzk_pce::{Densities, Density, Program};

/// More rows than any MSM of a circuit is faster with.
const ROWS_MAX: usize = 32;

/// The bases of H, L, A and B in G2 that have multiples. In H they are all, or none. In the
/// others they are those of the inputs and of the variables that are not bits.
pub(super) struct Queries(pub(super) [Chosen; 4]);

/// Says if the bases of H have multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfH {
    All,
    /// H has a base for each constraint, and the others few that are wide. So they may fit
    /// where H does not.
    None,
}

impl Queries {
    pub(super) fn new(program: &Program<Scalar>, densities: &Densities, of_h: OfH) -> Self {
        let rows = program.rows() + program.num_inputs();
        let bits = program.boolean_columns();
        let is_wide = |aux: usize| !bits.contains(aux);
        // Asked for one base after the other: inputs, then aux variables.
        let of = |inputs: usize, aux: &Density| {
            let mut next = aux.iter();
            Chosen::new(inputs + aux.count(), |index| {
                index < inputs || next.next().is_some_and(is_wide)
            })
        };
        Self([
            Chosen::new(rows.next_power_of_two() - 1, |_| of_h == OfH::All),
            Chosen::new(program.num_aux(), is_wide),
            of(program.num_inputs(), &densities.a_aux),
            of(densities.b_input.count(), &densities.b_aux),
        ])
    }

    /// Returns the memory of the longest query's row while it is computed, in bytes: points,
    /// and the indices of their bases. `None` for instructions that have no form for rows.
    pub(super) fn row_bytes(&self, isa: Isa) -> Option<u64> {
        let [h, l, a, b_g2] = &self.0;
        let g1 = [h, l, a].map(|chosen| G1Affine::row_bytes(isa, chosen.count()));
        let g2 = G2Affine::row_bytes(isa, b_g2.count());
        let points = g1.into_iter().zip([h, l, a]).chain([(g2, b_g2)]);
        let bytes =
            points.map(|(bytes, chosen)| Some((bytes? + chosen.count() * size_of::<u32>()) as u64));
        bytes.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Returns the bases that have multiples in a file of at most `limit_bytes`, and their shapes.
    ///
    /// Where two rows of all queries do not fit, H has none. Then one row is worth its room:
    /// its points are decoded, and they lie together. An MSM reads them in place of a few
    /// points here and there in much larger parameters. `None` if that does not fit either.
    pub(super) fn plan(
        program: &Program<Scalar>,
        densities: &Densities,
        isa: Isa,
        (threads, limit_bytes): (usize, u64),
    ) -> Option<(Self, [Shape; 4])> {
        [(OfH::All, 2), (OfH::None, 1)]
            .into_iter()
            .find_map(|(of_h, rows_min)| {
                let queries = Self::new(program, densities, of_h);
                let shapes = queries.shapes(isa, threads, (rows_min, limit_bytes))?;
                Some((queries, shapes))
            })
    }

    /// Returns the shapes with which the MSMs take the fewest additions on `threads`
    /// threads, in a file of at most `limit_bytes`. `None` if not even `rows_min` rows fit.
    fn shapes(
        &self,
        isa: Isa,
        threads: usize,
        (rows_min, limit_bytes): (usize, u64),
    ) -> Option<[Shape; 4]> {
        let [h, l, a, b_g2] = &self.0;
        let shapes = |rows_max| {
            let shape = |terms| Shape::choose(terms, threads, rows_max);
            let h_and_l = shape(h.count() + l.count());
            [h_and_l, h_and_l, shape(a.count()), shape(b_g2.count())]
        };
        (rows_min..=ROWS_MAX).rev().map(shapes).find(|shapes| {
            let bytes = self.rows_bytes(isa, shapes);
            bytes.is_some_and(|bytes| bytes <= limit_bytes)
        })
    }

    /// Returns the size of all rows of these shapes, in bytes.
    pub(super) fn rows_bytes(&self, isa: Isa, shapes: &[Shape; 4]) -> Option<u64> {
        let [h, l, a, b_g2] = &self.0;
        let g1 = [h, l, a].into_iter().zip(shapes).map(|(chosen, shape)| {
            Some(G1Affine::row_bytes(isa, chosen.count())? as u64 * shape.rows() as u64)
        });
        let g2 = G2Affine::row_bytes(isa, b_g2.count())? as u64 * shapes[3].rows() as u64;
        g1.chain([Some(g2)]).sum()
    }
}

#[cfg(test)]
mod tests {
    use bellpepper_core::boolean::AllocatedBit;
    use bellperson::{ConstraintSystem, SynthesisError};
    use cuzk_kernels::testing;

    use super::*;
    use crate::Circuit;
    use crate::params::writing_bytes;

    const INDEX_BYTES: u64 = size_of::<u32>() as u64;

    /// The inputs x and y, three bits, and u, v and w of any value:
    /// (x + bit + u) · (y + bit + v) = w.
    struct Mixed;

    impl bellperson::Circuit<Scalar> for Mixed {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            let blank = || Err(SynthesisError::AssignmentMissing);
            let x = cs.alloc_input(|| "x", blank)?;
            let y = cs.alloc_input(|| "y", blank)?;
            let bits: [_; 3] = std::array::from_fn(|at| {
                AllocatedBit::alloc(cs.namespace(|| format!("bit {at}")), None)
            });
            let [first, second, _] = bits.map(|bit| bit.unwrap().get_variable());
            let u = cs.alloc(|| "u", blank)?;
            let v = cs.alloc(|| "v", blank)?;
            let w = cs.alloc(|| "w", blank)?;
            cs.enforce(
                || "product",
                |lc| lc + x + first + u,
                |lc| lc + y + second + v,
                |lc| lc + w,
            );
            Ok(())
        }
    }

    fn circuit() -> Circuit {
        Circuit::new("mixed", cuzk_pce::compile(Mixed).unwrap())
    }

    fn queries(counts: [usize; 4]) -> Queries {
        Queries(counts.map(|count| Chosen::new(count, |_| true)))
    }

    /// The bytes of a point in a row, in G1 and in G2.
    fn point_bytes(isa: Isa) -> [u64; 2] {
        let bytes = [G1Affine::row_bytes(isa, 1), G2Affine::row_bytes(isa, 1)];
        bytes.map(|bytes| bytes.unwrap() as u64)
    }

    #[test]
    fn inputs_and_variables_that_are_not_bits_have_multiples() {
        let chosen = |flags: &[bool]| Chosen::new(flags.len(), |index| flags[index]);
        // Four rows, and one for each of the three inputs: one, x and y.
        let h = |is_chosen| Chosen::new(7, |_| is_chosen);
        let l = chosen(&[false, false, false, true, true, true]);
        let a = chosen(&[true, true, true, false, false, false, true]);
        let b = chosen(&[true, false, false, false, true]);
        let circuit = circuit();
        for (of_h, is_chosen) in [(OfH::All, true), (OfH::None, false)] {
            let found = Queries::new(circuit.program(), circuit.densities(), of_h).0;
            assert_eq!(found, [h(is_chosen), l.clone(), a.clone(), b.clone()]);
        }
    }

    #[test]
    fn the_longest_row_is_the_memory_of_writing() {
        assert_eq!(queries([8; 4]).row_bytes(Isa::SCALAR), None);
        assert_eq!(writing_bytes(&circuit(), Isa::SCALAR), None);
        let Some(isa) = testing::ifma() else { return };
        let [g1, g2] = point_bytes(isa);
        let of_h = 7 * (g1 + INDEX_BYTES);
        assert_eq!(queries([7, 5, 6, 2]).row_bytes(isa), Some(of_h));
        let of_b = 6 * (g2 + INDEX_BYTES);
        assert_eq!(queries([7, 5, 6, 6]).row_bytes(isa), Some(of_b));
        // The circuit has two points in B, and 655,360 bytes are a thread's.
        assert_eq!(writing_bytes(&circuit(), isa), Some(of_h + 655_360));
    }

    #[test]
    fn rows_take_the_bytes_of_their_points() {
        let Some(isa) = testing::ifma() else { return };
        let [g1, g2] = point_bytes(isa);
        let shapes = [2, 3, 4, 5].map(|rows| Shape::new(8, rows).unwrap());
        let expected = g1 * (70 * 2 + 50 * 3 + 60 * 4) + g2 * 9 * 5;
        let queries = queries([70, 50, 60, 9]);
        assert_eq!(queries.rows_bytes(isa, &shapes), Some(expected));
        assert_eq!(queries.rows_bytes(Isa::SCALAR, &shapes), None);
    }

    /// H and L are summed together, so they have one shape.
    #[test]
    fn the_shapes_are_the_best_that_fit() {
        let Some(isa) = testing::ifma() else { return };
        let queries = queries([5000, 4900, 3000, 700]);
        let best = [9900, 9900, 3000, 700].map(|terms| Shape::choose(terms, 2, ROWS_MAX));
        assert_ne!(best[0], Shape::choose(100, 2, ROWS_MAX));
        assert_eq!(queries.shapes(isa, 2, (2, u64::MAX)), Some(best));
        let bytes = queries.rows_bytes(isa, &best).unwrap();
        assert_eq!(queries.shapes(isa, 2, (2, bytes)), Some(best));
        let smaller = queries.shapes(isa, 2, (2, bytes - 1)).unwrap();
        assert!(queries.rows_bytes(isa, &smaller).unwrap() < bytes);
        assert_eq!(queries.shapes(isa, 2, (2, 0)), None);
    }
}
