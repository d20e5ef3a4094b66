//! Changes of inputs at random, by bytes and by pieces.

use rand::seq::SliceRandom;
use rand::{Rng, RngCore};

/// Bytes at which decoders decide something.
const EDGES: [u8; 12] = [0, 1, 2, 9, b'"', b'0', b'[', b'{', 0x7f, 0x80, 0xfe, 0xff];

/// The most changes of one input.
const CHANGES_MAX: u32 = 6;

/// The longest piece that is inserted, repeated or removed, in bytes.
const PIECE_BYTES_MAX: usize = 64;

/// Returns a mutant of `input`. Pieces of `other` and of `words` may be in it.
pub(crate) fn mutant(
    input: &[u8],
    other: &[u8],
    words: &[&[u8]],
    random: &mut impl RngCore,
) -> Vec<u8> {
    let mut input = input.to_vec();
    for _ in 0..random.gen_range(1..=CHANGES_MAX) {
        change(&mut input, other, words, random);
    }
    input
}

fn change(input: &mut Vec<u8>, other: &[u8], words: &[&[u8]], random: &mut impl RngCore) {
    let at = random.gen_range(0..=input.len());
    let piece_bytes = random.gen_range(0..=PIECE_BYTES_MAX.min(input.len() - at));
    let piece = at..at + piece_bytes;
    match random.gen_range(0..12) {
        0..=2 if at < input.len() => input[at] ^= 1 << random.gen_range(0..8),
        3 if at < input.len() => input[at] = EDGES.choose(random).copied().unwrap_or_default(),
        4 if at < input.len() => input[at] = random.r#gen(),
        5 if at < input.len() => {
            input[at] = input[at]
                .wrapping_add(random.gen_range(0..=32))
                .wrapping_sub(16);
        }
        6 => {
            let inserted: Vec<u8> = (0..piece_bytes).map(|_| random.r#gen()).collect();
            input.splice(at..at, inserted);
        }
        7 => drop(input.drain(piece)),
        8 => {
            let repeated = input[piece].to_vec();
            input.splice(at..at, repeated);
        }
        9 => input.truncate(at),
        10 => {
            let from = random.gen_range(0..=other.len());
            let until = other.len().min(from + PIECE_BYTES_MAX);
            input.splice(piece, other[from..until].iter().copied());
        }
        _ => {
            let word = words.choose(random).copied().unwrap_or(&EDGES);
            input.splice(piece, word.iter().copied());
        }
    }
}
