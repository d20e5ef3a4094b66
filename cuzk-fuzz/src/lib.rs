//! Decoders, tried with inputs that were mutated. For tests only.
//!
//! Not guided by coverage: good inputs are changed at random, by bytes and by pieces, which
//! an ordinary `cargo test` can do. The invariants:
//!
//! * Without [`SECONDS`] each run has the same inputs, and their number is fixed.
//! * An input that failed is kept in the corpus, and is tried first in each later run.

#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::any::Any;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rand::seq::SliceRandom;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The variable that makes a run longer: the CPU time of this process for each decoder, in
/// seconds. Run the tests one at a time then, with `--test-threads=1`.
pub const SECONDS: &str = "CUZK_FUZZ_SECONDS";

/// Bytes at which decoders decide something.
const EDGES: [u8; 12] = [0, 1, 2, 9, b'"', b'0', b'[', b'{', 0x7f, 0x80, 0xfe, 0xff];

/// The most changes of one input.
const CHANGES_MAX: u32 = 6;

/// The longest piece that is inserted, repeated or removed, in bytes.
const PIECE_BYTES_MAX: usize = 64;

/// The inputs of a decoder, and the pieces that its language has.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
    inputs: Vec<Vec<u8>>,
    words: &'static [&'static [u8]],
}

impl Corpus {
    /// Reads the inputs in a folder, which need not be there. Inputs that fail are put there.
    #[must_use]
    pub fn read(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
            .unwrap_or_default();
        // The order decides which input is mutated when.
        files.sort();
        let inputs = files.iter().map(|file| std::fs::read(file).unwrap());
        Self {
            inputs: inputs.collect(),
            folder,
            words: &[],
        }
    }

    /// Adds an input.
    #[must_use]
    pub fn with(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.inputs.push(input.into());
        self
    }

    /// Sets the pieces that are inserted.
    #[must_use]
    pub fn with_words(self, words: &'static [&'static [u8]]) -> Self {
        Self { words, ..self }
    }

    /// Calls `check` with each input and with `count` mutants, or for as long as [`SECONDS`]
    /// says. Returns the number of inputs.
    ///
    /// # Panics
    /// If `check` does. The input is in the corpus then.
    pub fn fuzz(&self, count: u64, mut check: impl FnMut(&[u8])) -> u64 {
        assert!(!self.inputs.is_empty(), "{:?} is empty", self.folder);
        for input in &self.inputs {
            self.try_one(input, &mut check);
        }
        let seconds = std::env::var(SECONDS).ok();
        let seconds = seconds.map(|seconds| seconds.parse().unwrap());
        let until = seconds.map(|seconds| cpu_time() + Duration::from_secs(seconds));
        // A longer run begins elsewhere each time, so that nightly runs add up.
        let seed = until.map_or(0, |_| rand::thread_rng().next_u64());
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut tried = 0;
        while until.map_or(tried < count, |until| cpu_time() < until) {
            self.try_one(&self.mutant(&mut random), &mut check);
            tried += 1;
        }
        tried + self.inputs.len() as u64
    }

    /// Tries a decoder with `count` mutants, as [`Self::fuzz`] does. `decode` looks at what it
    /// made of an input, and `is_expected` returns true for an error that the decoder may
    /// answer with. Prints the number of inputs, which are `inputs`.
    ///
    /// # Panics
    /// As [`Self::fuzz`]. Also if the decoder takes no input or refuses none: such a corpus
    /// tries nothing.
    pub fn fuzz_decoder<E: fmt::Display>(
        &self,
        inputs: &str,
        count: u64,
        mut decode: impl FnMut(&[u8]) -> Result<(), E>,
        is_expected: impl Fn(&E) -> bool,
    ) {
        let (mut good, mut bad) = (0_u64, 0_u64);
        let tried = self.fuzz(count, |input| match decode(input) {
            Ok(()) => good += 1,
            Err(error) => {
                assert!(is_expected(&error), "{error}");
                bad += 1;
            }
        });
        println!("{tried} {inputs}");
        assert!(good > 0 && bad > 0, "{good} good, {bad} bad");
    }

    fn try_one(&self, input: &[u8], check: &mut impl FnMut(&[u8])) {
        let tried = catch_unwind(AssertUnwindSafe(|| check(input)));
        if let Err(panic) = tried {
            self.keep(input, panic);
        }
    }

    /// Puts an input that failed into the corpus, and goes on with its panic.
    fn keep(&self, input: &[u8], panic: Box<dyn Any + Send>) -> ! {
        let mut digest = DefaultHasher::new();
        input.hash(&mut digest);
        let path = self.folder.join(format!("failed-{:016x}", digest.finish()));
        std::fs::create_dir_all(&self.folder).unwrap();
        std::fs::write(&path, input).unwrap();
        eprintln!("the input that failed is kept: {}", path.display());
        resume_unwind(panic)
    }

    fn mutant(&self, random: &mut ChaCha8Rng) -> Vec<u8> {
        let mut input = self.inputs.choose(random).cloned().unwrap_or_default();
        for _ in 0..random.gen_range(1..=CHANGES_MAX) {
            self.change(&mut input, random);
        }
        input
    }

    fn change(&self, input: &mut Vec<u8>, random: &mut ChaCha8Rng) {
        let at = random.gen_range(0..=input.len());
        let piece_bytes = random.gen_range(0..=PIECE_BYTES_MAX.min(input.len() - at));
        let piece = at..at + piece_bytes;
        match random.gen_range(0..10) {
            0..=2 if at < input.len() => input[at] ^= 1 << random.gen_range(0..8),
            3 if at < input.len() => input[at] = *EDGES.choose(random).unwrap(),
            4 => {
                let inserted: Vec<u8> = (0..piece_bytes).map(|_| random.r#gen()).collect();
                input.splice(at..at, inserted);
            }
            5 => drop(input.drain(piece)),
            6 => {
                let repeated = input[piece].to_vec();
                input.splice(at..at, repeated);
            }
            7 => input.truncate(at),
            8 => {
                let other = self.inputs.choose(random).unwrap();
                let from = random.gen_range(0..=other.len());
                let until = other.len().min(from + PIECE_BYTES_MAX);
                input.splice(piece, other[from..until].iter().copied());
            }
            _ => {
                let word = self.words.choose(random).copied().unwrap_or(&EDGES);
                input.splice(piece, word.iter().copied());
            }
        }
    }
}

/// Returns the time that this process has computed.
fn cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let times = [usage.user_time(), usage.system_time()];
    times
        .iter()
        .map(|time| Duration::from_micros(time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_fails_is_found_and_kept() {
        let folder = std::env::temp_dir().join(format!("cuzk-fuzz-{}", std::process::id()));
        let corpus = || {
            Corpus::read(&folder)
                .with(*b"size=2048")
                .with_words(&[b"size="])
        };
        let finds = |count, needle: &[u8]| {
            catch_unwind(|| {
                corpus().fuzz(count, |input| {
                    assert!(!input.windows(needle.len()).any(|part| part == needle));
                })
            })
        };
        assert_eq!(finds(2_000, b"never this").unwrap(), 2_001);
        finds(20_000, b"size=size").unwrap_err();
        // The kept input comes before all mutants.
        finds(0, b"size=size").unwrap_err();
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_decoder_takes_some_inputs_and_refuses_others_as_it_may() {
        let folder = std::env::temp_dir().join(format!("cuzk-decoder-{}", std::process::id()));
        let is_tried = |decode: fn(&[u8]) -> Result<(), &'static str>| {
            let corpus = Corpus::read(&folder).with(*b"size=2048");
            let fuzz = || corpus.fuzz_decoder("sizes", 200, decode, |error| *error == "no size");
            catch_unwind(fuzz).is_ok()
        };
        assert!(is_tried(|input| match input.starts_with(b"size") {
            true => Ok(()),
            false => Err("no size"),
        }));
        assert!(!is_tried(|_| Ok(())), "it refuses nothing");
        assert!(!is_tried(|_| Err("no size")), "it takes nothing");
        assert!(!is_tried(|input| match input.starts_with(b"size") {
            true => Ok(()),
            false => Err("a defect"),
        }));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
