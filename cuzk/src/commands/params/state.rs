//! The state of a file in the parameter cache, as far as digests and its key tell.
//!
//! Not a check of points: that is `verify`. The invariants: no file is hashed here; a file has a
//! wrong digest only if its key is the list's, or cannot be read.

use std::path::Path;

use bellperson::groth16::VerifyingKey;
use blstrs::Bls12;
use cuzk_fetch::{Digest, ListedFile};
use cuzk_groth16::aggregate::open_srs;
use cuzk_groth16::params::{MappedParams, ToxicWaste, read_verifying_key};
use serde::Serialize;

/// The seed of test parameters for which nobody asks for another one.
pub(crate) const SEED: u64 = 0;

/// The state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// Its digest was that of the list when it was hashed last.
    Verified,
    /// It was made by cuzk from the seed that is taken if nobody names one.
    TestParameters,
    /// Its key is another one than the list's.
    OfAnotherKey,
    /// Its digest was another one.
    WrongDigest,
    /// It was not hashed since it was written.
    NotVerified,
    /// The list does not have it.
    NotListed,
}

impl State {
    /// Returns the state as a list shows it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::TestParameters => "test parameters",
            Self::OfAnotherKey => "of another key",
            Self::WrongDigest => "wrong digest",
            Self::NotVerified => "not verified",
            Self::NotListed => "not in the list",
        }
    }

    /// Returns a line that explains the state to those who see it in a list, if one is needed.
    pub(super) fn explanation(self) -> Option<&'static str> {
        match self {
            Self::TestParameters => {
                Some("test parameters: made by cuzk from seed 0; insecure, and good for tests only")
            }
            Self::OfAnotherKey => Some(
                "of another key: made from another seed, or of another network than the list's",
            ),
            Self::WrongDigest => Some(
                "wrong digest: damaged, or another file than the list's; delete it, and fetch it again",
            ),
            _ => None,
        }
    }
}

/// The knowledge of a file before it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    /// Its digest, if it was hashed since it was written.
    pub(crate) digest: Option<Digest>,
    /// Its entry in the list of digests.
    pub(crate) listed: Option<&'a ListedFile>,
    /// The entry of the verifying key of its circuit.
    pub(crate) key: Option<&'a ListedFile>,
}

/// Returns the state of the file at `path`. Its key is read if its digest is not that of the
/// list.
pub(crate) fn state(path: &Path, known: Known<'_>) -> State {
    let state = by_digest(known);
    match state {
        State::Verified => state,
        _ => by_key(path, known).unwrap_or(state),
    }
}

fn by_digest(known: Known<'_>) -> State {
    match (known.listed, known.digest) {
        (None, _) => State::NotListed,
        (Some(listed), Some(digest)) if listed.digest == digest => State::Verified,
        (Some(_), Some(_)) => State::WrongDigest,
        (Some(_), None) => State::NotVerified,
    }
}

/// Returns the state that the key tells of. Without a key that can be read it tells nothing.
fn by_key(path: &Path, known: Known<'_>) -> Option<State> {
    if path.extension().is_some_and(|last| last == "srs") {
        let is_for_tests = open_srs(path, 1).is_ok_and(|srs| srs.is_of_seed(SEED));
        return is_for_tests.then_some(State::TestParameters);
    }
    let key = key(path)?;
    let mut bytes = Vec::new();
    key.write(&mut bytes).ok()?;
    let listed = known.key.map(|listed| listed.digest);
    // A list can have the key of test parameters. Their digests are then compared as any others.
    if listed == Some(Digest::of_bytes(&bytes)) {
        return None;
    }
    if ToxicWaste::from_seed(SEED).is_of(&key) {
        return Some(State::TestParameters);
    }
    listed.map(|_| State::OfAnotherKey)
}

/// Reads the key at the beginning of parameters, or that of a file of its own.
fn key(path: &Path) -> Option<VerifyingKey<Bls12>> {
    if path.extension().is_some_and(|last| last == "vk") {
        return read_verifying_key(path).ok();
    }
    let params = MappedParams::open(path).ok()?;
    Some(params.vk().clone())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use blstrs::Scalar;
    use cuzk_groth16::aggregate::{InnerProductSrs, write_new_srs};
    use group::Curve;

    use super::*;

    fn key_of_seed(seed: u64) -> Vec<u8> {
        let waste = ToxicWaste::from_seed(seed);
        let in_g1 = |scalar: Scalar| (waste.g1 * scalar).to_affine();
        let in_g2 = |scalar: Scalar| (waste.g2 * scalar).to_affine();
        let key = VerifyingKey::<Bls12> {
            alpha_g1: in_g1(waste.alpha),
            beta_g1: in_g1(waste.beta),
            beta_g2: in_g2(waste.beta),
            gamma_g2: in_g2(waste.gamma),
            delta_g1: in_g1(waste.delta),
            delta_g2: in_g2(waste.delta),
            ic: vec![waste.g1],
        };
        let mut bytes = Vec::new();
        key.write(&mut bytes).unwrap();
        bytes
    }

    fn entry(content: &[u8]) -> ListedFile {
        ListedFile {
            name: "x".to_owned(),
            cid: "Qm1".to_owned(),
            digest: Digest::of_bytes(content),
            sector_size_bytes: 2048,
        }
    }

    fn written(folder: &tempfile::TempDir, name: &str, content: &[u8]) -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    #[test]
    fn a_key_tells_more_than_a_digest_where_it_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs, network] = [SEED, 7, 8].map(key_of_seed);
        let listed = entry(&network);
        let of = |content: &[u8], digest: Option<&[u8]>, is_listed: bool| {
            let path = written(&folder, "x.vk", content);
            let known = Known {
                digest: digest.map(Digest::of_bytes),
                listed: is_listed.then_some(&listed),
                key: is_listed.then_some(&listed),
            };
            state(&path, known)
        };
        // Hashed, not hashed, and not in the list.
        for (content, states) in [
            (&ours, [State::TestParameters; 3]),
            (
                &theirs,
                [State::OfAnotherKey, State::OfAnotherKey, State::NotListed],
            ),
            (
                &network,
                [State::Verified, State::NotVerified, State::NotListed],
            ),
            (
                &b"damaged".to_vec(),
                [State::WrongDigest, State::NotVerified, State::NotListed],
            ),
        ] {
            let found = [
                of(content, Some(content), true),
                of(content, None, true),
                of(content, Some(content), false),
            ];
            assert_eq!(found, states);
        }
        // The key of the list, and other bytes after it.
        assert_eq!(of(&network, Some(b"other"), true), State::WrongDigest);
    }

    #[test]
    fn a_list_of_test_parameters_tells_those_that_are_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let key = key_of_seed(SEED);
        let (path, listed) = (written(&folder, "x.vk", &key), entry(&key));
        let of = |digest: Option<&[u8]>| {
            let known = Known {
                digest: digest.map(Digest::of_bytes),
                listed: Some(&listed),
                key: Some(&listed),
            };
            state(&path, known)
        };
        assert_eq!(of(Some(b"other")), State::WrongDigest);
        assert_eq!(of(None), State::NotVerified);
        assert_eq!(of(Some(&key)), State::Verified);
    }

    #[test]
    fn an_srs_that_cuzk_made_for_tests_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let listed = entry(b"the network's");
        for (seed, expected) in [
            (SEED, State::TestParameters),
            (SEED + 1, State::WrongDigest),
        ] {
            let path = folder.path().join(format!("{seed}.srs"));
            write_new_srs(&InnerProductSrs::insecure(seed, 2).unwrap(), &path).unwrap();
            let known = Known {
                digest: Some(Digest::of_bytes(b"another")),
                listed: Some(&listed),
                key: None,
            };
            assert_eq!(state(&path, known), expected, "{seed}");
        }
    }
}
