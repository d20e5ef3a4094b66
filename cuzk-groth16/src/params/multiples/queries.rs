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
