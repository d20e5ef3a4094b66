//! The vectors of the argument, which a round halves.
//!
//! The names are those of SnarkPack, section 4. The proofs' points are A, B and C. The
//! commitment keys are v and w. The vector r has the powers of the challenge that combines the
//! proofs. Before the first round B and w are scaled by the powers of r and of 1/r. The invariant: all vectors are equally long, and
//! their length is a power of two.

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::pairing::PairingTerm;
use cuzk_kernels::{Context, KernelError, multiply_add};

/// The vectors of a round.
pub(super) struct Vectors {
    pub(super) a: Vec<G1Affine>,
    pub(super) b: Vec<G2Affine>,
    pub(super) c: Vec<G1Affine>,
    pub(super) r: Vec<Scalar>,
    pub(super) v: [Vec<G2Affine>; 2],
    pub(super) w: [Vec<G1Affine>; 2],
}

/// The places of a round's products of pairings; left ones come first.
pub(super) mod places {
    pub(in super::super) const COM_AB: [[usize; 2]; 2] = [[0, 1], [2, 3]];
    pub(in super::super) const COM_C: [[usize; 2]; 2] = [[4, 5], [6, 7]];
    pub(in super::super) const Z_AB: [usize; 2] = [8, 9];
    pub(in super::super) const WHOLE: usize = 10;
    pub(in super::super) const COUNT: usize = 11;
}

/// A vector's halves: the left one, and the right one.
fn halves<T>(vector: &[T]) -> [&[T]; 2] {
    let (left, right) = vector.split_at(vector.len() / 2);
    [left, right]
}

impl Vectors {
    pub(super) fn len(&self) -> usize {
        self.a.len()
    }

    /// The terms of the round's products of pairings. If `with_whole`, the product of A and
    /// B themselves is one of them: it shares B's lines.
    pub(super) fn terms(&self, with_whole: bool) -> Vec<PairingTerm<'_>> {
        let (a, b, c) = (halves(&self.a), halves(&self.b), halves(&self.c));
        let mut terms = Vec::with_capacity(6);
        // A left term has the left half of v and of B, and the right half of all others.
        for side in 0..2 {
            let other = 1 - side;
            for secret in 0..2 {
                terms.push(PairingTerm {
                    g2: halves(&self.v[secret])[side],
                    factors: vec![
                        (places::COM_AB[side][secret], a[other]),
                        (places::COM_C[side][secret], c[other]),
                    ],
                });
            }
            let w = [0, 1].map(|secret| halves(&self.w[secret])[other]);
            let mut factors = vec![
                (places::COM_AB[side][0], w[0]),
                (places::COM_AB[side][1], w[1]),
                (places::Z_AB[side], a[other]),
            ];
            if with_whole {
                factors.push((places::WHOLE, a[side]));
            }
            terms.push(PairingTerm {
                g2: b[side],
                factors,
            });
        }
        terms
    }

    /// Returns the halves of C and r whose sums are the round's cross terms.
    pub(super) fn sums(&self) -> [(&[G1Affine], &[Scalar]); 2] {
        let (c, r) = (halves(&self.c), halves(&self.r));
        [(c[1], r[0]), (c[0], r[1])]
    }

    /// Adds the right halves to the left ones. Those of A, C and w are multiplied by `x`
    /// before, and those of B, r and v by its inverse.
    pub(super) fn fold(
        self,
        context: Context<'_>,
        x: Scalar,
        x_inverse: Scalar,
    ) -> Result<Self, KernelError> {
        let [w0, w1] = self.w;
        let [v0, v1] = self.v;
        let in_g1 = [self.a, self.c, w0, w1];
        let in_g2 = [self.b, v0, v1];
        let (in_g1, in_g2) = rayon::join(
            || fold_all(&in_g1, x, |l, r, s| multiply_add::g1(context, l, r, s)),
            || {
                fold_all(&in_g2, x_inverse, |l, r, s| {
                    multiply_add::g2(context, l, r, s)
                })
            },
        );
        let ([a, c, w0, w1], [b, v0, v1]) = (in_g1?, in_g2?);
        let [left, right] = halves(&self.r);
        let r = left.iter().zip(right).map(|(l, r)| l + r * x_inverse);
        Ok(Self {
            a,
            b,
            c,
            r: r.collect(),
            v: [v0, v1],
            w: [w0, w1],
        })
    }
}

/// Folds vectors with the same factor, in one call of the kernel.
fn fold_all<A: Copy, const N: usize>(
    vectors: &[Vec<A>; N],
    factor: Scalar,
    multiply_add: impl Fn(&[A], &[A], &[Scalar]) -> Result<Vec<A>, KernelError>,
) -> Result<[Vec<A>; N], KernelError> {
    let side = |side: usize| -> Vec<A> {
        vectors
            .iter()
            .flat_map(|vector| halves(vector)[side])
            .copied()
            .collect()
    };
    let (left, right) = (side(0), side(1));
    let folded = multiply_add(&left, &right, &vec![factor; right.len()])?;
    let half = folded.len() / N;
    Ok(std::array::from_fn(|i| {
        folded[i * half..(i + 1) * half].to_vec()
    }))
}
