//! The multiplications that one core starts a cycle, as this machine does them now.
//!
//! Not a table of processors: some start one multiplication of 512 bits a cycle, and some two.
//! The invariant: no multiplication waits for one of another chain, and there are more chains
//! than a multiplication takes cycles.

#![allow(unsafe_code)] // Calls a function of instructions that were detected.

use crate::bound::clock_hz;
use cuzk_kernels::Isa;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Values that are multiplied side by side. A multiplication takes four cycles at most on the
/// processors that have IFMA, and a core starts two a cycle at most.
const CHAINS: usize = 16;

/// Multiplications of each chain.
const STEPS: u32 = 400_000;

const FACTOR: u64 = 0x000b_7c15_9e37_79b9;

/// Returns the multiplications that a core starts a cycle: `vpmadd52luq` for IFMA, and `mulx` for
/// other instructions. The best of five runs on this thread.
pub fn per_cycle(isa: Isa) -> f64 {
    let chains = chains(isa);
    let best = (0..5).map(|_| {
        let started = Instant::now();
        chains();
        started.elapsed()
    });
    let best = best.min().unwrap_or(Duration::ZERO).as_secs_f64();
    f64::from(STEPS) * CHAINS as f64 / (best * clock_hz()).max(f64::MIN_POSITIVE)
}

#[cfg(target_arch = "x86_64")]
fn chains(isa: Isa) -> fn() {
    if Some(isa) == Isa::ifma() {
        // SAFETY: `Isa::ifma` is `None` unless this processor has these instructions.
        || unsafe { wide() }
    } else {
        narrow
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn chains(_: Isa) -> fn() {
    narrow
}

/// Multiplies eight words of 52 bits at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512ifma")]
fn wide() {
    use std::arch::x86_64::{_mm512_madd52lo_epu64, _mm512_set1_epi64};
    let factor = _mm512_set1_epi64(black_box(FACTOR).cast_signed());
    let mut chains = [factor; CHAINS];
    for _ in 0..STEPS {
        for value in &mut chains {
            *value = _mm512_madd52lo_epu64(*value, *value, factor);
        }
    }
    black_box(chains);
}

/// Multiplies words of 64 bits, and uses both halves of each product.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the two halves of a product"
)]
fn narrow() {
    let factor = u128::from(black_box(FACTOR));
    let mut chains = [FACTOR; CHAINS];
    for _ in 0..STEPS {
        for value in &mut chains {
            let product = u128::from(*value) * factor;
            *value = (product as u64) ^ (product >> 64) as u64;
        }
    }
    black_box(chains);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wide enough for a core that other programs use, too: the clock may have changed between the
    /// two measurements.
    #[test]
    fn the_rate_is_that_of_a_core() {
        for isa in Isa::all() {
            let rate = per_cycle(isa);
            assert!((1e-3..1e3).contains(&rate), "{isa}: {rate}");
        }
    }
}
