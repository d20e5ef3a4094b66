//! bellperson's parameter files, mapped into memory.
//!
//! A `.vk` file is a verifying key. A `.params` file is a verifying key and five queries:
//! H, L, A, B in G1, B in G2. Each query is a big-endian 32-bit count and that many
//! uncompressed points. The key is six points (α₁ β₁ β₂ γ₂ δ₁ δ₂)
//! and the query IC in the same form. Points keep the names of Groth, "On the
//! Size of Pairing-based Non-interactive Arguments", eprint 2016/260.
//!
//! Not a cache: that is [`ParamCache`](super::ParamCache). The invariant: the
//! byte ranges of a [`ParamsFile`] lie within its file and fill it exactly.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bellperson::groth16::VerifyingKey;
use blstrs::{Bls12, G1Affine, G2Affine};
use cuzk_kernels::msm::Bases;
use group::prime::PrimeCurveAffine;

use super::error::ParamsError;
use super::map::Map;
use super::query::{Query, QueryName};
use crate::query_lengths::QueryLengths;

/// Bytes of an uncompressed point of G1.
pub(super) const G1_BYTES: u64 = 96;
/// Bytes of an uncompressed point of G2.
pub(super) const G2_BYTES: u64 = 192;
/// Bytes of a query's count.
pub(super) const COUNT_BYTES: u64 = 4;
/// Bytes of the six points that open a verifying key.
pub(super) const KEY_POINTS_BYTES: u64 = 3 * G1_BYTES + 3 * G2_BYTES;

/// A `.params` file, mapped into memory.
///
/// The file must not be changed or shortened while it is open; replace it by
/// renaming another over it.
pub struct ParamsFile {
    path: PathBuf,
    map: Map,
    vk: VerifyingKey<Bls12>,
    /// Where the verifying key ends, bytes.
    key_end: usize,
    layout: Layout,
}

impl fmt::Debug for ParamsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParamsFile")
            .field("path", &self.path)
            .field("file_bytes", &self.file_bytes())
            .finish_non_exhaustive()
    }
}

impl ParamsFile {
    /// Maps a `.params` file. Its lengths are checked against its size and its
    /// verifying key is decoded, with subgroup checks; the queries are decoded
    /// when they are read.
    ///
    /// # Errors
    ///
    /// A file that is missing, unreadable, empty, truncated or too long, and a
    /// verifying key that does not decode or has a point at infinity.
    pub fn open(path: &Path) -> Result<Self, ParamsError> {
        Self::of_map(path, open_map(path)?)
    }

    /// Takes the bytes of a `.params` file that need not exist. Messages name `path`.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub(super) fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, ParamsError> {
        Self::of_map(path, Map::Memory(bytes))
    }

    fn of_map(path: &Path, map: Map) -> Result<Self, ParamsError> {
        let mut cursor = Cursor::new(path, map.bytes());
        let key_end = cursor.key()?;
        let layout = Layout {
            h: cursor.query(QueryName::H, G1_BYTES)?,
            l: cursor.query(QueryName::L, G1_BYTES)?,
            a: cursor.query(QueryName::A, G1_BYTES)?,
            b_g1: cursor.query(QueryName::BG1, G1_BYTES)?,
            b_g2: cursor.query(QueryName::BG2, G2_BYTES)?,
        };
        cursor.end()?;
        let vk = decode_key(path, map.bytes().get(..key_end).unwrap_or_default())?;
        Ok(Self {
            path: path.to_owned(),
            map,
            vk,
            key_end,
            layout,
        })
    }

    /// The file, or a name for parameters that are in no file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if there is no file, and [`Self::path`] is only a name for messages.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        matches!(self.map, Map::Memory(_))
    }

    /// The bytes of the whole file, in bellperson's format.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.map.bytes()
    }

    /// The file's size, bytes.
    #[must_use]
    pub fn file_bytes(&self) -> usize {
        self.map.bytes().len()
    }

    /// The verifying key.
    #[must_use]
    pub fn vk(&self) -> &VerifyingKey<Bls12> {
        &self.vk
    }

    /// The verifying key, encoded.
    pub(super) fn key_bytes(&self) -> &[u8] {
        self.map.bytes().get(..self.key_end).unwrap_or_default()
    }

    /// Returns a digest that tells these parameters from others. It is of the file's size
    /// and of the verifying key, which depends on all of the toxic waste.
    pub(super) fn digest(&self) -> blake3::Hash {
        blake3::Hasher::new()
            .update(&(self.file_bytes() as u64).to_le_bytes())
            .update(self.key_bytes())
            .finalize()
    }

    /// τⁱ·Z(τ)/δ for i below the domain's size less one.
    #[must_use]
    pub fn h(&self) -> Query<'_, G1Affine> {
        self.query(QueryName::H, &self.layout.h)
    }

    /// (β·Aⱼ(τ) + α·Bⱼ(τ) + Cⱼ(τ))/δ for every aux variable j.
    #[must_use]
    pub fn l(&self) -> Query<'_, G1Affine> {
        self.query(QueryName::L, &self.layout.l)
    }

    /// Aⱼ(τ) for the inputs and the aux variables that appear in A.
    #[must_use]
    pub fn a(&self) -> Query<'_, G1Affine> {
        self.query(QueryName::A, &self.layout.a)
    }

    /// Bⱼ(τ) in G1 for the variables that appear in B.
    #[must_use]
    pub fn b_g1(&self) -> Query<'_, G1Affine> {
        self.query(QueryName::BG1, &self.layout.b_g1)
    }

    /// Bⱼ(τ) in G2 for the variables that appear in B.
    #[must_use]
    pub fn b_g2(&self) -> Query<'_, G2Affine> {
        self.query(QueryName::BG2, &self.layout.b_g2)
    }

    /// Checks that these are the parameters of a circuit, as far as the number
    /// of its inputs, rows and variables tells.
    ///
    /// # Errors
    ///
    /// [`ParamsError::OtherCircuit`] with the first query that differs.
    pub fn check_circuit(&self, expected: &QueryLengths) -> Result<(), ParamsError> {
        let lengths = [
            (QueryName::Ic, expected.ic, self.vk.ic.len()),
            (QueryName::H, expected.h, self.h().len()),
            (QueryName::L, expected.l, self.l().len()),
            (QueryName::A, expected.a, self.a().len()),
            (QueryName::BG1, expected.b, self.b_g1().len()),
            (QueryName::BG2, expected.b, self.b_g2().len()),
        ];
        match lengths
            .into_iter()
            .find(|(_, expected, got)| expected != got)
        {
            None => Ok(()),
            Some((query, expected, got)) => Err(ParamsError::OtherCircuit {
                path: self.path.clone(),
                query,
                expected: expected as u64,
                got: got as u64,
            }),
        }
    }

    /// Checks that the verifying key in the file `path` is that of these
    /// parameters.
    ///
    /// # Errors
    ///
    /// [`ParamsError::KeysDiffer`] with the first part that differs, and what
    /// [`read_verifying_key`] says.
    pub fn check_key(&self, path: &Path) -> Result<(), ParamsError> {
        if open_map(path)?.bytes() == self.key_bytes() {
            return Ok(());
        }
        let (own, vk) = (&self.vk, read_verifying_key(path)?);
        let parts = [
            ("alpha in G1", own.alpha_g1 == vk.alpha_g1),
            ("beta in G1", own.beta_g1 == vk.beta_g1),
            ("beta in G2", own.beta_g2 == vk.beta_g2),
            ("gamma in G2", own.gamma_g2 == vk.gamma_g2),
            ("delta in G1", own.delta_g1 == vk.delta_g1),
            ("delta in G2", own.delta_g2 == vk.delta_g2),
            ("the query IC", own.ic == vk.ic),
        ];
        match parts.into_iter().find(|(_, same)| !same) {
            None => Ok(()),
            Some((field, _)) => Err(ParamsError::KeysDiffer {
                params: self.path.clone(),
                vk: path.to_owned(),
                field,
            }),
        }
    }

    fn query<P>(&self, name: QueryName, range: &Range<usize>) -> Query<'_, P> {
        let bytes = self.map.bytes().get(range.clone()).unwrap_or_default();
        Query::new(&self.path, name, bytes)
    }
}

/// Where the queries' points are, in bytes of the file.
#[derive(Debug)]
struct Layout {
    h: Range<usize>,
    l: Range<usize>,
    a: Range<usize>,
    b_g1: Range<usize>,
    b_g2: Range<usize>,
}

/// Reads a `.vk` file.
///
/// # Errors
///
/// As [`ParamsFile::open`].
pub fn read_verifying_key(path: &Path) -> Result<VerifyingKey<Bls12>, ParamsError> {
    let map = open_map(path)?;
    let mut cursor = Cursor::new(path, map.bytes());
    cursor.key()?;
    cursor.end()?;
    decode_key(path, map.bytes())
}

fn open_map(path: &Path) -> Result<Map, ParamsError> {
    let file = File::open(path).map_err(|source| ParamsError::io(path, source))?;
    let metadata = file
        .metadata()
        .map_err(|source| ParamsError::io(path, source))?;
    // An empty file cannot be mapped everywhere.
    if metadata.is_file() && metadata.len() == 0 {
        return Err(ParamsError::Empty {
            path: path.to_owned(),
        });
    }
    Map::new(&file).map_err(|source| ParamsError::io(path, source))
}

/// Walks over a file's parts, checking each against the file's end.
struct Cursor<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(path: &'a Path, bytes: &'a [u8]) -> Self {
        Self { path, bytes, at: 0 }
    }

    /// Passes the verifying key and returns where it ends.
    fn key(&mut self) -> Result<usize, ParamsError> {
        self.pass(QueryName::Key, KEY_POINTS_BYTES)?;
        let ic = self.query(QueryName::Ic, G1_BYTES)?;
        Ok(ic.end)
    }

    /// Passes a count and its points, and returns where the points are.
    fn query(&mut self, part: QueryName, point_bytes: u64) -> Result<Range<usize>, ParamsError> {
        let count = self.pass(part, COUNT_BYTES)?;
        let count = self.bytes.get(count).unwrap_or_default();
        let count = count
            .iter()
            .fold(0, |count, &byte| count << 8 | u64::from(byte));
        self.pass(part, count * point_bytes)
    }

    fn pass(&mut self, part: QueryName, len: u64) -> Result<Range<usize>, ParamsError> {
        let start = self.at;
        let expected_bytes = start as u64 + len;
        let end = usize::try_from(expected_bytes)
            .ok()
            .filter(|&end| end <= self.bytes.len());
        let Some(end) = end else {
            return Err(ParamsError::Truncated {
                path: self.path.to_owned(),
                part,
                expected_bytes,
                got_bytes: self.bytes.len() as u64,
            });
        };
        self.at = end;
        Ok(start..end)
    }

    fn end(&self) -> Result<(), ParamsError> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(ParamsError::TrailingBytes {
            path: self.path.to_owned(),
            expected_bytes: self.at as u64,
            got_bytes: self.bytes.len() as u64,
        })
    }
}

/// Decodes a verifying key whose length has been checked.
fn decode_key(path: &Path, bytes: &[u8]) -> Result<VerifyingKey<Bls12>, ParamsError> {
    let unusable = |problem: String| ParamsError::VerifyingKey {
        path: path.to_owned(),
        problem,
    };
    let vk = VerifyingKey::<Bls12>::read(bytes).map_err(|error| unusable(error.to_string()))?;
    let at_infinity = [
        ("alpha in G1", vk.alpha_g1.is_identity()),
        ("beta in G1", vk.beta_g1.is_identity()),
        ("beta in G2", vk.beta_g2.is_identity()),
        ("gamma in G2", vk.gamma_g2.is_identity()),
        ("delta in G1", vk.delta_g1.is_identity()),
        ("delta in G2", vk.delta_g2.is_identity()),
    ];
    if let Some((name, _)) = at_infinity
        .into_iter()
        .find(|(_, at_infinity)| (*at_infinity).into())
    {
        return Err(unusable(format!("{name} is the point at infinity")));
    }
    let mut encoded = Vec::with_capacity(bytes.len());
    vk.write(&mut encoded)
        .map_err(|error| unusable(error.to_string()))?;
    if encoded != bytes {
        return Err(unusable(
            "a point is compressed, where uncompressed ones are due".to_owned(),
        ));
    }
    if vk.ic.is_empty() {
        return Err(unusable("it has no public input, not even ONE".to_owned()));
    }
    Ok(vk)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

    use cuzk_kernels::Isa;
    use cuzk_testing::circuits::Mimc;

    use super::*;
    use crate::params::{ToxicWaste, generate};

    #[test]
    fn a_digest_is_of_the_key_and_of_the_length() {
        let program = cuzk_pce::compile(Mimc::blank(3)).unwrap();
        let params = |seed| {
            let (waste, mut bytes) = (ToxicWaste::from_seed(seed), Vec::new());
            let generated = generate(&program, &waste, Isa::PORTABLE, &mut bytes, |_, _| {});
            let mut key = Vec::new();
            generated.unwrap().vk.write(&mut key).unwrap();
            let params = ParamsFile::of_bytes(Path::new("in memory"), bytes).unwrap();
            assert_eq!(params.key_bytes(), key);
            params
        };
        let [of_3, again, of_4] = [3, 3, 4].map(params);
        assert_eq!(of_3.file_bytes(), of_4.file_bytes());
        assert_eq!(of_3.digest(), again.digest());
        assert_ne!(of_3.digest(), of_4.digest());
    }
}
