//! The slow twin of the packed cell: what it means, written down as types.
//!
//! A cell takes 48 bytes for a field element of 32. Eight bytes tell values from addresses
//! and from nothing. Another eight hold one bit: the element was accessed.

use super::{MemoryCell, Value};

/// A [`MemoryCell`] as the compiler lays it out. `F` may own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumCell<F> {
    value: Option<Value<F>>,
    accessed: bool,
}

impl<F: Clone> MemoryCell for EnumCell<F> {
    type Int = F;

    const NONE: Self = EnumCell {
        value: None,
        accessed: false,
    };

    #[inline]
    fn value(&self) -> Option<Value<F>> {
        self.value.clone()
    }

    #[inline]
    fn write(&mut self, value: Value<F>) {
        self.value = Some(value);
    }

    #[inline]
    fn is_none(&self) -> bool {
        self.value.is_none()
    }

    #[inline]
    fn mark_accessed(&mut self) {
        self.accessed = true;
    }

    #[inline]
    fn is_accessed(&self) -> bool {
        self.accessed
    }
}
