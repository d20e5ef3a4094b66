//! Scalars of one task, sorted by the work that they take.

use blstrs::Scalar;
use ff::Field;

use super::pieces::TASK;

/// Words of packed scalars whose bases one task adds up: some 4096 ones.
pub(super) const TASK_WORDS: usize = 128;

/// Some plain scalars, by what has to be done.
pub(super) struct Sorted {
    /// Indices of those that are 1, also of packed ones.
    pub(super) plus: Vec<u32>,
    /// Indices of those that are −1.
    pub(super) minus: Vec<u32>,
    /// How many take a multiplication.
    pub(super) wide: usize,
}

impl Default for Sorted {
    fn default() -> Self {
        Self {
            plus: Vec::with_capacity(Self::PLUS_MAX),
            minus: Vec::with_capacity(TASK),
            wide: 0,
        }
    }
}

impl Sorted {
    const PLUS_MAX: usize = if TASK_WORDS * 64 > TASK {
        TASK_WORDS * 64
    } else {
        TASK
    };

    /// The bytes that it has on the heap.
    pub(super) const HEAP_BYTES: usize = (Self::PLUS_MAX + TASK) * size_of::<u32>();

    /// Sorts scalars, the first of which has index `start`. `marks` gets a bit for
    /// each that takes a multiplication.
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^31 scalars")]
    pub(super) fn sort(&mut self, start: usize, scalars: &[Scalar], marks: &mut [u64]) {
        let minus_one = -Scalar::ONE;
        self.plus.clear();
        self.minus.clear();
        self.wide = 0;
        for (word, (scalars, mark)) in scalars.chunks(64).zip(marks).enumerate() {
            *mark = 0;
            for (bit, scalar) in scalars.iter().enumerate() {
                let index = (start + word * 64 + bit) as u32;
                if *scalar == Scalar::ZERO {
                } else if *scalar == Scalar::ONE {
                    self.plus.push(index);
                } else if *scalar == minus_one {
                    self.minus.push(index);
                } else {
                    *mark |= 1 << bit;
                }
            }
            self.wide += mark.count_ones() as usize;
        }
    }
}
