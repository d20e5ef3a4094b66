//! Evaluation of A and B under throttles that the engine does not use.
//!
//! The same loop as [`cuzk_pce::evaluate`]'s, over the same chunks, with another
//! idea of what to do while the throttle is raised.
//!
//! Invariant: whatever the policy, the result is [`cuzk_pce::evaluate`]'s.

use blstrs::Scalar;
use cuzk_memory::WAIT_MAX;
use cuzk_pce::{CHUNK_ROWS, CsrMatrix, Evaluated, R1cs, THROTTLE_CHUNKS, Witness};
use ff::Field;
use rayon::prelude::*;
use std::{
    sync::atomic::{AtomicI32, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// The reaction of a thread that finds the throttle raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// One `yield_now` before every 64th chunk.
    Yield,
    /// Sleeps before every chunk until it is lowered, all threads together for
    /// at most [`WAIT_MAX`] a call.
    ParkEveryChunk,
    /// Every second thread of the pool sleeps so; the others go on.
    FewerThreads,
}

/// One sleep of a parked thread.
const NAP: Duration = Duration::from_micros(100);

struct Gate<'a> {
    policy: Policy,
    throttle: &'a AtomicI32,
    start: Instant,
    /// When parking ends for good, in microseconds after `start`; 0 before
    /// the first has parked.
    until_us: AtomicU64,
}

impl Gate<'_> {
    fn pass(&self, chunk: usize) {
        match self.policy {
            Policy::Yield => {
                if chunk.is_multiple_of(THROTTLE_CHUNKS) && self.raised() {
                    thread::yield_now();
                }
            }
            Policy::ParkEveryChunk => self.park(),
            Policy::FewerThreads => {
                if rayon::current_thread_index().is_some_and(|thread| thread % 2 == 1) {
                    self.park();
                }
            }
        }
    }

    fn park(&self) {
        while self.raised() && self.may_wait() {
            thread::sleep(NAP);
        }
    }

    fn raised(&self) -> bool {
        self.throttle.load(Ordering::Acquire) > 0
    }

    /// Returns true while the bound lasts, which starts with the first thread that asks.
    fn may_wait(&self) -> bool {
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let now = micros(self.start.elapsed());
        let until = now.saturating_add(micros(WAIT_MAX));
        match (self.until_us).compare_exchange(0, until, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(until) => now < until,
        }
    }
}

/// a = A·w and b = B·w, with the rows of the public inputs appended.
///
/// # Errors
/// If the witness is not of this circuit.
pub fn evaluate(
    r1cs: &R1cs<Scalar>,
    witness: &Witness<Scalar>,
    policy: Policy,
    throttle: &AtomicI32,
) -> crate::Result<Evaluated<Scalar>> {
    if r1cs.num_variables() != witness.values().len() {
        return Err("the witness is not of this circuit".into());
    }
    let gate = Gate {
        policy,
        throttle,
        start: Instant::now(),
        until_us: AtomicU64::new(0),
    };
    let mut a = product(r1cs.a(), witness.values(), &gate);
    let mut b = product(r1cs.b(), witness.values(), &gate);
    a.extend_from_slice(witness.inputs());
    b.resize(a.len(), Scalar::ZERO);
    Ok(Evaluated { a, b })
}

fn product(matrix: &CsrMatrix<Scalar>, witness: &[Scalar], gate: &Gate<'_>) -> Vec<Scalar> {
    let mut out = vec![Scalar::ZERO; matrix.rows()];
    out.par_chunks_mut(CHUNK_ROWS)
        .enumerate()
        .for_each(|(chunk, out)| {
            gate.pass(chunk);
            for (value, row) in out.iter_mut().zip(matrix.rows_from(chunk * CHUNK_ROWS)) {
                *value = row.dot(witness);
            }
        });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::Hashes;
    use cuzk_pce::{record, witness};

    #[test]
    fn every_policy_evaluates_to_the_same() {
        let circuit = |blank| Hashes { count: 1, blank };
        let r1cs = record(circuit(true)).unwrap();
        let witness = witness(circuit(false)).unwrap();
        let expected = cuzk_pce::evaluate(&r1cs, &witness, None).unwrap();
        for raised in [0, 1] {
            let throttle = AtomicI32::new(raised);
            for policy in [Policy::Yield, Policy::ParkEveryChunk, Policy::FewerThreads] {
                let got = evaluate(&r1cs, &witness, policy, &throttle).unwrap();
                assert_eq!(got, expected);
            }
        }
    }

    #[test]
    fn parking_is_bounded_for_the_call() {
        let throttle = AtomicI32::new(1);
        let gate = Gate {
            policy: Policy::ParkEveryChunk,
            throttle: &throttle,
            start: Instant::now(),
            until_us: AtomicU64::new(0),
        };
        gate.pass(1);
        assert!(gate.start.elapsed() >= WAIT_MAX);
        assert!(!gate.may_wait());
        // Returns, raised as it is.
        gate.pass(2);
    }
}
