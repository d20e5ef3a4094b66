//! The distinct coefficients of a circuit, each named by a number.
//!
//! Invariant: [`ONE`] and [`MINUS_ONE`] always have these names.

use super::interner::Interner;
use crate::csr::CsrError;
use ff::PrimeField;

/// The name of 1.
pub(super) const ONE: u32 = 0;
/// The name of −1.
pub(super) const MINUS_ONE: u32 = 1;

/// Names coefficients while a circuit is compiled.
#[derive(Debug)]
pub(super) struct Dictionary<S> {
    values: Vec<S>,
    /// Names by canonical bytes.
    by_bytes: Interner,
    /// The name that followed each name last time. Packings name the powers
    /// of two in order, so this is right far more often than not.
    followed_by: Vec<u32>,
    last: u32,
    scratch: Vec<u32>,
}

impl<S: PrimeField> Dictionary<S> {
    pub(super) fn new() -> Result<Self, CsrError> {
        let mut new = Dictionary {
            values: Vec::new(),
            by_bytes: Interner::default(),
            followed_by: Vec::new(),
            last: ONE,
            scratch: Vec::new(),
        };
        new.look_up(&S::ONE)?;
        new.look_up(&-S::ONE)?;
        Ok(new)
    }

    /// The name of a coefficient.
    ///
    /// # Errors
    /// [`CsrError::TooLarge`] past 2^31 words of distinct coefficients.
    pub(super) fn name(&mut self, value: &S) -> Result<u32, CsrError> {
        if value == &S::ONE {
            return Ok(ONE);
        }
        let guess = self.followed_by[self.last as usize];
        if value == &self.values[guess as usize] {
            self.last = guess;
            return Ok(guess);
        }
        let name = self.look_up(value)?;
        self.followed_by[self.last as usize] = name;
        self.last = name;
        Ok(name)
    }

    fn look_up(&mut self, value: &S) -> Result<u32, CsrError> {
        self.scratch.clear();
        for bytes in value.to_repr().as_ref().chunks(4) {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            self.scratch.push(u32::from_le_bytes(word));
        }
        let (name, new) = self.by_bytes.intern(&self.scratch)?;
        if new {
            self.values.push(*value);
            self.followed_by.push(MINUS_ONE.min(name));
        }
        Ok(name)
    }

    /// The coefficients in the order of their names.
    pub(super) fn values(&self) -> &[S] {
        &self.values
    }

    pub(super) fn into_values(self) -> Vec<S> {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use ff::Field;

    #[test]
    fn equal_coefficients_share_a_name() {
        let mut names = Dictionary::<Scalar>::new().unwrap();
        assert_eq!(names.name(&Scalar::ONE).unwrap(), ONE);
        assert_eq!(names.name(&-Scalar::ONE).unwrap(), MINUS_ONE);
        let values: Vec<_> = (2..50).map(Scalar::from).collect();
        for _ in 0..2 {
            for (i, value) in values.iter().enumerate() {
                assert_eq!(names.name(value).unwrap() as usize, i + 2);
            }
            for (i, value) in values.iter().enumerate().rev() {
                assert_eq!(names.name(value).unwrap() as usize, i + 2);
            }
        }
        assert_eq!(names.values()[2..], values);
        assert_eq!(names.into_values().len(), 50);
    }
}
