//! The slow twin of [`b_g2_msm`](crate::b_g2_msm): double-and-add, one bit at a time.

use blstrs::{G2Affine, G2Projective, Scalar};
use group::Group;

/// Returns `scalar · base`.
#[must_use]
pub fn g2_mul(base: &G2Affine, scalar: &Scalar) -> G2Projective {
    let mut product = G2Projective::identity();
    for byte in scalar.to_bytes_be() {
        for bit in (0..8).rev() {
            product += product;
            if byte >> bit & 1 == 1 {
                product += base;
            }
        }
    }
    product
}

/// Returns `Σ scalars[i] · bases[i]`, over as many as both slices have.
#[must_use]
pub fn b_g2_msm(bases: &[G2Affine], scalars: &[Scalar]) -> G2Projective {
    let products = bases
        .iter()
        .zip(scalars)
        .map(|(base, scalar)| g2_mul(base, scalar));
    products.fold(G2Projective::identity(), |sum, product| sum + product)
}
