//! The label of a node on one layer, as `create_label_circuit` allocates it.
//!
//! Its parents' labels are taken as they are: whether they are labels the
//! circuit does not ask.

use crate::Builder;
use crate::pack::{digest_element, message_words};
use crate::sha256::{COMPRESSION_BITS_AT_MOST, sha256};
use crate::uint32::{Word, low};
use blstrs::Scalar;

/// Parents that a label hashes, with repetitions.
const TOTAL_PARENTS: usize = 37;

/// Room for the variables of a label.
pub(crate) const VARIABLES_AT_MOST: usize = 20 * COMPRESSION_BITS_AT_MOST;

/// Writes the hash and the label, and gives the label.
///
/// `parents` are the labels of the parents in the order of the graph; from the
/// first again, they are repeated until there are 37. `layer` counts from 1.
/// The bits of `replica_id`, of the parents and the 64 of `node` are variables
/// that there are already.
pub(crate) fn write(
    replica_id: &Scalar,
    layer: u32,
    node: u64,
    parents: &[Scalar],
    builder: &mut Builder,
) -> Scalar {
    let mut message = Vec::with_capacity(8 * (2 + TOTAL_PARENTS));
    message.extend(message_words(replica_id));
    message.push(Word::constant(layer));
    message.extend([node >> 32, node].map(|word| Word::variables(low(word))));
    message.extend([Word::constant(0); 5]);
    let parents: Vec<_> = parents.iter().map(message_words).collect();
    message.extend(parents.iter().cycle().take(TOTAL_PARENTS).flatten());
    let label = digest_element(sha256(&message, builder));
    builder.push(label);
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::write_bits;
    use crate::testing::{assert_writes, scalars};
    use bellperson::ConstraintSystem;
    use bellperson::gadgets::num::AllocatedNum;
    use bellperson::gadgets::uint32::UInt32;
    use bellperson::util_cs::witness_cs::WitnessCS;
    use storage_proofs_core::gadgets::uint64::UInt64;
    use storage_proofs_core::util::reverse_bit_numbering;
    use storage_proofs_porep::stacked::create_label_circuit;

    /// The gadget with its inputs, where every kind of them is allocated.
    fn synthesize(cs: &mut WitnessCS<Scalar>, values: &[Scalar], layer: u32, node: u64) {
        let mut bits = |value: &Scalar| {
            let num = AllocatedNum::alloc(&mut *cs, || Ok(*value)).unwrap();
            reverse_bit_numbering(num.to_bits_le(&mut *cs).unwrap())
        };
        let replica_id = bits(&values[0]);
        let parents: Vec<_> = values[1..].iter().map(&mut bits).collect();
        let node = UInt64::alloc(&mut *cs, Some(node)).unwrap();
        let parents = parents.iter().cycle().take(TOTAL_PARENTS).cloned();
        create_label_circuit(
            cs.namespace(|| "label"),
            &replica_id,
            parents.collect(),
            UInt32::constant(layer),
            node,
        )
        .unwrap();
    }

    #[test]
    fn label_is_the_gadgets() {
        for (layer, parents) in [(1, 6), (2, 14), (11, 14)] {
            let values = scalars(1 + parents, u64::from(layer));
            let node = 0x8000_0001_0203_0405 ^ u64::from(layer);
            assert_writes(
                |cs| synthesize(cs, &values, layer, node),
                |builder| {
                    for value in &values {
                        builder.push(*value);
                        write_bits(value, builder);
                    }
                    builder.push_bits(node, 64);
                    write(&values[0], layer, node, &values[1..], builder);
                    assert!(builder.num_aux() < VARIABLES_AT_MOST + 15 * 256 + 64);
                },
            );
        }
    }
}
