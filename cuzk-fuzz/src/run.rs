//! One run: the inputs of a corpus, those that were kept, and mutants.

use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Corpus;
use crate::coverage::Counters;
use crate::guide::Guide;
use crate::kept::Kept;
use crate::limit::Limit;
use crate::mutate;

/// The most bytes of the inputs that reached something new. Above it the longest one goes, because a
/// shorter one is tried sooner and a change of it more often meets what matters.
const FOUND_BYTES_MAX: usize = 16 << 20;

/// A run that has begun. Nothing here is compiled in the crate under test, so that only the
/// decoder's edges are counted.
pub(crate) struct Run<'a, C> {
    corpus: &'a Corpus,
    guide: Guide<C>,
    kept: Option<Kept>,
    check: &'a mut dyn FnMut(&[u8]),
    /// Those of the corpus that were given, and those that reached something new.
    inputs: Vec<Vec<u8>>,
    /// The bytes of those that reached something new, and the most that there may be.
    found_bytes: usize,
    found_bytes_max: usize,
}

impl<'a, C: Counters> Run<'a, C> {
    pub(crate) fn new(
        corpus: &'a Corpus,
        counters: C,
        kept: Option<Kept>,
        check: &'a mut dyn FnMut(&[u8]),
    ) -> Self {
        Self {
            corpus,
            guide: Guide::new(counters),
            kept,
            check,
            inputs: corpus.inputs.clone(),
            found_bytes: 0,
            found_bytes_max: FOUND_BYTES_MAX,
        }
    }

    /// Lets the inputs that reach something new have so many bytes.
    #[cfg(test)]
    pub(crate) fn with_found_bytes(self, found_bytes_max: usize) -> Self {
        Self {
            found_bytes_max,
            ..self
        }
    }

    /// Returns the number of inputs that were tried. Inputs that were kept do not count.
    pub(crate) fn until(mut self, mut limit: Limit) -> u64 {
        self.try_unfinished();
        for input in &self.corpus.inputs {
            self.try_one(input);
            self.guide.news();
        }
        for input in &self.corpus.found {
            self.try_one(input);
            if !self.guide.news().is_empty() {
                self.add_found(input.clone());
            }
        }
        self.try_kept();
        self.keep_all();
        self.guide.hurry();
        // A longer run begins elsewhere each time, so that nightly runs add up.
        let seed = if limit.is_count() { 0 } else { rand::random() };
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut tried = 0;
        while !limit.is_over(tried) {
            let mutant = self.mutant(&mut random);
            self.try_mutant(mutant);
            tried += 1;
        }
        if let Some(kept) = self.kept {
            kept.end();
            println!(
                "fuzzed {}: {tried} mutants in {} s, {} edges reached by {} inputs",
                self.corpus.name(),
                limit.spent().as_secs(),
                self.guide.edges(),
                self.inputs.len(),
            );
        }
        tried + (self.corpus.inputs.len() + self.corpus.found.len()) as u64
    }

    /// Tries the last input of a run that did not come to its end. The input may be the reason.
    fn try_unfinished(&mut self) {
        let unfinished = self.kept.as_mut().and_then(|kept| kept.unfinished.take());
        if let Some(input) = unfinished {
            self.try_one(&input);
            self.guide.clear();
        }
    }

    /// Tries the inputs that were kept. Removes those that reach nothing new: a shorter one
    /// reaches the same.
    fn try_kept(&mut self) {
        for (path, input) in self.kept.as_ref().map(Kept::inputs).unwrap_or_default() {
            self.try_one(&input);
            if self.guide.news().is_empty() {
                std::fs::remove_file(path).unwrap();
            } else {
                self.add_found(input);
            }
        }
    }

    /// Keeps each input that reached something new, those of the tree, too. The next file of the tree is
    /// made of what is kept, also where nothing was kept before.
    fn keep_all(&self) {
        let found = self.inputs.iter().skip(self.corpus.inputs.len());
        if let Some(kept) = &self.kept {
            found.for_each(|input| kept.add(input));
        }
    }

    /// Tries a mutant, and keeps it if it reached something new both times.
    fn try_mutant(&mut self, mutant: Vec<u8>) {
        self.try_one(&mutant);
        let news = self.guide.news();
        if news.is_empty() {
            return;
        }
        self.try_one(&mutant);
        if self.guide.has_again(&news) {
            if let Some(kept) = &self.kept {
                kept.add(&mutant);
            }
            self.add_found(mutant);
        }
    }

    /// Adds an input that reached something new. The longest ones go while there are too many bytes.
    fn add_found(&mut self, input: Vec<u8>) {
        self.found_bytes += input.len();
        self.inputs.push(input);
        let given = self.corpus.inputs.len();
        while self.found_bytes > self.found_bytes_max {
            let found = (given..self.inputs.len()).max_by_key(|at| self.inputs[*at].len());
            let Some(longest) = found else { break };
            // The order is that in which they were found.
            let longest = self.inputs.remove(longest);
            self.found_bytes -= longest.len();
            if let Some(kept) = &self.kept {
                kept.remove(&longest);
            }
        }
    }

    fn try_one(&mut self, input: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.begin(input);
        }
        self.corpus.try_one(input, self.check);
    }

    /// Returns a mutant of one of the inputs: of the corpus or of those that were found, each half of
    /// the time. Those of the corpus are good, and many that were found are refused early. The
    /// last ones of these are chosen more often.
    fn mutant(&self, random: &mut impl RngCore) -> Vec<u8> {
        let (given, all) = (self.corpus.inputs.len(), self.inputs.len());
        let mut any = |from: usize, until: usize| random.gen_range(from..until);
        let other = any(0, all);
        let one = if given < all && any(0, 2) == 0 {
            any(given, all).max(any(given, all))
        } else {
            any(0, given)
        };
        let [one, other] = [one, other].map(|at| &self.inputs[at][..]);
        mutate::mutant(one, other, self.corpus.words, random)
    }
}
