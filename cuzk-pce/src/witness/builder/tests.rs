use super::*;
use crate::Witness;
use blstrs::Scalar;
use cuzk_memory::{BufferPool, Dealloc, NEVER_STOP};
use ff::Field;
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Debug, Clone)]
enum Write {
    Value(u64),
    Bits(u64, u32),
    Words(Vec<u64>),
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        (0..4u64).prop_map(Write::Value),
        (any::<u64>(), 0..=64u32).prop_map(|(word, length)| Write::Bits(word, length)),
        prop::collection::vec(any::<u64>(), 0..4).prop_map(Write::Words),
    ]
}

fn build(writes: &[Write]) -> (PackedBuilder<Scalar>, Vec<Scalar>) {
    let mut builder = PackedBuilder::default();
    let mut plain = Vec::new();
    for write in writes {
        match write {
            Write::Value(value) => {
                builder.push(Scalar::from(*value));
                plain.push(Scalar::from(*value));
            }
            Write::Bits(word, length) => {
                builder.push_bits(*word, *length);
                plain.extend((0..*length).map(|k| Scalar::from(word >> k & 1)));
            }
            Write::Words(words) => {
                builder.push_words(words);
                let bits = words
                    .iter()
                    .flat_map(|word| (0..64).map(move |k| word >> k & 1));
                plain.extend(bits.map(Scalar::from));
            }
        }
        assert_eq!(builder.num_aux(), plain.len());
    }
    (builder, plain)
}

proptest! {
    #[test]
    fn builds_what_packing_gives(parts in prop::collection::vec(
        prop::collection::vec(write(), 0..12), 0..8)
    ) {
        let mut whole = PackedBuilder::with_capacity(100, 3);
        let mut plain = Vec::new();
        let inputs = [Scalar::from(1), Scalar::from(7)];
        for input in inputs {
            whole.push_input(input);
        }
        for part in &parts {
            let (builder, values) = build(part);
            whole.append(&builder);
            plain.extend(values);
            prop_assert_eq!(whole.num_aux(), plain.len());
        }
        let plain = Witness::new([&inputs[..], &plain].concat(), 2).unwrap();
        let packed = PackedBuilder::pack(&plain);
        prop_assert_eq!(whole.finish().unwrap(), packed.clone());

        let mut joined = PackedBuilder::default();
        for input in inputs {
            joined.push_input(input);
        }
        let parts: Vec<_> = parts.iter().map(|part| build(part).0).collect();
        let mut at_once = joined.clone();
        joined.append_all(&parts);
        prop_assert_eq!(joined.finish().unwrap(), packed.clone());

        let before = at_once.clone();
        let refused = at_once.append_in_parallel(&parts, &Checkpoint::asking(|| true));
        prop_assert_eq!(refused.is_err(), !parts.is_empty());
        prop_assert_eq!(&at_once, &before);
        let (first, others) = parts.split_at(parts.len() / 2);
        for parts in [first, others] {
            at_once.append_in_parallel(parts, &NEVER_STOP).unwrap();
        }
        prop_assert_eq!(at_once.finish().unwrap(), packed);
    }
}

#[test]
fn one_comes_first() {
    let mut builder = PackedBuilder::default();
    assert!(matches!(
        builder.clone().finish(),
        Err(WitnessError::NotOne)
    ));
    builder.push_input(Scalar::from(2));
    assert!(matches!(builder.finish(), Err(WitnessError::NotOne)));
}

#[test]
fn a_witness_is_in_the_pools_blocks() {
    const VALUES: usize = 1 << 16;
    let pool = BufferPool::new(Dealloc::Recycle, u64::MAX, drop);
    let memory = pool.array_memory();
    let mut builder = PackedBuilder::with_capacity_in(&memory, VALUES, VALUES);
    let mapped = VALUES * size_of::<Scalar>();
    assert_eq!(pool.kept_bytes(), 0);
    builder.push_input(Scalar::ONE);
    for value in 0..VALUES as u64 {
        builder.push(Scalar::from(value));
    }
    let witness = builder.finish().unwrap();
    let values = witness.aux_slice().values;
    assert!(
        values
            .iter()
            .zip(2_u64..)
            .all(|(value, n)| *value == Scalar::from(n))
    );
    // The last handle of the pool may be the memory's.
    drop((memory, Arc::clone(&pool)));
    drop(witness);
    assert_eq!(pool.kept_bytes(), mapped as u64);
}
