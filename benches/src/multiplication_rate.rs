//! The multiplications that one core starts a cycle, as this machine does them now.
//!
//! Not a table of processors: some start one multiplication of 512 bits a cycle, and some two.
//! The invariant: no multiplication waits for one of another chain, and there are more chains
//! than a multiplication takes cycles.

#![allow(unsafe_code)] // Calls a function of instructions that were detected.

use crate::bound::{Instruction, clock_hz};
use cuzk_kernels::Isa;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Values that are multiplied side by side. A multiplication takes five cycles at most, and a
/// core starts two a cycle at most. With the factor they fit the sixteen registers of AVX2.
const CHAINS: usize = 12;

/// Multiplications of each chain.
const STEPS: u32 = 400_000;

const FACTOR: u64 = 0x000b_7c15_9e37_79b9;

/// Returns the multiplications that a core starts a cycle. The best of five runs on this thread.
/// None if the processor lacks the instruction.
pub fn per_cycle(instruction: Instruction) -> Option<f64> {
    let chains = chains(instruction)?;
    let best = (0..5).map(|_| {
        let started = Instant::now();
        chains();
        started.elapsed()
    });
    let best = best.min().unwrap_or(Duration::ZERO).as_secs_f64();
    Some(f64::from(STEPS) * CHAINS as f64 / (best * clock_hz()).max(f64::MIN_POSITIVE))
}

#[cfg(target_arch = "x86_64")]
fn chains(instruction: Instruction) -> Option<fn()> {
    Some(match instruction {
        Instruction::Madd52 => {
            Isa::ifma()?;
            // SAFETY: `Isa::ifma` is `None` unless this processor has these instructions.
            || unsafe { wide() }
        }
        Instruction::Fma => {
            Isa::avx2()?;
            // SAFETY: `Isa::avx2` is `None` unless this processor has these instructions.
            || unsafe { floating() }
        }
        Instruction::Mulx => narrow,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn chains(instruction: Instruction) -> Option<fn()> {
    (instruction == Instruction::Mulx).then_some(narrow)
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

/// Multiplies four floating-point numbers at a time. They stay near one.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn floating() {
    use std::arch::x86_64::{_mm256_fmadd_pd, _mm256_set1_pd};
    let factor = _mm256_set1_pd(black_box(0.5));
    let mut chains = [_mm256_set1_pd(black_box(1.0)); CHAINS];
    for _ in 0..STEPS {
        for value in &mut chains {
            *value = _mm256_fmadd_pd(*value, factor, factor);
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
            let instruction = Instruction::of(isa);
            let rate = per_cycle(instruction).unwrap();
            assert!((1e-3..1e3).contains(&rate), "{instruction:?}: {rate}");
        }
    }
}
