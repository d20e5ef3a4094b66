//! Residues in Montgomery form, in N words of 64 bits, lowest first.
//!
//! Not fields: it knows neither curves nor blst. Products of words are 128 bits
//! wide, which every compiler has an instruction or a routine for. Invariant:
//! what comes in is below the modulus, and so is what goes out.

use std::cmp::Ordering;

/// The words of a residue.
pub(super) type Words<const N: usize> = [u64; N];

/// An odd modulus below 2^(64·N − 1), which leaves room for a sum of two residues.
pub(super) trait Modulus<const N: usize> {
    /// Its words.
    const WORDS: Words<N>;
    /// −1 / modulus, modulo 2^64.
    const NEGATIVE_INVERSE: u64 = negative_inverse(Self::WORDS[0]);
    /// The radix' square, reduced.
    const RADIX_SQUARED: Words<N> = power_of_two(128 * N, &Self::WORDS);
}

/// Montgomery's product, `a · b / radix`.
#[inline(always)]
pub(super) fn multiply<M: Modulus<N>, const N: usize>(a: &Words<N>, b: &Words<N>) -> Words<N> {
    sum_of_products::<M, N, 1>([(a, b)])
}

/// The sum of one or two products, `(a · b + c · d) / radix`, reduced once.
///
/// Operand scanning with the reduction interleaved (Koç, Acar, Kaliski,
/// "Analyzing and comparing Montgomery multiplication algorithms", 1996). The
/// modulus has as many spare bits as there are products.
#[inline(always)]
pub(super) fn sum_of_products<M: Modulus<N>, const N: usize, const TERMS: usize>(
    terms: [(&Words<N>, &Words<N>); TERMS],
) -> Words<N> {
    const { assert!(N >= 4 && N <= 6 && M::WORDS[N - 1] >> (64 - TERMS) == 0) };
    let round = |sums, i: usize| round::<M, N, TERMS>(sums, terms.map(|(a, b)| (a, b[i])));
    // Unrolled by hand: the compiler keeps the sums in registers only if there
    // is no loop.
    let mut sums = round([0; N], 0);
    sums = round(sums, 1);
    sums = round(sums, 2);
    sums = round(sums, 3);
    if N > 4 {
        sums = round(sums, 4);
    }
    if N > 5 {
        sums = round(sums, 5);
    }
    subtract_once::<M, N>(sums)
}

/// Adds products with a word, clears the lowest word with a multiple of the modulus, and
/// drops it. The rest stays below TERMS + 1 times the modulus, so carries out of the words
/// fit one word.
#[inline(always)]
fn round<M: Modulus<N>, const N: usize, const TERMS: usize>(
    mut sums: Words<N>,
    terms: [(&Words<N>, u64); TERMS],
) -> Words<N> {
    let mut above = 0;
    for (a, b) in terms {
        let mut carry = 0;
        for j in 0..N {
            (sums[j], carry) = multiply_add(sums[j], a[j], b, carry);
        }
        above += carry;
    }
    let factor = sums[0].wrapping_mul(M::NEGATIVE_INVERSE);
    let (_, mut carry) = multiply_add(sums[0], factor, M::WORDS[0], 0);
    for j in 1..N {
        (sums[j - 1], carry) = multiply_add(sums[j], factor, M::WORDS[j], carry);
    }
    sums[N - 1] = above + carry;
    sums
}

/// `a + b`.
#[inline(always)]
pub(super) fn add<M: Modulus<N>, const N: usize>(a: &Words<N>, b: &Words<N>) -> Words<N> {
    subtract_once::<M, N>(sum(a, b))
}

/// `a + b` without a carry out of the words.
#[inline(always)]
fn sum<const N: usize>(a: &Words<N>, b: &Words<N>) -> Words<N> {
    let mut sum = [0; N];
    let mut carry = 0;
    for i in 0..N {
        (sum[i], carry) = add_words(a[i], b[i], carry);
    }
    sum
}

/// `a − b`.
#[inline(always)]
pub(super) fn subtract<M: Modulus<N>, const N: usize>(a: &Words<N>, b: &Words<N>) -> Words<N> {
    let (difference, borrow) = difference(a, b);
    let mask = borrow.wrapping_neg();
    sum(&difference, &M::WORDS.map(|word| word & mask))
}

/// `a + b` and `a − b`, without a branch, which compilers make of [`subtract`]'s mask.
#[inline(always)]
pub(super) fn sum_and_difference<M: Modulus<N>, const N: usize>(
    a: &Words<N>,
    b: &Words<N>,
) -> (Words<N>, Words<N>) {
    let (difference, borrow) = difference(a, b);
    let above = sum(&difference, &M::WORDS);
    let difference = choose(borrow.wrapping_neg(), &above, &difference);
    (add::<M, N>(a, b), difference)
}

/// `−a`.
#[inline(always)]
pub(super) fn negate<M: Modulus<N>, const N: usize>(a: &Words<N>) -> Words<N> {
    subtract::<M, N>(&[0; N], a)
}

/// `−a` if `negative`, which takes as long if it is not.
#[inline(always)]
pub(super) fn negate_if<M: Modulus<N>, const N: usize>(a: &Words<N>, negative: bool) -> Words<N> {
    choose(u64::from(negative).wrapping_neg(), &negate::<M, N>(a), a)
}

/// `radix² / a`, which is the inverse in Montgomery form, if a is not 0 and
/// the modulus is prime.
///
/// The binary Euclidean algorithm (Knuth, "The Art of Computer Programming", volume 2,
/// 4.5.2). Throughout, modulo the modulus, `u · radix² = x · a` and `v · radix² = y · a`. u
/// and v are odd when they are compared. Their greatest common divisor is that of a and the
/// modulus.
pub(super) fn invert<M: Modulus<N>, const N: usize>(a: &Words<N>) -> Option<Words<N>> {
    if *a == [0; N] {
        return None;
    }
    let (mut u, mut x) = (*a, M::RADIX_SQUARED);
    let (mut v, mut y) = (M::WORDS, [0; N]);
    make_odd::<M, N>(&mut u, &mut x);
    loop {
        match u.iter().rev().cmp(v.iter().rev()) {
            Ordering::Equal => return Some(x),
            Ordering::Less => {
                (v, _) = difference(&v, &u);
                y = subtract::<M, N>(&y, &x);
                make_odd::<M, N>(&mut v, &mut y);
            }
            Ordering::Greater => {
                (u, _) = difference(&u, &v);
                x = subtract::<M, N>(&x, &y);
                make_odd::<M, N>(&mut u, &mut x);
            }
        }
    }
}

/// Divides both by two until the first, which is not 0, is odd.
#[inline]
fn make_odd<M: Modulus<N>, const N: usize>(value: &mut Words<N>, residue: &mut Words<N>) {
    while value[0] & 1 == 0 {
        // A shift by 64 is none.
        let bits = value[0].trailing_zeros().min(63);
        *value = shift_right(value, 0, bits);
        // A multiple of the modulus makes the residue's low bits zero.
        let mask = (1 << bits) - 1;
        let factor = residue[0].wrapping_mul(M::NEGATIVE_INVERSE) & mask;
        let mut carry = 0;
        for (word, modulus) in residue.iter_mut().zip(M::WORDS) {
            (*word, carry) = multiply_add(*word, factor, modulus, carry);
        }
        *residue = shift_right(residue, carry, bits);
    }
}

/// Shifts by 1 to 63 bits, those of `above` coming in.
#[inline(always)]
fn shift_right<const N: usize>(words: &Words<N>, above: u64, bits: u32) -> Words<N> {
    let mut shifted = [0; N];
    for i in 0..N {
        let next = if i + 1 < N { words[i + 1] } else { above };
        shifted[i] = words[i] >> bits | next << (64 - bits);
    }
    shifted
}

/// Subtracts the modulus from what is not below it, but below its double.
#[inline(always)]
fn subtract_once<M: Modulus<N>, const N: usize>(value: Words<N>) -> Words<N> {
    let (reduced, borrow) = difference(&value, &M::WORDS);
    choose(borrow.wrapping_neg(), &value, &reduced)
}

/// `a` where the mask's bits are set, and `b` elsewhere.
#[inline(always)]
fn choose<const N: usize>(mask: u64, a: &Words<N>, b: &Words<N>) -> Words<N> {
    let mut chosen = *b;
    for i in 0..N {
        chosen[i] ^= (b[i] ^ a[i]) & mask;
    }
    chosen
}

/// `a − b` and the borrow.
#[inline(always)]
fn difference<const N: usize>(a: &Words<N>, b: &Words<N>) -> (Words<N>, u64) {
    let mut difference = [0; N];
    let mut borrow = 0;
    for i in 0..N {
        (difference[i], borrow) = subtract_words(a[i], b[i], borrow);
    }
    (difference, borrow)
}

/// `sum + a · b + carry`, its low and its high word; it is below 2^128.
#[inline(always)]
const fn multiply_add(sum: u64, a: u64, b: u64, carry: u64) -> (u64, u64) {
    halves(a as u128 * b as u128 + sum as u128 + carry as u128)
}

/// The sum and the carry, which is a bit.
#[inline(always)]
const fn add_words(a: u64, b: u64, carry: u64) -> (u64, u64) {
    halves(a as u128 + b as u128 + carry as u128)
}

/// The difference and the borrow, which is a bit.
#[inline(always)]
const fn subtract_words(a: u64, b: u64, borrow: u64) -> (u64, u64) {
    let (difference, first) = a.overflowing_sub(b);
    let (difference, second) = difference.overflowing_sub(borrow);
    (difference, (first | second) as u64)
}

/// The low and the high word.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "that is the low word")]
const fn halves(value: u128) -> (u64, u64) {
    (value as u64, (value >> 64) as u64)
}

/// −1 / word, modulo 2^64, by Newton's iteration: each step doubles the bits
/// that are right, of which an odd word has three to begin with.
const fn negative_inverse(word: u64) -> u64 {
    let mut inverse = word;
    let mut bits = 3;
    while bits < 64 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(word.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse.wrapping_neg()
}

/// 2^exponent, reduced, by doubling.
const fn power_of_two<const N: usize>(exponent: usize, modulus: &Words<N>) -> Words<N> {
    let mut power = [0; N];
    power[0] = 1;
    let mut done = 0;
    while done < exponent {
        let (mut doubled, mut reduced) = (power, power);
        let (mut carry, mut borrow, mut i) = (0, 0, 0);
        while i < N {
            (doubled[i], carry) = add_words(power[i], power[i], carry);
            (reduced[i], borrow) = subtract_words(doubled[i], modulus[i], borrow);
            i += 1;
        }
        power = if borrow == 0 { reduced } else { doubled };
        done += 1;
    }
    power
}
