//! Roots of unity in the order the transforms use them.
//!
//! `T[i] = root^rev(i)`, where rev reverses the bits of an index into half the domain. With
//! blocks numbered in this order, block i of every layer uses entry i. So one table of half
//! the size serves all layers: each uses a prefix of it.

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::direction::Direction;
use super::pieces::TASK;
use crate::error::KernelError;
use cuzk_memory::Block;

/// The table for one domain. It is read in strides, so it wants huge pages.
pub(crate) struct Twiddles {
    table: Block,
    len: usize,
}

impl Twiddles {
    /// The table for a `root` of order 2^`log_size`, every entry times `scale`.
    ///
    /// # Errors
    /// [`KernelError::Memory`].
    pub(crate) fn new(root: Scalar, log_size: u32, scale: Scalar) -> Result<Self, KernelError> {
        let len = (1usize << log_size).div_ceil(2);
        let mut block = Block::map(len * size_of::<Scalar>()).map_err(KernelError::Memory)?;
        let table = block.values_mut::<Scalar>(len);
        table[0] = scale;
        // Doubling the prefix sets the index bit that stands for root^step.
        let mut factors: Vec<Scalar> = Vec::new();
        let mut factor = root;
        for _ in 1..log_size {
            factors.push(factor);
            factor = factor.square();
        }
        let mut known = 1;
        for factor in factors.iter().rev() {
            let (low, high) = table[..2 * known].split_at_mut(known);
            high.par_iter_mut()
                .zip(low.par_iter())
                .with_min_len(TASK)
                .for_each(|(high, low)| *high = low * factor);
            known *= 2;
        }
        Ok(Self { table: block, len })
    }

    /// The entries, times the scale.
    #[inline]
    pub(super) fn entries(&self) -> &[Scalar] {
        self.table.values(self.len)
    }

    /// `root^rev(i)`, or its inverse, of a table whose scale is one.
    ///
    /// The inverse needs no table. For i in [m, 2m), flipping all bits of i below m negates
    /// the exponent, except for half a turn, which is −1.
    #[inline]
    pub(crate) fn get(&self, i: usize, direction: Direction) -> Scalar {
        match direction {
            Direction::Forward => self.entries()[i],
            Direction::Inverse if i == 0 => Scalar::ONE,
            Direction::Inverse => -self.entries()[i ^ ((1 << i.ilog2()) - 1)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ntt::root_of_unity;

    #[test]
    fn entries_are_bit_reversed_powers() {
        for log_size in 1..10 {
            let root = root_of_unity(log_size);
            let twiddles = Twiddles::new(root, log_size, Scalar::ONE).unwrap();
            for i in 0..1usize << (log_size - 1) {
                let exponent = if log_size == 1 {
                    0
                } else {
                    i.reverse_bits() >> (usize::BITS - (log_size - 1))
                };
                let power = root.pow_vartime([exponent as u64]);
                assert_eq!(twiddles.get(i, Direction::Forward), power);
                assert_eq!(twiddles.get(i, Direction::Inverse) * power, Scalar::ONE);
            }
        }
    }
}
