//! Decoders, tried with inputs that were mutated. For tests only.
//!
//! Good inputs are changed at random, by bytes and by pieces. An ordinary `cargo test` does no more.
//! Code that was compiled with `.ci/guided-rustc` counts its edges, which then guide the run. An
//! input that reaches an edge first, or more often than before, is mutated like the good ones. The
//! invariants:
//!
//! * Without counters and without [`SECONDS`] each run has the same inputs, and their number is
//!   fixed.
//! * An input that failed is kept in the corpus, and is tried first in each later run.
//! * Each run tries the inputs of the tree that guided runs found before.
//! * A guided run keeps what it found in the folder `CUZK_FUZZ_CORPUS`, or in `target/fuzz`. The
//!   next run goes on with it, so that runs add up. If a run did not come to its end, the next one
//!   begins with its last input, which may have ended the process.
//!
//! An input is run once more, and is not taken if it then reaches nothing of what was new. Other
//! threads have reached that, or what a process makes once.

#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

mod coverage;
mod found;
mod guide;
mod kept;
mod limit;
mod mutate;
mod run;

use std::any::Any;
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

use crate::coverage::{Compiled, Uncounted};
use crate::guide::Guide;
use crate::kept::Kept;
use crate::limit::Limit;
use crate::run::Run;

pub use crate::found::write as write_found;
pub use crate::kept::folder as kept_folder;

/// The variable that makes a run longer: the CPU time of this process for each decoder, in
/// seconds. Run the tests one at a time then, with `--test-threads=1`.
pub const SECONDS: &str = "CUZK_FUZZ_SECONDS";

/// The variable for a comparison: it makes a run unguided whose code was compiled with counters. The
/// run prints how many edges it reached.
const UNGUIDED: &str = "CUZK_FUZZ_UNGUIDED";

/// The inputs of a decoder, and the pieces that its language has.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
    inputs: Vec<Vec<u8>>,
    /// Those that guided runs found before. They are tried, and only a guided run mutates them.
    found: Vec<Vec<u8>>,
    words: &'static [&'static [u8]],
}

impl Corpus {
    /// Reads the inputs in a folder, which need not be there, and those that guided runs found. Inputs
    /// that fail are put in the folder.
    #[must_use]
    pub fn read(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let mut files: Vec<_> = fs::read_dir(&folder)
            .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
            .unwrap_or_default();
        // The order decides which input is mutated when.
        files.sort();
        let inputs = files.iter().map(|file| fs::read(file).unwrap());
        Self {
            inputs: inputs.collect(),
            found: found::read(&folder),
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
    /// says. Returns the number of inputs. A guided run prints what it reached.
    ///
    /// # Panics
    /// If `check` does. The input is in the corpus then.
    pub fn fuzz(&self, count: u64, mut check: impl FnMut(&[u8])) -> u64 {
        // The rest is not compiled in the caller's crate, whose edges are counted.
        self.fuzz_as_compiled(count, &mut check)
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

    fn fuzz_as_compiled(&self, count: u64, check: &mut dyn FnMut(&[u8])) -> u64 {
        assert!(!self.inputs.is_empty(), "{:?} is empty", self.folder);
        let limit = Limit::of_environment(count);
        let Some(counters) = Compiled::find() else {
            return Run::new(self, Uncounted, None, check).until(limit);
        };
        if std::env::var_os(UNGUIDED).is_some() {
            let mut edges = Guide::new(counters);
            let tried = Run::new(self, Uncounted, None, check).until(limit);
            edges.news();
            println!("unguided {}: {} edges reached", self.name(), edges.edges());
            return tried;
        }
        let kept = Kept::of(&self.name());
        Run::new(self, counters, Some(kept), check).until(limit)
    }

    /// Returns the name of the decoder.
    fn name(&self) -> String {
        kept::name(&self.folder)
    }

    fn try_one(&self, input: &[u8], check: &mut dyn FnMut(&[u8])) {
        let tried = catch_unwind(AssertUnwindSafe(|| check(input)));
        if let Err(panic) = tried {
            self.keep(input, panic);
        }
    }

    /// Puts an input that failed into the corpus, and goes on with its panic.
    fn keep(&self, input: &[u8], panic: Box<dyn Any + Send>) -> ! {
        let path = self.folder.join(file_name("failed-", input));
        fs::create_dir_all(&self.folder).unwrap();
        fs::write(&path, input).unwrap();
        eprintln!("the input that failed is kept: {}", path.display());
        resume_unwind(panic)
    }
}

/// Returns the name of an input's file.
fn file_name(start: &str, input: &[u8]) -> String {
    let mut digest = DefaultHasher::new();
    input.hash(&mut digest);
    format!("{start}{:016x}", digest.finish())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::coverage::Counters;

    /// The decoder of a word. It fails at its last letter, and counts how many were right.
    #[derive(Debug, Default)]
    struct Word(RefCell<Vec<usize>>);

    impl Word {
        fn decode(&self, input: &[u8]) {
            for (at, letter) in b"cuzk".iter().enumerate() {
                if input.get(at) != Some(letter) {
                    return;
                }
                self.0.borrow_mut().push(at);
            }
            panic!("the planted bug");
        }
    }

    impl Counters for &Word {
        fn take(&mut self, visit: &mut dyn FnMut(usize, u8)) {
            for at in self.0.take() {
                visit(at, 1);
            }
        }
    }

    #[test]
    fn a_guided_run_finds_what_another_does_not() {
        const MUTANTS: u64 = 200_000;
        let folder = std::env::temp_dir().join(format!("cuzk-guided-{}", std::process::id()));
        let corpus = Corpus::read(folder.join("failed")).with(*b"size=2048");
        let word = Word::default();
        let mut check = |input: &[u8]| word.decode(input);
        let unguided = Run::new(&corpus, Uncounted, None, &mut check);
        assert_eq!(unguided.until(Limit::mutants(MUTANTS)), MUTANTS + 1);

        let kept = || Kept::at(folder.join("kept"));
        let run = |mutants| {
            let word = Word::default();
            let mut check = |input: &[u8]| word.decode(input);
            let run = Run::new(&corpus, &word, Some(kept()), &mut check);
            catch_unwind(AssertUnwindSafe(|| run.until(Limit::mutants(mutants))))
        };
        run(MUTANTS).unwrap_err();
        let failed = Corpus::read(folder.join("failed")).inputs;
        assert_eq!(failed.len(), 1);
        assert!(failed[0].starts_with(b"cuzk"));
        // The next run begins with the input that ended this one, until it is mended.
        run(0).unwrap_err();
        kept().end();
        assert_eq!(run(0).unwrap(), 1);
        let before = kept().inputs();
        assert!(before.iter().any(|(_, input)| input.starts_with(b"cuz")));
        // A longer one that reaches no more goes.
        kept().add(&[b"cuz", &[0; 100][..]].concat());
        assert_eq!(run(0).unwrap(), 1);
        assert_eq!(kept().inputs(), before);
        fs::remove_dir_all(folder).unwrap();
    }

    /// A machine where nothing was kept would lose them otherwise.
    #[test]
    fn what_the_tree_has_is_in_its_next_file() {
        let folder = std::env::temp_dir().join(format!("cuzk-tree-{}", std::process::id()));
        let at = folder.join("packages/some/tests/corpus/word");
        let (kept, packages) = (folder.join("kept"), folder.join("packages"));
        for input in [&b"c"[..], b"cuz"] {
            Kept::at(kept.join("some/word")).add(input);
        }
        fs::create_dir_all(&at).unwrap();
        write_found(&kept, &packages).unwrap();
        fs::remove_dir_all(&kept).unwrap();

        let corpus = Corpus::read(&at).with(*b"size=2048");
        assert_eq!(corpus.found, [&b"c"[..], b"cuz"]);
        let word = Word::default();
        let mut check = |input: &[u8]| word.decode(input);
        let empty = Kept::at(kept.join("some/word"));
        let run = Run::new(&corpus, &word, Some(empty), &mut check);
        assert_eq!(run.until(Limit::mutants(0)), 3);
        let written = write_found(&kept, &packages).unwrap();
        assert_eq!(written, [("some/word".to_owned(), 2)]);
        assert_eq!(Corpus::read(&at).found, corpus.found);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_found_has_so_many_bytes_at_most() {
        const BYTES: usize = 12;
        let folder = std::env::temp_dir().join(format!("cuzk-bytes-{}", std::process::id()));
        let corpus = Corpus::read(folder.join("failed")).with(*b"size=2048");
        let kept = || Kept::at(folder.join("kept"));
        let inputs = [&b"c"[..], b"cu___", b"cuz_______"];
        for input in inputs {
            kept().add(input);
        }
        let word = Word::default();
        let mut check = |input: &[u8]| word.decode(input);
        let run = Run::new(&corpus, &word, Some(kept()), &mut check).with_found_bytes(BYTES);
        assert_eq!(run.until(Limit::mutants(0)), 1);
        let left: Vec<_> = kept()
            .inputs()
            .into_iter()
            .map(|(_, input)| input)
            .collect();
        assert_eq!(left, inputs[..2], "the longest one goes");
        fs::remove_dir_all(folder).unwrap();
    }

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
