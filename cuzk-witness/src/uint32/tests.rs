use super::*;
use crate::PackedBuilder;
use bellperson::ConstraintSystem;
use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::multieq::MultiEq;
use bellperson::gadgets::uint32::UInt32;
use bellperson::util_cs::witness_cs::WitnessCS;
use blstrs::Scalar;
use proptest::prelude::*;

/// Masks of all densities, all and nothing among them.
fn mask() -> impl Strategy<Value = u32> {
    prop_oneof![
        3 => Just(0),
        2 => Just(u32::MAX),
        2 => any::<u32>(),
        1 => (0..32u32).prop_map(|k| 1 << k),
    ]
}

pub(crate) fn word() -> impl Strategy<Value = Word> {
    (any::<u32>(), mask(), mask()).prop_map(|(value, constant, negated)| Word {
        value,
        constant,
        negated: negated & !constant,
    })
}

/// The word as the gadgets have it.
pub(crate) fn allocate<CS: ConstraintSystem<Scalar>>(cs: &mut CS, word: Word) -> UInt32 {
    let bit = |k: u32| {
        let set = |word: u32| word >> k & 1 == 1;
        if set(word.constant) {
            return Boolean::constant(set(word.value));
        }
        let variable = Some(set(word.value) ^ set(word.negated));
        let bit = Boolean::from(AllocatedBit::alloc(&mut *cs, variable).unwrap());
        if set(word.negated) { bit.not() } else { bit }
    };
    UInt32::from_bits(&(0..32).map(bit).collect::<Vec<_>>())
}

/// Returns the word that the gadgets made.
fn describe(word: UInt32) -> Word {
    let mut described = Word::variables(0);
    for (k, bit) in word.into_bits().iter().enumerate() {
        described.value |= u32::from(bit.get_value().unwrap()) << k;
        described.constant |= u32::from(bit.is_constant()) << k;
        described.negated |= u32::from(matches!(bit, Boolean::Not(_))) << k;
    }
    described
}

/// Compares an operation with the gadgets' by its result and by what it
/// allocates.
fn compare(
    words: &[Word],
    ours: impl FnOnce(&[Word], &mut BitRun<'_>) -> Word,
    theirs: impl FnOnce(&mut WitnessCS<Scalar>, &[UInt32]) -> UInt32,
) {
    let mut cs = WitnessCS::new();
    let operands: Vec<_> = words.iter().map(|word| allocate(&mut cs, *word)).collect();
    let before = cs.aux_slice().len();
    let expected = describe(theirs(&mut cs, &operands));
    let mut room = [0; 4];
    let mut run = BitRun::new(&mut room);
    assert_eq!(ours(words, &mut run), expected);
    let mut builder = PackedBuilder::default();
    builder.push_input(Scalar::from(1));
    run.write_to(&mut builder);
    let witness = builder.finish().unwrap().to_plain();
    assert_eq!(witness.aux(), &cs.aux_slice()[before..]);
}

proptest! {
    #[test]
    fn xor_is_the_gadgets(a in word(), b in word(), by in 0..32u32, shift in 0..32u32) {
        compare(
            &[a, b],
            |words, run| words[0].rotr(by).xor(words[1].shr(shift), run),
            |cs, words| {
                let (by, shift) = (by as usize, shift as usize);
                words[0].rotr(by).xor(cs, &words[1].shr(shift)).unwrap()
            },
        );
    }

    #[test]
    fn ch_is_the_gadgets(a in word(), b in word(), c in word()) {
        compare(
            &[a, b, c],
            |words, run| words[0].ch(words[1], words[2], run),
            |cs, words| UInt32::sha256_ch(cs, &words[0], &words[1], &words[2]).unwrap(),
        );
    }

    #[test]
    fn maj_is_the_gadgets(a in word(), b in word(), c in word()) {
        compare(
            &[a, b, c],
            |words, run| words[0].maj(words[1], words[2], run),
            |cs, words| UInt32::sha256_maj(cs, &words[0], &words[1], &words[2]).unwrap(),
        );
    }

    #[test]
    fn sum_is_the_gadgets(words in prop::collection::vec(word(), 2..=10)) {
        compare(
            &words,
            |words, run| Sum::of(words).write(run),
            |cs, words| UInt32::addmany(MultiEq::new(cs), words).unwrap(),
        );
    }

    #[test]
    fn interleaves(even in any::<u32>(), odd in any::<u32>()) {
        let word = interleave(even, odd);
        for k in 0..32 {
            prop_assert_eq!(word >> (2 * k) & 1, u64::from(even >> k & 1));
            prop_assert_eq!(word >> (2 * k + 1) & 1, u64::from(odd >> k & 1));
        }
    }
}
