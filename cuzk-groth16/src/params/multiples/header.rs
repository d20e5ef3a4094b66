//! The header of a file of multiples: its parameters, circuit and instructions.
//!
//! The invariant: a section that [`Section::check`] accepted is as it was written, byte for
//! byte.

use std::io::{self, Write};

use blstrs::Scalar;
use cuzk_kernels::Isa;
use cuzk_kernels::msm::{Chosen, Shape};
use cuzk_memory::Checkpoint;
use cuzk_pce::Program;
use serde::{Deserialize, Serialize};

use super::{Fault, Rows};
use crate::params::file::ParamsFile;

const MAGIC: &[u8; 8] = b"cuzkmult";
const VERSION: u32 = 3;
/// Bytes of a BLAKE3 digest.
const DIGEST_BYTES: usize = 32;
/// Bytes that are read at a time: moments, also from a disk.
const PIECE_BYTES: usize = 1 << 20;

/// Which parameters, circuit and instructions a file is for, and where its rows are.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    version: u32,
    isa: String,
    /// The fingerprint of the circuit.
    circuit: String,
    /// A digest of the parameters' verifying key and size.
    params: String,
    /// The most that the file was allowed to take, for the next that makes it.
    pub(super) limit_bytes: u64,
    pub(super) sections: [Section; 4],
}

/// Where a query's rows are.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    pub(super) bits: u32,
    pub(super) rows: usize,
    pub(super) points: usize,
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) blake3: String,
}

impl Header {
    /// A header for these, without rows.
    pub(super) fn identity(params: &ParamsFile, program: &Program<Scalar>, isa: Isa) -> Self {
        Self {
            version: VERSION,
            isa: isa.name().to_owned(),
            circuit: program.fingerprint().to_string(),
            params: params.digest().to_hex().to_string(),
            limit_bytes: 0,
            sections: Default::default(),
        }
    }

    /// The header at the beginning of a file.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let damaged = || "it is damaged or cut short".to_owned();
        let bytes = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (len, bytes) = bytes.split_first_chunk().ok_or_else(damaged)?;
        let len = u32::from_le_bytes(*len) as usize;
        let (json, bytes) = bytes.split_at_checked(len).ok_or_else(damaged)?;
        let digest = bytes.first_chunk::<DIGEST_BYTES>().ok_or_else(damaged)?;
        if blake3::hash(json).as_bytes() != digest {
            return Err(damaged());
        }
        serde_json::from_slice(json).map_err(|_| "it is of another version".to_owned())
    }

    pub(super) fn write(&self, mut to: impl Write) -> io::Result<()> {
        let json = serde_json::to_vec(self)?;
        let len = u32::try_from(json.len()).map_err(io::Error::other)?;
        to.write_all(MAGIC)?;
        to.write_all(&len.to_le_bytes())?;
        to.write_all(&json)?;
        to.write_all(blake3::hash(&json).as_bytes())
    }

    /// Checks that the file is for this circuit, these parameters and instructions.
    pub(super) fn expect(&self, expected: &Self) -> Result<(), String> {
        let parts = [
            ("instructions", &self.isa, &expected.isa),
            ("a circuit", &self.circuit, &expected.circuit),
            ("parameters", &self.params, &expected.params),
        ];
        if self.version != expected.version {
            return Err(format!(
                "it is of version {}, expected {}",
                self.version, expected.version
            ));
        }
        match parts.into_iter().find(|(_, got, expected)| got != expected) {
            None => Ok(()),
            Some((what, got, expected)) => {
                Err(format!("it is for {what} {got}, expected {expected}"))
            }
        }
    }
}

impl Section {
    /// Checks the rows' place and their digest.
    pub(super) fn check(
        &self,
        file: &[u8],
        chosen: Chosen,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Rows, Fault> {
        let shape = Shape::new(self.bits, self.rows)
            .filter(|_| self.points == chosen.count())
            .ok_or("its dimensions are another circuit's")?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let bytes = place(self.start)..place(self.start.saturating_add(self.bytes));
        let rows = file.get(bytes.clone()).ok_or("it is cut short")?;
        let mut hasher = blake3::Hasher::new();
        for piece in rows.chunks(PIECE_BYTES) {
            checkpoint.check()?;
            hasher.update(piece);
        }
        if hasher.finalize().to_hex().as_str() != self.blake3 {
            return Err("it is damaged".into());
        }
        Ok(Rows {
            shape,
            chosen,
            bytes,
        })
    }
}
