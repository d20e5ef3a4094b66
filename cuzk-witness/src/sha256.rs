//! SHA-256 as the gadget of bellperson allocates it, computed on words.
//!
//! The hash is that of FIPS 180-4. Every intermediate word of it is a run of bits of the
//! witness. Constants allocate less: the initial state, padding, and known bits of the
//! message. [`crate::uint32`] follows them until only variables are left, within four
//! rounds. From there on a round is plain arithmetic and six writes.
//!
//! Not a hash for other uses, and not constant-time.
//!
//! Invariant: the variables written are those that
//! `sha256_compression_function` allocates, in its order.

use crate::bits::BitRun;
use crate::uint32::{Sum, Word, interleave, low};
use cuzk_pce::PackedBuilder;
use ff::PrimeField;

const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

#[rustfmt::skip]
const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// Bits of a sum of six, seven or eight words.
const SUM_BITS: u32 = 35;

/// The most bits that a compression allocates. There are 48 words of the schedule, with
/// four exclusive ors and a sum each. There are 64 rounds, with two sums, four exclusive
/// ors, a choice, and a majority of two variables a bit. Eight sums come last.
pub(crate) const COMPRESSION_BITS_AT_MOST: usize =
    48 * (4 * 32 + 34) + 64 * (2 * 35 + 4 * 32 + 32 + 64) + 8 * 35;

const ROOM: usize = COMPRESSION_BITS_AT_MOST.div_ceil(64);

/// Hashes a message of whole words; its padding is constant. Gives the
/// digest's words.
pub(crate) fn sha256<S: PrimeField>(message: &[Word], builder: &mut PackedBuilder<S>) -> [u32; 8] {
    let mut state = INITIAL.map(Word::constant);
    let mut blocks = message.chunks_exact(16);
    for block in &mut blocks {
        compress(&mut state, block, builder);
    }
    let mut last: Vec<Word> = blocks.remainder().to_vec();
    last.push(Word::constant(1 << 31));
    let length = 32 * message.len() as u64;
    while last.len() % 16 != 14 {
        last.push(Word::constant(0));
    }
    last.extend([length >> 32, length].map(|word| Word::constant(low(word))));
    for block in last.chunks_exact(16) {
        compress(&mut state, block, builder);
    }
    state.map(|word| word.value)
}

/// The state after one more block, which has 16 words.
pub(crate) fn compress<S: PrimeField>(
    state: &mut [Word; 8],
    block: &[Word],
    builder: &mut PackedBuilder<S>,
) {
    let mut room = [0; ROOM];
    let mut run = BitRun::new(&mut room);
    let schedule = schedule(block, &mut run);
    let mut working = Working::new(state);
    for (round, word) in schedule.iter().enumerate() {
        if working.is_variables() {
            working = working.rounds_of_variables(round, &schedule, &mut run);
            break;
        }
        working = working.round(ROUND[round], *word, &mut run);
    }
    working.add_to(state, &mut run);
    run.write_to(builder);
}

/// The words that the rounds take, of which the first are the block's.
fn schedule(block: &[Word], run: &mut BitRun<'_>) -> [Word; 64] {
    let mut words = [Word::constant(0); 64];
    words[..16].copy_from_slice(block);
    for i in 16..64 {
        let (old, recent) = (words[i - 15], words[i - 2]);
        words[i] = if old.is_variables() && recent.is_variables() {
            let s0 = sigma_of_variables(old.value, 7, 18, 3, run);
            let s1 = sigma_of_variables(recent.value, 17, 19, 10, run);
            let terms = [words[i - 16].value, s0, words[i - 7].value, s1];
            let total = terms.into_iter().map(u64::from).sum();
            run.push(total, 34);
            Word::variables(low(total))
        } else {
            let s0 = old.rotr(7).xor(old.rotr(18), run).xor(old.shr(3), run);
            let s1 = recent.rotr(17).xor(recent.rotr(19), run);
            let s1 = s1.xor(recent.shr(10), run);
            Sum::of(&[words[i - 16], s0, words[i - 7], s1]).write(run)
        };
    }
    words
}

/// σ of a word of variables: as many bits of the second exclusive or are
/// variables as the shift leaves.
#[inline(always)]
fn sigma_of_variables(word: u32, first: u32, second: u32, shift: u32, run: &mut BitRun<'_>) -> u32 {
    let turned = word.rotate_right(first) ^ word.rotate_right(second);
    let sigma = turned ^ word >> shift;
    let left = sigma & u32::MAX >> shift;
    run.push(u64::from(turned) | u64::from(left) << 32, 64 - shift);
    sigma
}

/// Σ of a word of variables.
#[inline(always)]
fn big_sigma_of_variables(word: u32, by: [u32; 3], run: &mut BitRun<'_>) -> u32 {
    let turned = word.rotate_right(by[0]) ^ word.rotate_right(by[1]);
    let sigma = turned ^ word.rotate_right(by[2]);
    run.push(u64::from(turned) | u64::from(sigma) << 32, 64);
    sigma
}

fn big_sigma(word: Word, by: [u32; 3], run: &mut BitRun<'_>) -> Word {
    let turned = word.rotr(by[0]).xor(word.rotr(by[1]), run);
    turned.xor(word.rotr(by[2]), run)
}

/// A new value of `a` or `e`. The circuit allocates a round's sums only when the next round
/// needs them, or when it adds the state to them at the end.
#[derive(Clone, Copy)]
enum Pending {
    Word(Word),
    Sum(Sum),
}

impl Pending {
    fn resolve(self, run: &mut BitRun<'_>) -> Word {
        match self {
            Pending::Word(word) => word,
            Pending::Sum(sum) => sum.write(run),
        }
    }

    fn plus(self, word: Word) -> Sum {
        match self {
            Pending::Word(first) => Sum::of(&[first, word]),
            Pending::Sum(sum) => sum.plus(word),
        }
    }

    /// The sum, if it is one and of variables.
    fn variables(self) -> Option<u64> {
        match self {
            Pending::Sum(sum) if !sum.is_constant() => Some(sum.total),
            _ => None,
        }
    }
}

/// The working variables before a round.
#[derive(Clone, Copy)]
struct Working {
    a: Pending,
    b: Word,
    c: Word,
    d: Word,
    e: Pending,
    f: Word,
    g: Word,
    h: Word,
}

impl Working {
    fn new(&[a, b, c, d, e, f, g, h]: &[Word; 8]) -> Self {
        Working {
            a: Pending::Word(a),
            b,
            c,
            d,
            e: Pending::Word(e),
            f,
            g,
            h,
        }
    }

    /// Returns true if everything that a round combines bit by bit is a variable. It stays
    /// so. Words that are only added do not matter.
    fn is_variables(&self) -> bool {
        let words = [self.b, self.c, self.f, self.g];
        words.into_iter().all(Word::is_variables)
            && self.a.variables().is_some()
            && self.e.variables().is_some()
    }

    fn round(self, constant: u32, word: Word, run: &mut BitRun<'_>) -> Self {
        let Working {
            b, c, d, f, g, h, ..
        } = self;
        let e = self.e.resolve(run);
        let s1 = big_sigma(e, [6, 11, 25], run);
        let ch = e.ch(f, g, run);
        let first = Sum::of(&[h, s1, ch, Word::constant(constant), word]);
        let a = self.a.resolve(run);
        let s0 = big_sigma(a, [2, 13, 22], run);
        let maj = a.maj(b, c, run);
        Working {
            a: Pending::Sum(first.plus(s0).plus(maj)),
            b: a,
            c: b,
            d: c,
            e: Pending::Sum(first.plus(d)),
            f: e,
            g: f,
            h: g,
        }
    }

    /// The rounds from `from` to the last, if [`Self::is_variables`].
    fn rounds_of_variables(self, from: usize, words: &[Word; 64], run: &mut BitRun<'_>) -> Self {
        let sum = |pending: Pending| pending.variables().unwrap_or_default();
        let (mut a_sum, mut e_sum) = (sum(self.a), sum(self.e));
        let [mut b, mut c, mut d] = [self.b, self.c, self.d].map(|word| word.value);
        let [mut f, mut g, mut h] = [self.f, self.g, self.h].map(|word| word.value);
        for (constant, word) in ROUND[from..].iter().zip(&words[from..]) {
            let e = low(e_sum);
            run.push(e_sum, SUM_BITS);
            let s1 = big_sigma_of_variables(e, [6, 11, 25], run);
            let ch = e & f | !e & g;
            run.push(ch.into(), 32);
            let terms = [h, s1, ch, *constant, word.value];
            let first: u64 = terms.into_iter().map(u64::from).sum();
            let a = low(a_sum);
            run.push(a_sum, SUM_BITS);
            let s0 = big_sigma_of_variables(a, [2, 13, 22], run);
            let both = b & c;
            let maj = a & (b | c) | both;
            run.push(interleave(maj, both), 64);
            a_sum = first + u64::from(s0) + u64::from(maj);
            e_sum = first + u64::from(d);
            (b, c, d) = (a, b, c);
            (f, g, h) = (e, f, g);
        }
        Working {
            a: Pending::Sum(Sum::of_variables(a_sum, 7)),
            b: Word::variables(b),
            c: Word::variables(c),
            d: Word::variables(d),
            e: Pending::Sum(Sum::of_variables(e_sum, 6)),
            f: Word::variables(f),
            g: Word::variables(g),
            h: Word::variables(h),
        }
    }

    /// Adds the working variables to the state.
    fn add_to(self, state: &mut [Word; 8], run: &mut BitRun<'_>) {
        let Working {
            b, c, d, f, g, h, ..
        } = self;
        let pending = Pending::Word;
        let parts = [
            self.a,
            pending(b),
            pending(c),
            pending(d),
            self.e,
            pending(f),
            pending(g),
            pending(h),
        ];
        for (word, part) in state.iter_mut().zip(parts) {
            *word = part.plus(*word).write(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uint32::tests::{allocate, word};
    use bellperson::ConstraintSystem;
    use bellperson::gadgets::boolean::Boolean;
    use bellperson::gadgets::sha256 as gadget;
    use bellperson::util_cs::witness_cs::WitnessCS;
    use blstrs::Scalar;
    use proptest::prelude::*;

    fn words(count: usize) -> impl Strategy<Value = Vec<Word>> {
        prop_oneof![
            // Most often what is hashed is variables, or nearly.
            prop::collection::vec(any::<u32>().prop_map(Word::variables), count),
            prop::collection::vec(
                prop_oneof![
                    9 => any::<u32>().prop_map(Word::variables),
                    1 => any::<u32>().prop_map(Word::constant),
                ],
                count
            ),
            prop::collection::vec(word(), count),
            prop::collection::vec(any::<u32>().prop_map(Word::constant), count),
        ]
    }

    fn bits(cs: &mut WitnessCS<Scalar>, words: &[Word]) -> Vec<Boolean> {
        let words = words.iter().map(|word| allocate(cs, *word));
        words.flat_map(|word| word.into_bits_be()).collect()
    }

    fn assert_same(builder: PackedBuilder<Scalar>, theirs: &[Scalar]) {
        let mut whole = PackedBuilder::default();
        whole.push_input(Scalar::from(1));
        whole.append(&builder);
        let ours = whole.finish().unwrap().to_plain();
        assert_eq!(ours.aux().len(), theirs.len());
        assert!(ours.aux() == theirs);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn compression_is_the_gadgets(state in words(8), block in words(16)) {
            let mut cs = WitnessCS::new();
            let theirs_state: Vec<_> = state.iter().map(|w| allocate(&mut cs, *w)).collect();
            let input = bits(&mut cs, &block);
            let before = cs.aux_slice().len();
            let out = gadget::sha256_compression_function(&mut cs, &input, &theirs_state).unwrap();

            let mut ours: [Word; 8] = state.try_into().unwrap();
            let mut builder = PackedBuilder::default();
            compress(&mut ours, &block, &mut builder);
            assert_same(builder, &cs.aux_slice()[before..]);
            for (ours, theirs) in ours.iter().zip(out) {
                let bits = theirs.into_bits();
                let value: u32 = (0..32).map(|k| u32::from(bits[k].get_value().unwrap()) << k).sum();
                prop_assert_eq!(ours.value, value);
                prop_assert_eq!(ours.is_variables(), !bits[0].is_constant());
            }
        }

        #[test]
        fn hash_is_the_gadgets(message in (0..40usize).prop_flat_map(words)) {
            let mut cs = WitnessCS::new();
            let input = bits(&mut cs, &message);
            let before = cs.aux_slice().len();
            let out = gadget::sha256(&mut cs, &input).unwrap();

            let mut builder = PackedBuilder::default();
            let digest = sha256(&message, &mut builder);
            assert_same(builder, &cs.aux_slice()[before..]);
            for (k, bit) in out.iter().enumerate() {
                let ours = digest[k / 32] >> (31 - k % 32) & 1 == 1;
                prop_assert_eq!(ours, bit.get_value().unwrap());
            }
        }
    }

    /// FIPS 180-4's example of two blocks, as words of variables.
    #[test]
    fn known_answer() {
        let message = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        let words = message.chunks(4).map(|chunk| {
            let word = u32::from_be_bytes(chunk.try_into().unwrap());
            Word::variables(word)
        });
        let mut builder = PackedBuilder::<Scalar>::default();
        let digest = sha256(&words.collect::<Vec<_>>(), &mut builder);
        let expected = [
            0x248d_6a61,
            0xd206_38b8,
            0xe5c0_2693,
            0x0c3e_6039,
            0xa33c_e459,
            0x64ff_2167,
            0xf6ec_edd4,
            0x19db_06c1,
        ];
        assert_eq!(digest, expected);
    }
}
