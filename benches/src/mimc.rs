//! The command line of the example `mimc`. It does not prove anything. The invariant: each word has
//! its place, and another one is an error.
//!
//! It is not in the example, since Cargo builds an example either as a program or as tests of it.

use crate::Result;
use cuzk_kernels::Isa;

/// The words of the command line `ROWS THREADS [ISA [multiples]]`.
#[derive(Debug, PartialEq)]
pub struct Arguments {
    /// The rows of the circuit.
    pub rows: usize,
    /// The threads that prove.
    pub threads: usize,
    /// The instructions of the kernels.
    pub isa: Isa,
    /// True if the parameters' points have multiples.
    pub with_multiples: bool,
}

impl Arguments {
    /// Reads the words of a command line.
    ///
    /// # Errors
    /// If there are fewer or more words, or one of them is not what its place asks for.
    pub fn of(words: &[&str]) -> Result<Self> {
        let (rows, threads, isa, with_multiples) = match *words {
            [rows, threads] => (rows, threads, Isa::best(), false),
            [rows, threads, isa] => (rows, threads, isa.parse()?, false),
            [rows, threads, isa, "multiples"] => (rows, threads, isa.parse()?, true),
            _ => return Err("usage: mimc ROWS THREADS [ISA [multiples]]".into()),
        };
        Ok(Self {
            rows: rows.parse()?,
            threads: threads.parse()?,
            isa,
            with_multiples,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_has_two_to_four_words() {
        let of = |isa, with_multiples| Arguments {
            rows: 62,
            threads: 3,
            isa,
            with_multiples,
        };
        for (words, expected) in [
            ("62 3", of(Isa::best(), false)),
            ("62 3 auto", of(Isa::best(), false)),
            ("62 3 portable", of(Isa::PORTABLE, false)),
            ("62 3 scalar multiples", of(Isa::SCALAR, true)),
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            assert_eq!(Arguments::of(&words).unwrap(), expected, "{words:?}");
        }
        for (words, told) in [
            ("", "usage"),
            ("62", "usage"),
            ("62 3 scalar multiple", "usage"),
            ("62 3 scalar multiples 4", "usage"),
            ("-62 3", "invalid digit"),
            ("62 three", "invalid digit"),
            ("62 3 sse", "unknown instruction set"),
        ] {
            let words: Vec<&str> = words.split_terminator(' ').collect();
            let error = Arguments::of(&words).unwrap_err().to_string();
            assert!(error.contains(told), "{words:?}: {error}");
        }
    }
}
