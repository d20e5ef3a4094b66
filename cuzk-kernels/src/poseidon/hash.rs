//! A Poseidon hash, with the choice between implementations.

use blstrs::Scalar;

use super::serial;
use crate::arithmetic::{Blst, Portable};
use crate::error::{KernelError, expect_len};
use crate::isa::{Implementation, Isa};
use crate::rounds::PoseidonConstants;
use crate::rounds::schedule::Schedule;

/// Hashes that are computed at once: batches of a multiple of it waste
/// nothing.
pub const BATCH: usize = 8;

/// A Poseidon hash of a fixed number of elements.
#[derive(Debug, Clone)]
pub struct Poseidon {
    schedule: Schedule,
    #[cfg(target_arch = "x86_64")]
    tables: crate::ifma::poseidon::Tables,
}

impl Poseidon {
    /// The hash with these constants.
    ///
    /// # Errors
    /// [`KernelError::PoseidonWidth`] if it is too wide or too narrow,
    /// [`KernelError::LengthMismatch`] if there are more or fewer constants
    /// than the width and the rounds ask for.
    pub fn new(constants: &PoseidonConstants) -> Result<Poseidon, KernelError> {
        let schedule = Schedule::new(constants)?;
        Ok(Poseidon {
            #[cfg(target_arch = "x86_64")]
            tables: crate::ifma::poseidon::Tables::new(&schedule),
            schedule,
        })
    }

    /// Elements of a preimage.
    pub fn arity(&self) -> usize {
        self.schedule.width - 1
    }

    /// Returns the number of values of a trace. With arity a there are 3·a values of the
    /// first round, and 4·(a + 1) of each further full round. Then there are 4 of each
    /// partial round, and the digest.
    pub fn trace_len(&self) -> usize {
        self.schedule.trace_len()
    }

    /// The digest of one preimage.
    ///
    /// # Errors
    /// [`KernelError::LengthMismatch`] if the preimage has not
    /// [`arity`](Self::arity) elements.
    pub fn hash(&self, preimage: &[Scalar]) -> Result<Scalar, KernelError> {
        expect_len("preimage", self.arity(), preimage.len())?;
        Ok(serial::permute::<Blst>(&self.schedule, preimage, |_| ()))
    }

    /// Hashes as many preimages as `traces` has room for. The preimages lie one after the
    /// other in `preimages`, and their traces are written in the same order. A trace's last
    /// value is the digest.
    ///
    /// For each element of each round, a trace has four values. They are the S-box's input,
    /// its square, its fourth power, and its fifth power plus the round key. The first
    /// round's inputs are the preimage, and are not repeated. The tag's S-box is a
    /// constant, and adds nothing to the trace.
    ///
    /// # Errors
    /// [`KernelError::LengthMismatch`] if `traces` is not a whole number of
    /// traces, or `preimages` not as many preimages.
    pub fn traces(
        &self,
        isa: Isa,
        preimages: &[Scalar],
        traces: &mut [Scalar],
    ) -> Result<(), KernelError> {
        let (arity, length) = (self.arity(), self.trace_len());
        let count = traces.len() / length;
        expect_len("traces", count * length, traces.len())?;
        expect_len("preimages", count * arity, preimages.len())?;
        match isa.implementation() {
            Implementation::Portable => {
                serial::traces::<Portable>(&self.schedule, preimages, traces);
            }
            Implementation::Scalar => serial::traces::<Blst>(&self.schedule, preimages, traces),
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(_) => serial::traces::<Blst>(&self.schedule, preimages, traces),
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(token) => {
                // The instructions' latency makes one hash alone slower.
                let paired = if count % BATCH == 1 { count - 1 } else { count };
                let (preimages, last_preimage) = preimages.split_at(paired * arity);
                let (traces, last_trace) = traces.split_at_mut(paired * length);
                crate::ifma::poseidon::traces(token, &self.tables, preimages, traces);
                serial::traces::<Blst>(&self.schedule, last_preimage, last_trace);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rounds::{MAX_WIDTH, SparseMatrix};
    use ff::Field;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Constants without meaning: the arithmetic is the same.
    pub(crate) fn constants(width: usize, partial_rounds: usize, seed: u64) -> PoseidonConstants {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut row = |length: usize| -> Vec<Scalar> {
            (0..length).map(|_| Scalar::random(&mut rng)).collect()
        };
        PoseidonConstants {
            domain_tag: Scalar::from(seed),
            full_rounds: 8,
            round_keys: row(8 * width + partial_rounds),
            matrix: (0..width).map(|_| row(width)).collect(),
            pre_sparse: (0..width).map(|_| row(width)).collect(),
            sparse: (0..partial_rounds)
                .map(|_| SparseMatrix {
                    column: row(width),
                    row: row(width - 1),
                })
                .collect(),
        }
    }

    fn preimages(count: usize, seed: u64) -> Vec<Scalar> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..count)
            .map(|k| match k % 7 {
                0 => Scalar::ZERO,
                1 => -Scalar::ONE,
                _ => Scalar::random(&mut rng),
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn traces_do_not_depend_on_instructions(
            width in 2..=MAX_WIDTH, partial in 0..130usize, count in 0..20usize, seed in any::<u64>()
        ) {
            let poseidon = Poseidon::new(&constants(width, partial, seed)).unwrap();
            let preimages = preimages(count * poseidon.arity(), seed);
            let length = poseidon.trace_len();
            let all: Vec<Vec<Scalar>> = Isa::all()
                .into_iter()
                .map(|isa| {
                    let mut traces = vec![Scalar::ZERO; count * length];
                    poseidon.traces(isa, &preimages, &mut traces).unwrap();
                    traces
                })
                .collect();
            for traces in &all[1..] {
                prop_assert!(traces == &all[0]);
            }
            for (preimage, trace) in preimages.chunks(width - 1).zip(all[0].chunks(length)) {
                prop_assert_eq!(poseidon.hash(preimage).unwrap(), trace[length - 1]);
            }
        }
    }

    #[test]
    fn lengths_are_checked() {
        let good = constants(3, 5, 1);
        let refuses = |change: fn(&mut PoseidonConstants)| {
            let mut bad = good.clone();
            change(&mut bad);
            assert!(Poseidon::new(&bad).is_err());
        };
        refuses(|c| c.full_rounds = 7);
        refuses(|c| c.full_rounds = 2);
        refuses(|c| c.matrix.clear());
        refuses(|c| c.matrix[1].clear());
        refuses(|c| c.pre_sparse[2].push(Scalar::ONE));
        refuses(|c| c.sparse[3].row.push(Scalar::ONE));
        refuses(|c| c.sparse[3].column.clear());
        refuses(|c| c.round_keys.truncate(3));
        assert!(Poseidon::new(&constants(MAX_WIDTH + 1, 1, 1)).is_err());

        let poseidon = Poseidon::new(&good).unwrap();
        let mut traces = vec![Scalar::ZERO; 2 * poseidon.trace_len()];
        let preimages = preimages(4, 2);
        for isa in Isa::all() {
            assert!(poseidon.traces(isa, &preimages, &mut traces).is_ok());
            assert!(poseidon.traces(isa, &preimages[1..], &mut traces).is_err());
            assert!(poseidon.traces(isa, &preimages, &mut traces[1..]).is_err());
        }
        assert!(poseidon.hash(&preimages).is_err());
    }
}
