//! Recorded runs, and executing them again: the smallest program that shows
//! what a cell costs when many machines run at once.
//!
//! A trace is a program, its input, and the outcome it had over the slow
//! cell. [`re_execute`] runs many of them over several threads and compares.

use super::{
    felt::{Arithmetic, Felt},
    machine::{Fault, Machine, Op, Outcome, Reg},
};
use cuzk_pce::cell::{EnumCell, MemoryCell, Relocatable, Value};
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The way in which the traces use their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Writes cells in order, each the sum of the two before it.
    Fibonacci,
    /// Follows addresses through all of memory, in a random order.
    Walk,
    /// Multiplies and adds what addresses in order point to at random, and
    /// writes the partial sums.
    Gather,
}

impl Program {
    /// All of them.
    pub const ALL: [Program; 3] = [Program::Fibonacci, Program::Walk, Program::Gather];

    /// A word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Program::Fibonacci => "fibonacci",
            Program::Walk => "walk",
            Program::Gather => "gather",
        }
    }

    /// Instructions and input, for about `cells` cells of memory.
    fn build(self, cells: u64, seed: u64) -> (Vec<Op>, Vec<Value<u64>>) {
        match self {
            Program::Fibonacci => (fibonacci(cells), vec![Value::Int(seed), Value::Int(1)]),
            Program::Walk => (walk(cells), cycle(cells, seed)),
            Program::Gather => {
                let half = cells / 3;
                let numbers = (0..half).map(|i| Value::Int(i.wrapping_mul(seed | 1)));
                let addresses = (cycle(half, seed).into_iter()).map(|value| match value {
                    Value::Relocatable(address) => Value::Relocatable(Relocatable {
                        offset: address.offset + half,
                        ..address
                    }),
                    int => int,
                });
                (gather(half), addresses.chain(numbers).collect())
            }
        }
    }
}

const BASE: Reg = Reg(0);
const LEFT: Reg = Reg(1);
const ONE: Reg = Reg(2);
const A: Reg = Reg(3);
const B: Reg = Reg(4);
const SUM: Reg = Reg(5);
const OUT: Reg = Reg(6);

fn fibonacci(cells: u64) -> Vec<Op> {
    vec![
        Op::Set(LEFT, cells.saturating_sub(2)),
        Op::Set(ONE, 1),
        Op::Load(A, BASE, 0),
        Op::Load(B, BASE, 1),
        Op::Add(A, A, B),
        Op::Store(BASE, 2, A),
        Op::Add(BASE, BASE, ONE),
        Op::Sub(LEFT, LEFT, ONE),
        Op::JumpNonZero(LEFT, 2),
        Op::Halt,
    ]
}

fn walk(cells: u64) -> Vec<Op> {
    vec![
        Op::Set(LEFT, cells),
        Op::Set(ONE, 1),
        Op::Load(BASE, BASE, 0),
        Op::Sub(LEFT, LEFT, ONE),
        Op::JumpNonZero(LEFT, 2),
        Op::Halt,
    ]
}

fn gather(half: u64) -> Vec<Op> {
    vec![
        Op::Set(LEFT, half),
        Op::Set(ONE, 1),
        Op::Segment(OUT),
        Op::Load(A, BASE, 0),
        Op::Load(B, A, 0),
        Op::Mul(B, B, B),
        Op::Add(SUM, SUM, B),
        Op::Store(OUT, 0, SUM),
        Op::Add(BASE, BASE, ONE),
        Op::Add(OUT, OUT, ONE),
        Op::Sub(LEFT, LEFT, ONE),
        Op::JumpNonZero(LEFT, 3),
        Op::Halt,
    ]
}

/// Addresses in segment 0 that lead through all of them and back.
fn cycle(len: u64, seed: u64) -> Vec<Value<u64>> {
    let mut order: Vec<u64> = (0..len).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut next: Vec<(u64, u64)> = order
        .iter()
        .copied()
        .zip(order.iter().copied().skip(1))
        .collect();
    if let (Some(&last), Some(&first)) = (order.last(), order.first()) {
        next.push((last, first));
    }
    next.sort_unstable();
    next.into_iter()
        .map(|(_, offset)| Value::Relocatable(Relocatable { segment: 0, offset }))
        .collect()
}

/// A recorded run.
#[derive(Debug, Clone)]
pub struct Trace {
    program: Vec<Op>,
    input: Vec<Value<u64>>,
    outcome: Outcome,
}

/// A trace that did not come to the same again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// It faulted.
    #[error("trace {trace}: {fault}")]
    Fault {
        /// Which of the traces.
        trace: usize,
        /// How it ended.
        fault: Fault,
    },
    /// It ended otherwise.
    #[error("trace {trace}: expected {expected:?}, got {got:?}")]
    Outcome {
        /// Which of the traces.
        trace: usize,
        /// As recorded.
        expected: Box<Outcome>,
        /// As executed again.
        got: Box<Outcome>,
    },
}

impl Trace {
    /// Records a run over about `cells` cells (at least 6).
    ///
    /// # Errors
    /// The program's fault, which would be a defect of the program.
    pub fn record(program: Program, cells: u64, seed: u64) -> Result<Self, Fault> {
        let (program, input) = program.build(cells.max(6), seed);
        let machine = Machine::<EnumCell<Felt>>::new(&input);
        let outcome = machine.run(&program, u64::MAX)?;
        Ok(Trace {
            program,
            input,
            outcome,
        })
    }

    /// Returns the outcome of the recorded run.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn execute<C>(&self, trace: usize) -> Result<(), Mismatch>
    where
        C: MemoryCell<Int: Arithmetic>,
    {
        let got = Machine::<C>::new(&self.input)
            .run(&self.program, self.outcome.steps)
            .map_err(|fault| Mismatch::Fault { trace, fault })?;
        if got == self.outcome {
            return Ok(());
        }
        Err(Mismatch::Outcome {
            trace,
            expected: Box::new(self.outcome.clone()),
            got: Box::new(got),
        })
    }
}

/// Executes all traces again, each on a machine of its own with cells of type `C`.
/// There are `threads` threads, which take the next trace when they are done.
///
/// # Errors
/// A trace whose outcome differs from the recorded one.
pub fn re_execute<C>(traces: &[Trace], threads: usize) -> Result<(), Mismatch>
where
    C: MemoryCell<Int: Arithmetic>,
{
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(trace) = traces.get(at) else {
                return Ok(());
            };
            trace.execute::<C>(at)?;
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .try_for_each(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::BigFelt;
    use cuzk_pce::cell::PackedCell;

    fn traces(program: Program) -> Vec<Trace> {
        (0..5)
            .map(|seed| Trace::record(program, 300, seed).unwrap())
            .collect()
    }

    #[test]
    fn every_cell_comes_to_the_recorded_outcome() {
        for program in Program::ALL {
            let traces = traces(program);
            for threads in [1, 2, 7] {
                assert_eq!(re_execute::<PackedCell<Felt>>(&traces, threads), Ok(()));
                assert_eq!(re_execute::<EnumCell<Felt>>(&traces, threads), Ok(()));
                assert_eq!(re_execute::<EnumCell<BigFelt>>(&traces, threads), Ok(()));
            }
        }
    }

    #[test]
    fn programs_use_the_memory_they_are_given() {
        for program in Program::ALL {
            let outcome = Trace::record(program, 300, 1).unwrap().outcome;
            assert_eq!(outcome.written, 300, "{program:?}");
        }
        let walk = Trace::record(Program::Walk, 300, 1).unwrap();
        assert_eq!(walk.outcome.accessed, 300);
    }

    #[test]
    fn another_outcome_is_told() {
        let mut traces = traces(Program::Walk);
        traces[3].outcome.accessed += 1;
        let result = re_execute::<PackedCell<Felt>>(&traces, 2);
        assert!(matches!(result, Err(Mismatch::Outcome { trace: 3, .. })));
        traces[3].input[0] = Value::Int(1);
        let result = re_execute::<PackedCell<Felt>>(&traces, 2);
        assert!(matches!(result, Err(Mismatch::Fault { trace: 3, .. })));
    }
}
