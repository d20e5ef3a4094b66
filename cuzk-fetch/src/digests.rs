//! The list of the files that may be fetched: `parameters.json` of the proofs crates.
//!
//! It does not know where files are. The invariant: each name is a plain file name, so that
//! a list from elsewhere cannot name a file outside of the folder.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;

use crate::FetchError;

/// The largest list that is read, in bytes. The list of the proofs crates has 30,000.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// The longest name of a file, in bytes. A file system takes 255, and the names of locks
/// are longer than the name of the file.
const NAME_BYTES_MAX: usize = 200;

/// The longest content identifier, in bytes.
const CID_BYTES_MAX: usize = 200;

/// The first 16 bytes of a file's BLAKE2b-512.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 16]);

impl Digest {
    /// Returns the digest of a file that was hashed to its end.
    pub(crate) fn of(state: &blake2b_simd::State) -> Self {
        let hash = state.finalize();
        let mut digest = [0; 16];
        for (to, from) in digest.iter_mut().zip(hash.as_bytes()) {
            *to = *from;
        }
        Self(digest)
    }

    /// Returns the digest of `bytes`.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut state = blake2b_simd::State::new();
        state.update(bytes);
        Self::of(&state)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("{text:?} is no digest; one has 32 hexadecimal digits");
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(expected());
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| expected())?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// A file of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its name in a folder.
    pub name: String,
    /// Its content identifier, by which an IPFS gateway serves it.
    pub cid: String,
    /// The digest of its content.
    pub digest: Digest,
    /// The sector size of its circuit, in bytes.
    pub sector_size_bytes: u64,
}

/// A file as `parameters.json` writes it.
#[derive(Deserialize)]
struct Entry {
    cid: String,
    digest: String,
    sector_size: u64,
}

/// The files with known digests, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests(BTreeMap<String, ListedFile>);

impl Digests {
    /// Parses a list in the form of `parameters.json`.
    ///
    /// # Errors
    /// The text is not JSON of this form, or a value in it is wrong. The text of the error
    /// names the file in the list.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entries: BTreeMap<String, Entry> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let files = entries.into_iter().map(|(name, entry)| {
            let file = listed(&name, entry).map_err(|problem| format!("{name:?}: {problem}"))?;
            Ok((name, file))
        });
        files.collect::<Result<_, String>>().map(Self)
    }

    /// Reads a list from a file.
    ///
    /// # Errors
    /// [`FetchError::File`] if it cannot be read, or is larger than 16 MiB;
    /// [`FetchError::List`] if it is not such a list.
    pub fn read(path: &Path) -> Result<Self, FetchError> {
        let bytes = cuzk_files::read_bounded(path, LIST_BYTES_MAX)
            .map_err(|error| FetchError::file(path, "read", error))?;
        let text = String::from_utf8_lossy(&bytes);
        Self::parse(&text).map_err(|problem| FetchError::List {
            path: path.to_owned(),
            problem,
        })
    }

    /// Returns the file of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ListedFile> {
        self.0.get(name)
    }

    /// Returns all files in the order of their names.
    pub fn files(&self) -> impl Iterator<Item = &ListedFile> {
        self.0.values()
    }
}

fn listed(name: &str, entry: Entry) -> Result<ListedFile, String> {
    check_name(name)?;
    let is_cid = !entry.cid.is_empty()
        && entry.cid.len() <= CID_BYTES_MAX
        && entry.cid.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_cid {
        return Err(format!("{:?} is no content identifier", entry.cid));
    }
    Ok(ListedFile {
        name: name.to_owned(),
        digest: entry.digest.parse()?,
        cid: entry.cid,
        sector_size_bytes: entry.sector_size,
    })
}

/// Checks that a name is a plain file name that needs no escapes in a URL.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_plain) {
        return Err(
            "a name has letters, digits, '-', '_' and '.', and starts with no '.'".to_owned(),
        );
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a name has at most {NAME_BYTES_MAX} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "c3ad7bb549470b82ad52ed070aebb4f4";

    fn list(name: &str, cid: &str, digest: &str) -> String {
        format!(r#"{{"{name}": {{"cid": "{cid}", "digest": "{digest}", "sector_size": 2048}}}}"#)
    }

    #[test]
    fn a_list_is_read_as_the_proofs_crates_write_it() {
        let list = Digests::parse(&list("v28-a_b-0.params", "Qma5", DIGEST)).unwrap();
        let file = list.get("v28-a_b-0.params").unwrap();
        assert_eq!(file.digest.to_string(), DIGEST);
        assert_eq!((file.cid.as_str(), file.sector_size_bytes), ("Qma5", 2048));
        assert_eq!(list.files().count(), 1);
        assert_eq!(list.get("v28"), None);
    }

    #[test]
    fn a_wrong_value_is_named_with_its_file() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for name in ["../passwd", ".hidden", "a/b", "a b", "a%2fb", "", &long] {
            let problem = Digests::parse(&list(name, "Qm", DIGEST)).unwrap_err();
            assert!(problem.contains("name has"), "{problem}");
        }
        for digest in [
            "",
            "c3",
            "zzad7bb549470b82ad52ed070aebb4f4",
            &DIGEST.repeat(2),
        ] {
            let problem = Digests::parse(&list("a", "Qm", digest)).unwrap_err();
            assert!(problem.starts_with("\"a\"") && problem.contains("no digest"));
        }
        let plus = format!("+{}", &DIGEST[1..]);
        assert!(Digests::parse(&list("a", "Qm", &plus)).is_err());
        for cid in ["", "../x", "Qm/x"] {
            assert!(Digests::parse(&list("a", cid, DIGEST)).is_err());
        }
        for text in ["", "[]", "{\"a\": 1}", "\u{feff}{}"] {
            assert!(Digests::parse(text).is_err());
        }
    }

    #[test]
    fn a_digest_is_the_start_of_blake2b_512() {
        // The digest of no bytes, as b2sum prints it.
        let empty = Digest::of_bytes(b"").to_string();
        assert_eq!(empty, "786a02f742015903c6c6fd852552d272");
    }

    #[test]
    fn mutated_lists_are_read_or_errors() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/lists");
        let corpus = cuzk_fuzz::Corpus::read(corpus).with(list("v28-a_b-0.params", "Qma5", DIGEST));
        const WORDS: [&[u8]; 4] = [b"../", b"18446744073709551616", b"\\u0000", b"\"digest\":"];
        let decode = |input: &[u8]| {
            Digests::parse(&String::from_utf8_lossy(input)).map(|list| {
                for name in list.0.keys() {
                    assert!(!name.contains('/') && !name.starts_with('.'), "{name:?}");
                }
            })
        };
        let corpus = corpus.with_words(&WORDS);
        corpus.fuzz_decoder("lists", 20_000, decode, |_| true);
    }
}
