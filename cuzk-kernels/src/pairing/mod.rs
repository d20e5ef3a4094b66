//! Products of pairings over BLS12-381, several at a time.
//!
//! A product is `Π e(P_i, Q_i)` with P_i in G1 and Q_i in G2. The lines of a Miller loop
//! depend on Q_i alone. So the products of one call name their points of G2 in
//! [`PairingTerm`]s. A term says with which points of G1 they are paired, and for which
//! product. The lines are computed once a term.
//!
//! Not a verifier: nothing here compares. The invariant: products are those of
//! [`blstrs::pairing`], also with points at infinity, whose pairing is 1.

#[cfg(target_arch = "x86_64")]
mod lanes;
mod serial;

use blstrs::{G1Affine, G2Affine, Gt};

use crate::context::Context;
use crate::error::{KernelError, expect_len};
#[cfg(target_arch = "x86_64")]
use crate::isa::Implementation;

/// Points of G2, and the products that they are factors of.
#[derive(Clone, Debug)]
pub struct PairingTerm<'a> {
    /// The points of G2.
    pub g2: &'a [G2Affine],
    /// Indices of products, each with as many points of G1: `Π e(points[i], g2[i])` is a
    /// factor of the product.
    pub factors: Vec<(usize, &'a [G1Affine])>,
}

/// Returns `count` products of pairings. A product that no term names is 1.
///
/// # Errors
/// [`KernelError::LengthMismatch`] if a factor has more or fewer points than its term, or
/// names a product that is not below `count`; [`KernelError::Stopped`].
pub fn products<'a>(
    context: impl Into<Context<'a>>,
    count: usize,
    terms: &[PairingTerm<'_>],
) -> Result<Vec<Gt>, KernelError> {
    let context = context.into();
    for term in terms {
        for (product, points) in &term.factors {
            expect_len(
                "points of G1 of a pairing term",
                term.g2.len(),
                points.len(),
            )?;
            if *product >= count {
                return Err(KernelError::LengthMismatch {
                    what: "products of pairings",
                    expected: count,
                    got: product.saturating_add(1),
                });
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    if let Implementation::Ifma(token) = context.isa.implementation()
        && !lanes::has_infinity(terms)
    {
        return lanes::products(&context, token, count, terms);
    }
    serial::products(&context, count, terms)
}
