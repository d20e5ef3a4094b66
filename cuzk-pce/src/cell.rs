//! A memory cell of 32 bytes: a value and its flags in half a cache line.
//!
//! A cell of a machine's memory is empty, a field element or an address, and
//! it remembers whether it was read. As an enum with a flag beside it
//! ([`EnumCell`], the slow twin) that takes 48 bytes, and every second cell
//! lies in two cache lines. Field elements leave bits of their 256 unused;
//! [`PackedCell`] keeps everything else there. It is not a memory: see
//! [`CheckedMemory`] for one that is used to check circuits.
//!
//! Invariant: both cells answer every operation of [`MemoryCell`] alike.
//!
//! Source: LambdaClass, "Beyond Single-Core: Enhancing VM Efficiency in
//! Parallel Environments" (2024).

mod canonical;
mod checked_memory;
mod enumerated;
mod packed;

pub use canonical::Canonical;
pub use checked_memory::{CheckedCircuit, CheckedMemory, Query, Violation, check_circuit};
pub use enumerated::EnumCell;
pub use packed::PackedCell;

/// A field element that fits four limbs and leaves at least one bit free.
pub trait CellField: Copy + Eq + std::fmt::Debug {
    /// The most significant limb of the greatest element, as
    /// [`Self::to_limbs`] gives it. Its leading zeros are the field's spare
    /// bits; what lies between it and the next power of two is its niche.
    const TOP_LIMB_MAX: u64;

    /// The element's limbs, the most significant first, in any one-to-one
    /// form: usually the one that the element already has in memory.
    fn to_limbs(&self) -> [u64; 4];

    /// The element whose limbs these are. Limbs that no element has give an
    /// unspecified element.
    fn from_limbs(limbs: [u64; 4]) -> Self;
}

/// An address that does not yet say where its segment lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relocatable {
    /// Number of the segment.
    pub segment: u64,
    /// Cells from the start of the segment.
    pub offset: u64,
}

/// The content of a cell that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<F> {
    /// An address.
    Relocatable(Relocatable),
    /// A field element.
    Int(F),
}

/// A cell: nothing or a [`Value`], and whether it was accessed.
pub trait MemoryCell: Clone {
    /// The field element it can hold.
    type Int;

    /// An empty cell that was not accessed.
    const NONE: Self;

    /// Returns the content of the cell.
    fn value(&self) -> Option<Value<Self::Int>>;

    /// Replaces what is in the cell; whether it was accessed stays.
    fn write(&mut self, value: Value<Self::Int>);

    /// Returns true if the cell is empty.
    fn is_none(&self) -> bool;

    /// Remembers an access, for an empty cell as well.
    fn mark_accessed(&mut self);

    /// Returns true if an access was recorded.
    fn is_accessed(&self) -> bool;
}
