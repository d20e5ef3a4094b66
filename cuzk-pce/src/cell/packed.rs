//! The cell of 32 bytes.
//!
//! Four limbs, the most significant first, so that the spare bits of a field
//! element are the top bits of the first limb. Which of them say what depends
//! on how many there are:
//!
//! | spare bits | accessed | empty | an address |
//! |---|---|---|---|
//! | 3 and more | bit 62 | bit 63 | bit 61 |
//! | 1 or 2 | bit 63 | the other 63 bits all ones | one less than that |
//!
//! In the second row, no element has this first limb: the values between the modulus and
//! the next power of two are a niche. An address is its segment in the third limb and its
//! offset in the fourth.
//!
//! Invariant: with the accessed bit cleared, the first limb is that of an empty cell, that
//! of an address, or that of an element.

use super::{CellField, MemoryCell, Relocatable, Value};
use std::marker::PhantomData;

/// A [`MemoryCell`] in 32 bytes that never crosses a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct PackedCell<F> {
    limbs: [u64; 4],
    field: PhantomData<F>,
}

/// First limbs that are not those of an element, for one field.
#[derive(Debug, Clone, Copy)]
struct Tags {
    accessed: u64,
    none: u64,
    relocatable: u64,
}

impl Tags {
    const fn of(top_limb_max: u64) -> Self {
        let spare_bits = top_limb_max.leading_zeros();
        assert!(
            spare_bits > 0,
            "a field of 256 bits leaves no bit for a flag"
        );
        let tags = match spare_bits {
            1 | 2 => Tags {
                accessed: 1 << 63,
                none: (1 << 63) - 1,
                relocatable: (1 << 63) - 2,
            },
            _ => Tags {
                accessed: 1 << 62,
                none: 1 << 63,
                relocatable: 1 << 61,
            },
        };
        assert!(
            top_limb_max < tags.relocatable,
            "the field has no niche above its modulus"
        );
        tags
    }
}

impl<F: CellField> PackedCell<F> {
    const TAGS: Tags = {
        assert!(size_of::<Self>() == 32 && align_of::<Self>() == 32);
        Tags::of(F::TOP_LIMB_MAX)
    };

    /// The first limb without the accessed bit.
    fn top(&self) -> u64 {
        self.limbs[0] & !Self::TAGS.accessed
    }
}

impl<F: CellField> MemoryCell for PackedCell<F> {
    type Int = F;

    const NONE: Self = PackedCell {
        limbs: [Self::TAGS.none, 0, 0, 0],
        field: PhantomData,
    };

    #[inline]
    fn value(&self) -> Option<Value<F>> {
        let [_, second, third, fourth] = self.limbs;
        let top = self.top();
        if top == Self::TAGS.none {
            None
        } else if top == Self::TAGS.relocatable {
            Some(Value::Relocatable(Relocatable {
                segment: third,
                offset: fourth,
            }))
        } else {
            Some(Value::Int(F::from_limbs([top, second, third, fourth])))
        }
    }

    #[inline]
    fn write(&mut self, value: Value<F>) {
        let accessed = self.limbs[0] & Self::TAGS.accessed;
        self.limbs = match value {
            Value::Int(int) => int.to_limbs(),
            Value::Relocatable(Relocatable { segment, offset }) => {
                [Self::TAGS.relocatable, 0, segment, offset]
            }
        };
        self.limbs[0] |= accessed;
    }

    #[inline]
    fn is_none(&self) -> bool {
        self.top() == Self::TAGS.none
    }

    #[inline]
    fn mark_accessed(&mut self) {
        self.limbs[0] |= Self::TAGS.accessed;
    }

    #[inline]
    fn is_accessed(&self) -> bool {
        self.limbs[0] & Self::TAGS.accessed != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Canonical, EnumCell};
    use blstrs::Scalar;
    use ff::{Field, PrimeField};
    use proptest::prelude::*;

    /// Raw limbs below a field's greatest: the layout does not care whether
    /// they are an element of some field, only that they are in range.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Limbs<const TOP_LIMB_MAX: u64>([u64; 4]);

    impl<const TOP_LIMB_MAX: u64> CellField for Limbs<TOP_LIMB_MAX> {
        const TOP_LIMB_MAX: u64 = TOP_LIMB_MAX;

        fn to_limbs(&self) -> [u64; 4] {
            self.0
        }

        fn from_limbs(limbs: [u64; 4]) -> Self {
            Limbs(limbs)
        }
    }

    /// Starknet's 2^251 + 17·2^192 + 1.
    const STARK: u64 = 0x0800_0000_0000_0011;
    /// BLS12-381's scalar field, one spare bit.
    const BLS: u64 = 0x73ed_a753_299d_7d48;
    /// BN254's scalar field, two spare bits.
    const BN: u64 = 0x3064_4e72_e131_a029;
    /// The least spare field that is allowed at all.
    const TIGHT: u64 = (1 << 63) - 3;

    #[derive(Debug, Clone, Copy)]
    enum Op<F> {
        Write(Value<F>),
        Mark,
    }

    fn top(max: u64) -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), Just(max), Just(max - 1), 0..=max]
    }

    fn limb() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]
    }

    fn op<const MAX: u64>() -> impl Strategy<Value = Op<Limbs<MAX>>> {
        let int = (top(MAX), limb(), limb(), limb())
            .prop_map(|(a, b, c, d)| Value::Int(Limbs([a, b, c, d])));
        let address = (limb(), limb())
            .prop_map(|(segment, offset)| Value::Relocatable(Relocatable { segment, offset }));
        prop_oneof![
            int.prop_map(Op::Write),
            address.prop_map(Op::Write),
            Just(Op::Mark)
        ]
    }

    fn apply<C: MemoryCell<Int: Copy>>(cell: &mut C, op: Op<C::Int>) {
        match op {
            Op::Write(value) => cell.write(value),
            Op::Mark => cell.mark_accessed(),
        }
    }

    fn equals_the_twin<F: CellField>(ops: Vec<Op<F>>) -> Result<(), TestCaseError> {
        let mut packed = PackedCell::<F>::NONE;
        let mut twin = EnumCell::<F>::NONE;
        prop_assert_eq!(packed.value(), None);
        prop_assert!(packed.is_none() && !packed.is_accessed());
        for op in ops {
            apply(&mut packed, op);
            apply(&mut twin, op);
            prop_assert_eq!(packed.value(), twin.value());
            prop_assert_eq!(packed.is_none(), twin.is_none());
            prop_assert_eq!(packed.is_accessed(), twin.is_accessed());
            if let Op::Write(value) = op {
                prop_assert_eq!(packed.value(), Some(value));
            }
        }
        Ok(())
    }

    fn ops<const MAX: u64>() -> impl Strategy<Value = Vec<Op<Limbs<MAX>>>> {
        prop::collection::vec(op::<MAX>(), 0..8)
    }

    proptest! {
        #[test]
        fn four_spare_bits_equal_the_twin(ops in ops::<STARK>()) {
            equals_the_twin(ops)?;
        }

        #[test]
        fn one_spare_bit_equals_the_twin(ops in ops::<BLS>()) {
            equals_the_twin(ops)?;
        }

        #[test]
        fn two_spare_bits_equal_the_twin(ops in ops::<BN>()) {
            equals_the_twin(ops)?;
        }

        #[test]
        fn the_tightest_niche_equals_the_twin(ops in ops::<TIGHT>()) {
            equals_the_twin(ops)?;
        }

        #[test]
        fn scalars_round_trip(bytes in any::<[u8; 64]>(), accessed in any::<bool>()) {
            let low = Scalar::from_repr_vartime(bytes[..32].try_into().unwrap());
            let scalar = low.unwrap_or(-Scalar::from(u64::from(bytes[32])));
            let mut cell = PackedCell::NONE;
            if accessed {
                cell.mark_accessed();
            }
            cell.write(Value::Int(Canonical(scalar)));
            prop_assert_eq!(cell.value(), Some(Value::Int(Canonical(scalar))));
            prop_assert_eq!(cell.is_accessed(), accessed);
        }
    }

    #[test]
    fn the_edges_of_the_field_are_values() {
        for scalar in [Scalar::ZERO, Scalar::ONE, -Scalar::ONE] {
            let mut cell = PackedCell::NONE;
            cell.write(Value::Int(Canonical(scalar)));
            cell.mark_accessed();
            assert_eq!(cell.value(), Some(Value::Int(Canonical(scalar))));
        }
    }

    #[test]
    #[should_panic(expected = "no bit for a flag")]
    fn a_field_without_a_spare_bit_is_refused() {
        Tags::of(u64::MAX);
    }

    #[test]
    #[should_panic(expected = "no niche")]
    fn a_field_without_a_niche_is_refused() {
        Tags::of((1 << 63) - 2);
    }

    #[test]
    fn two_cells_fill_a_cache_line() {
        type Cell = PackedCell<Canonical<Scalar>>;
        assert_eq!((size_of::<Cell>(), align_of::<Cell>()), (32, 32));
        assert_eq!(size_of::<EnumCell<Limbs<STARK>>>(), 48);
    }
}
