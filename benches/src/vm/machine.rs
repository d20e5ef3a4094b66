//! The register machine: registers, segments of cells, and field arithmetic.
//!
//! As in Cairo, memory is written once, addresses are relative to segments
//! until the run has ended, and a cell remembers whether it was read. Unlike
//! Cairo the program is not in memory. The machine is generic over its cell,
//! and nothing else: what differs between two runs of a program is the cell.
//!
//! Invariant: a run's [`Outcome`] does not depend on the cell.

use super::felt::Arithmetic;
use cuzk_pce::cell::{MemoryCell, Relocatable, Value};

/// Registers of a machine.
pub const REGISTERS: usize = 16;

/// The most cells a segment may have: a misread offset must not take all
/// memory.
pub const SEGMENT_CELLS_MAX: u64 = 1 << 28;

/// A register, below [`REGISTERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reg(pub u8);

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `to` becomes a number.
    Set(Reg, u64),
    /// `to = a + b`; one of them may be an address, the sum then is.
    Add(Reg, Reg, Reg),
    /// `to = a - b` of two numbers.
    Sub(Reg, Reg, Reg),
    /// `to = a · b` of two numbers.
    Mul(Reg, Reg, Reg),
    /// `to` becomes the start of a new segment.
    Segment(Reg),
    /// `to` becomes what is at an address plus this many cells.
    Load(Reg, Reg, u64),
    /// Writes at an address plus this many cells what a register holds.
    Store(Reg, u64, Reg),
    /// Goes on at an instruction if a number is not zero.
    JumpNonZero(Reg, usize),
    /// Ends the run.
    Halt,
}

/// Why a run stopped before it halted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is no such register.
    #[error("register {0}: expected one below {REGISTERS}")]
    Register(u8),
    /// There is no such instruction.
    #[error("instruction {0} is past the program's end")]
    Instruction(usize),
    /// An operand is an address where a number must be, or the other way.
    #[error("instruction {0}: an address and a number are mistaken for each other")]
    Kind(usize),
    /// An address outside memory.
    #[error("address {0:?} is outside of memory")]
    Address(Relocatable),
    /// A cell is read that was never written.
    #[error("address {0:?} is read before it is written")]
    Empty(Relocatable),
    /// A cell is given a second value.
    #[error("address {0:?} is written twice, with different values")]
    Rewritten(Relocatable),
    /// The program runs for longer than it may.
    #[error("the run took more than {0} steps")]
    Steps(u64),
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Instructions executed.
    pub steps: u64,
    /// Cells that hold something.
    pub written: u64,
    /// Cells that were read.
    pub accessed: u64,
    /// The sum of all cells, addresses relocated, as the field's bytes.
    pub sum: [u8; 32],
}

/// A machine over cells of type `C`.
#[derive(Debug)]
pub struct Machine<C: MemoryCell> {
    registers: [Value<C::Int>; REGISTERS],
    segments: Vec<Vec<C>>,
}

impl<C> Machine<C>
where
    C: MemoryCell<Int: Arithmetic>,
{
    /// A machine with one segment that holds `input`, whose start is in
    /// register 0. The other registers are zero.
    pub fn new(input: &[Value<u64>]) -> Self {
        let cell = |value: &Value<u64>| {
            let mut cell = C::NONE;
            cell.write(match value {
                Value::Int(number) => Value::Int(C::Int::from_u64(*number)),
                Value::Relocatable(address) => Value::Relocatable(*address),
            });
            cell
        };
        let mut registers = std::array::from_fn(|_| Value::Int(C::Int::from_u64(0)));
        registers[0] = Value::Relocatable(Relocatable {
            segment: 0,
            offset: 0,
        });
        Machine {
            registers,
            segments: vec![input.iter().map(cell).collect()],
        }
    }

    /// Runs `program` from its first instruction until it halts, then
    /// relocates memory and adds it up.
    ///
    /// # Errors
    /// The first [`Fault`].
    pub fn run(mut self, program: &[Op], steps_max: u64) -> Result<Outcome, Fault> {
        let mut at = 0;
        for step in 1..=steps_max {
            match program.get(at).ok_or(Fault::Instruction(at))? {
                Op::Halt => return Ok(self.finish(step)),
                Op::JumpNonZero(on, target) => {
                    let zero = self.int(*on, at)?.is_zero();
                    at = if zero { at + 1 } else { *target };
                }
                op => {
                    self.step(*op, at)?;
                    at += 1;
                }
            }
        }
        Err(Fault::Steps(steps_max))
    }

    /// Instructions after which the next one follows.
    fn step(&mut self, op: Op, at: usize) -> Result<(), Fault> {
        let (to, value) = match op {
            Op::Set(to, number) => (to, Value::Int(C::Int::from_u64(number))),
            Op::Add(to, a, b) => (to, self.sum(a, b, at)?),
            Op::Sub(to, a, b) => (to, Value::Int(self.int(a, at)?.sub(self.int(b, at)?))),
            Op::Mul(to, a, b) => (to, Value::Int(self.int(a, at)?.mul(self.int(b, at)?))),
            Op::Segment(to) => (to, self.new_segment()),
            Op::Load(to, base, offset) => (to, self.load(self.address(base, offset, at)?)?),
            Op::Store(base, offset, from) => {
                let value = self.register(from)?.clone();
                return self.store(self.address(base, offset, at)?, value);
            }
            Op::JumpNonZero(..) | Op::Halt => return Ok(()),
        };
        let register = self.registers.get_mut(usize::from(to.0));
        *register.ok_or(Fault::Register(to.0))? = value;
        Ok(())
    }

    fn register(&self, register: Reg) -> Result<&Value<C::Int>, Fault> {
        let value = self.registers.get(usize::from(register.0));
        value.ok_or(Fault::Register(register.0))
    }

    fn int(&self, register: Reg, at: usize) -> Result<&C::Int, Fault> {
        match self.register(register)? {
            Value::Int(int) => Ok(int),
            Value::Relocatable(_) => Err(Fault::Kind(at)),
        }
    }

    fn address(&self, register: Reg, offset: u64, at: usize) -> Result<Relocatable, Fault> {
        match self.register(register)? {
            Value::Int(_) => Err(Fault::Kind(at)),
            Value::Relocatable(base) => Ok(Relocatable {
                segment: base.segment,
                offset: base.offset.saturating_add(offset),
            }),
        }
    }

    fn sum(&self, a: Reg, b: Reg, at: usize) -> Result<Value<C::Int>, Fault> {
        match (self.register(a)?, self.register(b)?) {
            (Value::Int(a), Value::Int(b)) => Ok(Value::Int(a.add(b))),
            (Value::Relocatable(base), Value::Int(offset))
            | (Value::Int(offset), Value::Relocatable(base)) => {
                let offset = offset.to_u64().ok_or(Fault::Address(*base))?;
                Ok(Value::Relocatable(Relocatable {
                    segment: base.segment,
                    offset: base.offset.saturating_add(offset),
                }))
            }
            _ => Err(Fault::Kind(at)),
        }
    }

    fn new_segment(&mut self) -> Value<C::Int> {
        self.segments.push(Vec::new());
        Value::Relocatable(Relocatable {
            segment: self.segments.len() as u64 - 1,
            offset: 0,
        })
    }

    fn segment(&mut self, address: Relocatable) -> Result<(&mut Vec<C>, usize), Fault> {
        let segment = usize::try_from(address.segment)
            .ok()
            .and_then(|at| self.segments.get_mut(at));
        match (segment, usize::try_from(address.offset)) {
            (Some(segment), Ok(offset)) if address.offset < SEGMENT_CELLS_MAX => {
                Ok((segment, offset))
            }
            _ => Err(Fault::Address(address)),
        }
    }

    fn load(&mut self, address: Relocatable) -> Result<Value<C::Int>, Fault> {
        let (segment, offset) = self.segment(address)?;
        let cell = segment.get_mut(offset).ok_or(Fault::Empty(address))?;
        cell.mark_accessed();
        cell.value().ok_or(Fault::Empty(address))
    }

    fn store(&mut self, address: Relocatable, value: Value<C::Int>) -> Result<(), Fault> {
        let (segment, offset) = self.segment(address)?;
        if offset >= segment.len() {
            segment.resize(offset + 1, C::NONE);
        }
        let cell = &mut segment[offset];
        if cell.is_none() {
            cell.write(value);
        } else if cell.value() != Some(value) {
            return Err(Fault::Rewritten(address));
        }
        Ok(())
    }

    /// Lays the segments one after another and adds up their cells.
    fn finish(self, steps: u64) -> Outcome {
        let mut start = 0;
        let starts: Vec<u64> = (self.segments.iter())
            .map(|segment| {
                start += segment.len() as u64;
                start - segment.len() as u64
            })
            .collect();
        let (mut written, mut accessed) = (0, 0);
        let mut sum = C::Int::from_u64(0);
        for cell in self.segments.iter().flatten() {
            accessed += u64::from(cell.is_accessed());
            let Some(value) = cell.value() else { continue };
            written += 1;
            sum = sum.add(&match value {
                Value::Int(int) => int,
                Value::Relocatable(address) => {
                    let segment = usize::try_from(address.segment).unwrap_or(usize::MAX);
                    let start = starts.get(segment).copied().unwrap_or(0);
                    C::Int::from_u64(start.wrapping_add(address.offset))
                }
            });
        }
        Outcome {
            steps,
            written,
            accessed,
            sum: sum.to_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::{BigFelt, Felt};
    use cuzk_pce::cell::{EnumCell, PackedCell};
    use proptest::prelude::*;

    const INPUT: [Value<u64>; 3] = [
        Value::Int(5),
        Value::Int(7),
        Value::Relocatable(Relocatable {
            segment: 0,
            offset: 1,
        }),
    ];

    fn run(program: &[Op]) -> Result<Outcome, Fault> {
        let packed = Machine::<PackedCell<Felt>>::new(&INPUT).run(program, 1_000);
        let twin = Machine::<EnumCell<Felt>>::new(&INPUT).run(program, 1_000);
        let heap = Machine::<EnumCell<BigFelt>>::new(&INPUT).run(program, 1_000);
        assert_eq!(packed, twin);
        assert_eq!(heap, twin);
        packed
    }

    fn reg() -> impl Strategy<Value = Reg> {
        (0..5u8).prop_map(Reg)
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (reg(), 0..4u64).prop_map(|(to, n)| Op::Set(to, n)),
            (reg(), reg(), reg()).prop_map(|(to, a, b)| Op::Add(to, a, b)),
            (reg(), reg(), reg()).prop_map(|(to, a, b)| Op::Sub(to, a, b)),
            (reg(), reg(), reg()).prop_map(|(to, a, b)| Op::Mul(to, a, b)),
            reg().prop_map(Op::Segment),
            (reg(), reg(), 0..4u64).prop_map(|(to, at, n)| Op::Load(to, at, n)),
            (reg(), 0..4u64, reg()).prop_map(|(at, n, from)| Op::Store(at, n, from)),
            (reg(), 0..24usize).prop_map(|(on, to)| Op::JumpNonZero(on, to)),
        ]
    }

    proptest! {
        /// Any program, its faults included, is the same over every cell.
        #[test]
        fn the_cell_does_not_show(mut program in prop::collection::vec(op(), 1..24)) {
            program.push(Op::Halt);
            let _ = run(&program);
        }
    }

    #[test]
    fn computes_loads_and_stores() {
        let [base, a, b, out] = [Reg(0), Reg(1), Reg(2), Reg(3)];
        let program = [
            Op::Load(a, base, 2),
            Op::Load(a, a, 0),
            Op::Load(b, base, 0),
            Op::Mul(a, a, b),
            Op::Segment(out),
            Op::Store(out, 1, a),
            Op::Halt,
        ];
        let outcome = run(&program).unwrap();
        assert_eq!((outcome.steps, outcome.written), (7, 4));
        assert_eq!(outcome.accessed, 3);
        // 5 + 7 + the address 1 + 35.
        assert_eq!(outcome.sum, Felt::from_u64(48).to_bytes());
    }

    #[test]
    fn every_fault_is_told() {
        let there = |offset| Relocatable { segment: 0, offset };
        let (base, one) = (Reg(0), Reg(1));
        let set = Op::Set(one, 1);
        for (program, fault) in [
            (vec![Op::Set(Reg(16), 1)], Fault::Register(16)),
            (vec![set, Op::JumpNonZero(one, 9)], Fault::Instruction(9)),
            (vec![set], Fault::Instruction(1)),
            (vec![Op::Mul(one, base, base)], Fault::Kind(0)),
            (vec![Op::Load(one, one, 0)], Fault::Kind(0)),
            (vec![Op::Load(one, base, 3)], Fault::Empty(there(3))),
            (
                vec![Op::Store(base, u64::MAX, one)],
                Fault::Address(there(u64::MAX)),
            ),
            (
                vec![set, Op::Store(base, 0, one)],
                Fault::Rewritten(there(0)),
            ),
            (vec![set, Op::JumpNonZero(one, 0)], Fault::Steps(1_000)),
        ] {
            assert_eq!(run(&program), Err(fault));
        }
    }
}
