//! The vectors between a witness and its MSMs, read back from a device.
//!
//! They are for comparing provers; no proof needs them. The invariant: the vectors are
//! as long as the circuit's domain.

use blst::blst_fr;
use blstrs::Scalar;

use crate::bindings as sys;
use crate::status::{Code, Status};

/// A partition's vectors, as long as its domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intermediates {
    /// A on the witness: one value for each row of the circuit, then the inputs, then
    /// zeros.
    pub a: Vec<Scalar>,
    /// B on the witness, in the same order, with zeros for the inputs.
    pub b: Vec<Scalar>,
    /// The coefficients of the quotient, the constant one first.
    pub h: Vec<Scalar>,
}

/// The vectors as C++ writes them.
pub(crate) struct RawIntermediates {
    /// Those of a and b are in bit-reversed order, and those of h in canonical form.
    vectors: [Vec<blst_fr>; 3],
}

impl RawIntermediates {
    /// Allocates vectors of `len` values each, a power of two.
    pub(crate) fn new(len: usize) -> Self {
        Self {
            vectors: [(); 3].map(|()| vec![blst_fr::default(); len]),
        }
    }

    /// Returns pointers to which C++ writes.
    pub(crate) fn lend(&mut self) -> sys::cuzk_intermediates {
        let [a, b, h] = &mut self.vectors;
        sys::cuzk_intermediates {
            len: a.len(),
            a: a.as_mut_ptr(),
            b: b.as_mut_ptr(),
            h: h.as_mut_ptr(),
        }
    }

    /// Returns the vectors in the order and form of [`Intermediates`].
    ///
    /// # Errors
    ///
    /// [`Code::DeviceError`] if a value of h is not below the modulus.
    pub(crate) fn read(self) -> Result<Intermediates, Status> {
        let [a, b, h] = self.vectors;
        Ok(Intermediates {
            a: in_natural_order(&a),
            b: in_natural_order(&b),
            h: h.iter().map(from_canonical).collect::<Result<_, _>>()?,
        })
    }
}

fn in_natural_order(values: &[blst_fr]) -> Vec<Scalar> {
    let log = values.len().trailing_zeros();
    let reversed = |index: usize| match log {
        0 => index,
        log => index.reverse_bits() >> (usize::BITS - log),
    };
    let value = |index| Scalar::from(values[reversed(index)]);
    (0..values.len()).map(value).collect()
}

fn from_canonical(value: &blst_fr) -> Result<Scalar, Status> {
    let scalar: Option<Scalar> = Scalar::from_u64s_le(&value.l).into();
    let no_scalar = || {
        let message = format!("h: {:x?} is not below the modulus", value.l);
        Status::new(Code::DeviceError, message)
    };
    scalar.ok_or_else(no_scalar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_in_order_and_form() {
        let scalars: Vec<Scalar> = (0..8).map(Scalar::from).collect();
        let mut raw = RawIntermediates::new(8);
        for (place, from) in [0, 4, 2, 6, 1, 5, 3, 7].into_iter().enumerate() {
            raw.vectors[0][place] = scalars[from].into();
            raw.vectors[1][place] = (-scalars[from]).into();
            raw.vectors[2][place].l[0] = place as u64;
        }
        let read = raw.read().unwrap();
        assert_eq!(read.a, scalars);
        assert!(read.b.iter().zip(&scalars).all(|(b, a)| *b == -a));
        assert_eq!(read.h, scalars);
    }

    #[test]
    fn what_is_no_scalar_is_an_error() {
        let mut raw = RawIntermediates::new(1);
        raw.vectors[2][0].l = [u64::MAX; 4];
        assert_eq!(raw.read().unwrap_err().code(), Code::DeviceError);
    }
}
