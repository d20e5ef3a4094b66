//! Roots of unity of the scalar field.

use blstrs::Scalar;
use ff::{Field, PrimeField};

/// The root of unity of order 2^`log_order`, as bellperson chooses it;
/// `log_order` is at most the field's two-adicity.
pub(crate) fn root_of_unity(log_order: u32) -> Scalar {
    (log_order..Scalar::S).fold(Scalar::ROOT_OF_UNITY, |root, _| root.square())
}
