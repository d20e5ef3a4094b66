//! Tokens that clients show.
//!
//! The tokens themselves are not kept: only their digests are. The invariant: neither the
//! time of a comparison nor any text that is printed says anything about a token.

use std::fmt;
use std::io;
use std::path::Path;

use subtle::ConstantTimeEq;

/// No file of tokens is as large.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A shorter token could be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// The digests of the tokens that are accepted.
#[derive(Clone, Default)]
pub struct Tokens {
    digests: Vec<[u8; blake3::OUT_LEN]>,
}

/// A file of tokens that cannot be used. It never quotes the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// The file cannot be read.
    #[error("{0}; give the path of a readable file with one token a line")]
    Read(#[from] io::Error),
    /// A line is no token.
    #[error(
        "line {line}: a token has at least 16 letters, digits or signs and no spaces; write one a line"
    )]
    BadLine {
        /// The line, from 1.
        line: usize,
    },
    /// There is no token.
    #[error("no token is in it; write one a line, for example of `openssl rand -hex 32`")]
    Empty,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(..)")
    }
}

impl Tokens {
    /// Reads a file of one token a line. `#` begins a comment.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has a line that is no token, or has no token.
    pub fn load(path: &Path) -> Result<Self, TokensError> {
        Self::parse(&cuzk_files::read_bounded(path, FILE_BYTES_MAX)?)
    }

    fn parse(text: &[u8]) -> Result<Self, TokensError> {
        let mut digests = Vec::new();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let token = line.split(|&byte| byte == b'#').next().unwrap_or_default();
            let token = token.trim_ascii();
            if token.is_empty() {
                continue;
            }
            if token.len() < TOKEN_BYTES_MIN || !token.iter().all(u8::is_ascii_graphic) {
                return Err(TokensError::BadLine { line: index + 1 });
            }
            digests.push(*blake3::hash(token).as_bytes());
        }
        if digests.is_empty() {
            return Err(TokensError::Empty);
        }
        Ok(Self { digests })
    }

    /// Returns true if no token is accepted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Returns true if the value of a header `authorization` has one of the tokens.
    #[must_use]
    pub fn accept(&self, authorization: &[u8]) -> bool {
        const SCHEME: &[u8] = b"bearer ";
        let Some((scheme, token)) = authorization.split_at_checked(SCHEME.len()) else {
            return false;
        };
        if !scheme.eq_ignore_ascii_case(SCHEME) {
            return false;
        }
        let digest = blake3::hash(token.trim_ascii());
        // Every digest is compared, so the time says nothing about the one that matched.
        let found = self
            .digests
            .iter()
            .map(|known| known.ct_eq(digest.as_bytes()))
            .fold(subtle::Choice::from(0), |found, equal| found | equal);
        found.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"# of the farm\n0123456789abcdef\n\n  fedcba9876543210 # second\r\n";

    #[test]
    fn a_token_of_the_file_is_accepted_and_no_other() {
        let tokens = Tokens::parse(FILE).unwrap();
        for (header, accepted) in [
            (&b"Bearer 0123456789abcdef"[..], true),
            (b"bearer fedcba9876543210", true),
            (b"Bearer 0123456789abcdeF", false),
            (b"Bearer 0123456789abcde", false),
            (b"Bearer ", false),
            (b"Bearer", false),
            (b"", false),
            (b"Basic  0123456789abcdef", false),
            (b"0123456789abcdef", false),
            (b"Bearer # of the farm", false),
        ] {
            assert_eq!(tokens.accept(header), accepted, "{header:?}");
        }
    }

    #[test]
    fn a_file_without_good_tokens_is_refused_and_not_quoted() {
        for (text, problem) in [
            (&b""[..], "no token is in it"),
            (b"# nothing\n", "no token is in it"),
            (
                b"0123456789abcdef\nshort\n",
                "line 2: a token has at least 16",
            ),
            (b"0123456789 abcdef\n", "line 1: "),
            (b"0123456789abcdef\xff\n", "line 1: "),
        ] {
            let error = Tokens::parse(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
            assert!(!error.contains("abcdef") && !error.contains("short"));
        }
    }

    #[test]
    fn nothing_that_is_printed_has_a_token() {
        let tokens = Tokens::parse(FILE).unwrap();
        assert_eq!(format!("{tokens:?} {tokens:#?}"), "Tokens(..) Tokens(..)");
    }

    #[test]
    fn mutated_headers_and_files_give_no_access() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/tokens");
        let corpus = cuzk_testing::fuzz::Corpus::read(folder)
            .with(*b"Bearer 0123456789abcdef")
            .with(FILE);
        let tokens = Tokens::parse(FILE).unwrap();
        let known = [&b"0123456789abcdef"[..], b"fedcba9876543210"];
        let count = corpus.fuzz(20_000, |input| {
            let token = input.get(7..).unwrap_or_default().trim_ascii();
            assert_eq!(
                tokens.accept(input),
                known.contains(&token) && input[..7].eq_ignore_ascii_case(b"bearer "),
            );
            assert!(Tokens::parse(input).map_or(true, |read| !read.is_empty()));
        });
        println!("{count} headers and files of tokens");
    }
}
