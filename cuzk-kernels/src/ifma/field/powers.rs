//! Powers of two modulo p, computed when the program is compiled.

use super::lanes::to_limbs;
use crate::arithmetic::CHARACTERISTIC;

/// 2^e modulo p, in limbs: by doubling.
pub(in crate::ifma) const fn power_of_two(e: u32) -> [u64; 8] {
    to_limbs(&words_of_power_of_two(e))
}

const fn words_of_power_of_two(e: u32) -> [u64; 6] {
    let mut words = [1, 0, 0, 0, 0, 0];
    let mut i = 0;
    while i < e {
        words = double(&words);
        i += 1;
    }
    words
}

/// p less a reduced number other than zero.
pub(in crate::ifma) const fn negated(words: &[u64; 6]) -> [u64; 6] {
    let mut difference = [0; 6];
    let (mut i, mut borrow) = (0, false);
    while i < 6 {
        let (d, b1) = CHARACTERISTIC[i].overflowing_sub(words[i]);
        let (d, b2) = d.overflowing_sub(borrow as u64);
        difference[i] = d;
        borrow = b1 | b2;
        i += 1;
    }
    difference
}

/// 2^−e modulo p: by halving.
pub(in crate::ifma) const fn words_of_inverse_power_of_two(e: u32) -> [u64; 6] {
    let mut words = [1, 0, 0, 0, 0, 0];
    let mut i = 0;
    while i < e {
        words = half(&words);
        i += 1;
    }
    words
}

/// Half of a reduced number, reduced.
const fn half(words: &[u64; 6]) -> [u64; 6] {
    let is_odd = words[0] & 1 == 1;
    let mut sum = [0; 6];
    let (mut i, mut carry) = (0, false);
    while i < 6 {
        let p = if is_odd { CHARACTERISTIC[i] } else { 0 };
        let (s, c1) = words[i].overflowing_add(p);
        let (s, c2) = s.overflowing_add(carry as u64);
        sum[i] = s;
        carry = c1 | c2;
        i += 1;
    }
    // No bit is carried out: the modulus has 381.
    let mut i = 0;
    while i < 6 {
        sum[i] = sum[i] >> 1 | if i < 5 { sum[i + 1] << 63 } else { 0 };
        i += 1;
    }
    sum
}

/// Twice a reduced number, reduced.
const fn double(words: &[u64; 6]) -> [u64; 6] {
    let mut sum = [0; 6];
    let (mut i, mut top) = (0, 0);
    while i < 6 {
        sum[i] = words[i] << 1 | top;
        top = words[i] >> 63;
        i += 1;
    }
    reduce_once(&sum)
}

/// The number, less p if it is at least p.
#[inline]
pub(in crate::ifma) const fn reduce_once(words: &[u64; 6]) -> [u64; 6] {
    let mut difference = [0; 6];
    let (mut i, mut borrow) = (0, false);
    while i < 6 {
        let (d, b1) = words[i].overflowing_sub(CHARACTERISTIC[i]);
        let (d, b2) = d.overflowing_sub(borrow as u64);
        difference[i] = d;
        borrow = b1 | b2;
        i += 1;
    }
    if borrow { *words } else { difference }
}
