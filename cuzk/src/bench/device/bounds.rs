//! The distance of a proof from the card's best possible time.
//!
//! The least work of each part, against the card's wide multiply-adds and the
//! bandwidth of its memory. The comments of the kernels have the counts: products of
//! 32-bit limbs a multiplication, and 10 multiplications an addition. Two of the 10
//! share a reduction.

use serde::Serialize;
use supraseal_sys::device::{DeviceInfo, ProofFigures};

use super::subject::Subject;

/// The number of wide multiply-adds of a multiprocessor in a cycle.
const MULTIPLY_ADDS: f64 = 32.0;

/// The numbers of products of limbs of a multiplication in Fr and of an addition in G1.
const FR_PRODUCTS: f64 = 136.0;
const G1_PRODUCTS: f64 = 2856.0;

/// The number of passes over a vector in the six transforms, and the bytes of a scalar
/// that is read and written.
const PASSES: f64 = 15.0;
const SCALAR_BYTES: f64 = 64.0;
const G1_BYTES: f64 = 96.0;

/// The number of digits of a scalar in a long MSM.
const DIGITS: f64 = 15.0;

/// One part of a proof: its time, and the least time that it could take.
#[derive(Debug, Serialize)]
pub(super) struct Bound {
    part: &'static str,
    ms: f64,
    multiplications_ms: f64,
    bandwidth_ms: f64,
}

impl Bound {
    pub(super) fn text(&self) -> String {
        let per_cent = |least_ms: f64| 100.0 * least_ms / self.ms;
        format!(
            "{}: {:.2} ms; multiplications take {:.2} ms ({:.0} %), memory {:.2} ms ({:.0} %)",
            self.part,
            self.ms,
            self.multiplications_ms,
            per_cent(self.multiplications_ms),
            self.bandwidth_ms,
            per_cent(self.bandwidth_ms),
        )
    }
}

/// Returns the bounds of the quotient and of the MSMs in G1, which run beside it in part.
pub(super) fn bounds(info: &DeviceInfo, subject: &Subject, figures: &ProofFigures) -> [Bound; 2] {
    let per_ms = f64::from(info.multiprocessors) * MULTIPLY_ADDS * f64::from(info.clock_khz);
    let bytes_per_ms = info.memory_bandwidth as f64 / 1e3;
    let len = subject.circuit.domain_len() as f64;
    let wide = subject.witness.num_wide() as f64;
    let aux = subject.witness.aux_slice();
    let ones: u32 = aux.bits.iter().map(|word| word.count_ones()).sum();
    let butterflies = 6.0 * len / 2.0 * len.log2();
    // H; and in L and A, which have almost the same variables, ones and wide ones.
    let additions = DIGITS * len + 2.0 * (f64::from(ones) + DIGITS * wide);
    let points = len + 2.0 * (f64::from(ones) + wide);
    [
        Bound {
            part: "quotient",
            ms: figures.quotient_ms,
            multiplications_ms: butterflies * FR_PRODUCTS / per_ms,
            bandwidth_ms: PASSES * SCALAR_BYTES * len / bytes_per_ms,
        },
        Bound {
            part: "MSMs in G1",
            ms: figures.sums_ms,
            multiplications_ms: additions * G1_PRODUCTS / per_ms,
            bandwidth_ms: points * G1_BYTES / bytes_per_ms,
        },
    ]
}
