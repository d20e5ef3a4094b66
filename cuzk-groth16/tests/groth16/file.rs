//! The bytes of a parameter file, to be damaged.

use std::fs;
use std::ops::Range;
use std::sync::Arc;

use cuzk_filecoin::ProofKind;
use cuzk_groth16::params::{
    ParamCache, ParamsError, ParamsFile, QueryLengths, QueryName, ToxicWaste,
};
use cuzk_groth16::{compile, setup};
use cuzk_testing::circuits::Mimc;
use tempfile::TempDir;

pub(crate) const G1_BYTES: usize = 96;
pub(crate) const G2_BYTES: usize = 192;
/// β₁ and δ₁ within the verifying key.
pub(crate) const BETA_G1: usize = G1_BYTES;
pub(crate) const DELTA_G1: usize = 2 * G1_BYTES + 2 * G2_BYTES;
/// Six points, then the count of IC.
pub(crate) const IC: usize = 3 * G1_BYTES + 3 * G2_BYTES + 4;

/// The queries of points in G1.
pub(crate) const IN_G1: [QueryName; 4] = [QueryName::H, QueryName::L, QueryName::A, QueryName::BG1];

/// A file's bytes and where its queries are.
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lengths: QueryLengths,
}

impl File {
    /// Returns the good parameters of a kind.
    pub(crate) fn good(kind: ProofKind) -> Self {
        let circuit = crate::circuit_with_params(kind);
        let files = cuzk_testing::files(kind);
        let path = ParamCache::new(crate::param_cache()).params_path(&files);
        Self {
            bytes: fs::read(path).unwrap(),
            lengths: circuit.query_lengths(),
        }
    }

    /// Returns good parameters of a hundred rounds of MiMC. Each query has some hundred points.
    pub(crate) fn small() -> Self {
        let circuit = Arc::new(compile("mimc", Mimc::blank(100)).unwrap());
        let params = setup(&circuit, &ToxicWaste::from_seed(3)).unwrap();
        Self {
            bytes: params.bytes().to_vec(),
            lengths: circuit.query_lengths(),
        }
    }

    /// The bytes of a point of a query.
    pub(crate) fn point(&self, query: QueryName, index: usize) -> Range<usize> {
        let QueryLengths { ic, h, l, a, .. } = self.lengths;
        let b = self.lengths.b;
        // Each query's count is before its points.
        let start = |counts: usize, points: usize| IC + counts * 4 + points * G1_BYTES;
        let (start, bytes) = match query {
            QueryName::H => (start(1, ic), G1_BYTES),
            QueryName::L => (start(2, ic + h), G1_BYTES),
            QueryName::A => (start(3, ic + h + l), G1_BYTES),
            QueryName::BG1 => (start(4, ic + h + l + a), G1_BYTES),
            QueryName::BG2 => (start(5, ic + h + l + a + b), G2_BYTES),
            QueryName::Key | QueryName::Ic => unreachable!("no query"),
        };
        start + index * bytes..start + (index + 1) * bytes
    }

    pub(crate) fn swap(&mut self, a: Range<usize>, b: Range<usize>) {
        let kept = self.bytes[a.clone()].to_vec();
        self.bytes.copy_within(b.clone(), a.start);
        self.bytes[b].copy_from_slice(&kept);
    }

    /// Writes the bytes to a file of a new folder, and opens it.
    pub(crate) fn open(&self) -> (TempDir, Result<ParamsFile, ParamsError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("params");
        fs::write(&path, &self.bytes).unwrap();
        let opened = ParamsFile::open(&path);
        (folder, opened)
    }
}
