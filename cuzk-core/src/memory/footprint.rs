//! How much memory a partition needs, from its circuit's dimensions.
//!
//! What the stages hold at once on the CPU, so that it can be reserved before it is
//! allocated; a test holds it against what a process is seen to use. A device needs
//! less. Files that are mapped are not counted here.

use blstrs::Scalar;
use cuzk_kernels::Isa;
use cuzk_kernels::msm::{TermCount, g1_sum_bytes, g2_sum_bytes};

use crate::circuit::Circuit;
use crate::config::Config;

/// A thread's stack, what it needs to sum points, and what an allocator keeps for it
/// beside what was asked for.
const THREAD_BYTES: u64 = 3 << 20;

/// What reading or compiling a circuit holds at most: 52 MB were measured for
/// the largest.
pub const READING_BYTES: u64 = 64 << 20;

const SCALAR_BYTES: u64 = size_of::<Scalar>() as u64;

/// A packed variable takes two bits, and a rank every 64 of them.
const PACKED_BITS: u64 = 3;

/// How the sums run, which decides what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Their instructions.
    pub isa: Isa,
    /// Threads of those in G1.
    pub threads: usize,
    /// Threads of the one in G2.
    pub b_g2_threads: usize,
}

impl Sums {
    /// As the configuration has them run on the CPU.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            isa: config.cpu.isa,
            threads: config.synthesis.threads,
            b_g2_threads: config.gpus.gpu_threads,
        }
    }

    fn threads_bytes(&self) -> u64 {
        self.threads.max(self.b_g2_threads) as u64 * THREAD_BYTES
    }

    /// The sums in G1, side by side: over the quotient and L as one, and over A.
    fn g1_bytes(&self, circuit: &Circuit) -> u64 {
        let quotient = TermCount {
            wide: circuit.domain_len(),
            is_plain: true,
        };
        let wide = wide_terms(circuit);
        let sum = |parts: &[TermCount]| g1_sum_bytes(self.isa, parts, self.threads);
        (sum(&[quotient, wide]) + sum(&[wide])) as u64
    }

    fn g2_bytes(&self, circuit: &Circuit) -> u64 {
        g2_sum_bytes(self.isa, &[wide_terms(circuit)], self.b_g2_threads) as u64
    }
}

/// The terms of a sum over the witness, or over a query of it.
fn wide_terms(circuit: &Circuit) -> TermCount {
    TermCount {
        wide: num_wide(circuit),
        is_plain: false,
    }
}

fn num_wide(circuit: &Circuit) -> usize {
    circuit.program().num_variables() - circuit.num_boolean()
}

/// A packed witness, or a query of it.
fn packed_bytes(circuit: &Circuit) -> u64 {
    let bits = circuit.program().num_aux() as u64 * PACKED_BITS;
    bits / 8 + num_wide(circuit) as u64 * SCALAR_BYTES
}

/// What proving a partition holds at once, in bytes: the vectors over the domain,
/// the witness three times (as it is, and as the scalars of the A and B queries),
/// and the sums in G1 and in G2: they run one after the other, on threads of their
/// own, and what one gave back the allocator keeps for its threads.
#[must_use]
pub fn partition_bytes(circuit: &Circuit, sums: &Sums) -> u64 {
    let sums_bytes = sums.g1_bytes(circuit) + sums.g2_bytes(circuit);
    buffer_bytes(circuit) + 3 * packed_bytes(circuit) + sums_bytes + sums.threads_bytes()
}

/// What a partition holds once its device region is over, in bytes: the scalars
/// of the B query, and what the sum over them takes.
#[must_use]
pub fn finish_bytes(circuit: &Circuit, sums: &Sums) -> u64 {
    packed_bytes(circuit) + sums.g2_bytes(circuit) + sums.threads_bytes()
}

/// The vectors over the domain, in bytes: a, b and what the quotient needs beside
/// them.
#[must_use]
pub fn buffer_bytes(circuit: &Circuit) -> u64 {
    3 * circuit.domain_len() as u64 * SCALAR_BYTES
}

/// What a circuit holds for as long as it is kept, in bytes: its compiled form,
/// the densities, and its domain's table of twiddles.
#[must_use]
pub fn circuit_bytes(circuit: &Circuit) -> u64 {
    let densities = 3 * circuit.program().num_variables() / 8;
    let twiddles = circuit.domain_len() / 2 * size_of::<Scalar>();
    (circuit.program().resident_bytes() + densities + twiddles) as u64
}
