//! Roots of unity in the order the transforms use them.
//!
//! `T[i] = root^rev(i)`, where rev reverses the bits of an index into half the
//! domain. With blocks numbered in this order, block i of every layer uses
//! the same entry i, so one table of half the size serves all layers, each a
//! prefix of it.

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::{TASK, pass::Direction};

/// The table for one domain.
pub(crate) struct Twiddles {
    table: Vec<Scalar>,
}

impl Twiddles {
    /// The table for a `root` of order 2^`log_size`, every entry times `scale`.
    pub(crate) fn new(root: Scalar, log_size: u32, scale: Scalar) -> Twiddles {
        let half = (1usize << log_size).div_ceil(2);
        let mut table = vec![scale; half];
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
        Twiddles { table }
    }

    /// The entries, times the scale.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn entries(&self) -> &[Scalar] {
        &self.table
    }

    /// `root^rev(i)`, or its inverse, of a table whose scale is one.
    ///
    /// The inverse needs no table: within [m, 2m), flipping all bits of i
    /// below m negates the exponent but for half a turn, which is −1.
    #[inline]
    pub(crate) fn get(&self, i: usize, direction: Direction) -> Scalar {
        match direction {
            Direction::Forward => self.table[i],
            Direction::Inverse if i == 0 => Scalar::ONE,
            Direction::Inverse => -self.table[i ^ ((1 << i.ilog2()) - 1)],
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
            let twiddles = Twiddles::new(root, log_size, Scalar::ONE);
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
