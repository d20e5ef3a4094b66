//! The requests of a simulation: statements that take no time, some of them false or
//! broken, with their bytes.
//!
//! The invariant: bytes that read as a request are those of no other one.

use std::panic::resume_unwind;
use std::sync::Arc;

use blstrs::Scalar;
use cuzk_filecoin::{
    CircuitId, Error as StatementError, ProofKind, Statement, WitnessContext, Writer,
};
use cuzk_pce::PackedWitness;
use rand::Rng;

use super::bench::{KINDS, ROOTS, Root, id};
use crate::{Error, Result};

/// The most partitions of a request.
const PARTITIONS_MAX: usize = 3;

/// A defect of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Nothing.
    None,
    /// The statement of its last partition is false.
    Lies,
    /// Writing the witness panics.
    WitnessPanics,
    /// It cannot be decoded.
    Malformed,
    /// Decoding it panics.
    DecodePanics,
}

const FLAWS: [Flaw; 5] = [
    Flaw::None,
    Flaw::Lies,
    Flaw::WitnessPanics,
    Flaw::Malformed,
    Flaw::DecodePanics,
];

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) kind: ProofKind,
    /// The root of its first partition; the next one's is the next.
    pub(super) first: usize,
    pub(super) partitions: usize,
    pub(super) flaw: Flaw,
}

impl Request {
    /// Returns any request; one in eight has a flaw, if there are to be any.
    pub(super) fn random(rng: &mut impl Rng, flawed: bool) -> Self {
        let flaw = match rng.gen_range(0..8) {
            0 if flawed => FLAWS[rng.gen_range(0..FLAWS.len())],
            _ => Flaw::None,
        };
        Self {
            kind: KINDS[rng.gen_range(0..KINDS.len())],
            first: rng.gen_range(0..ROOTS),
            partitions: rng.gen_range(1..=PARTITIONS_MAX),
            flaw,
        }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let kind = KINDS.iter().position(|kind| *kind == self.kind);
        let flaw = FLAWS.iter().position(|flaw| *flaw == self.flaw);
        let numbers = [kind.unwrap(), self.first, self.partitions, flaw.unwrap()];
        numbers.map(|number| u8::try_from(number).unwrap()).to_vec()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let &[kind, first, partitions, flaw] = bytes else {
            panic!("a request has four bytes: {bytes:?}")
        };
        Self {
            kind: KINDS[usize::from(kind)],
            first: first.into(),
            partitions: partitions.into(),
            flaw: FLAWS[usize::from(flaw)],
        }
    }

    /// Decodes a request as an engine's decoder does.
    pub(super) fn decode(bytes: &[u8]) -> Result<Arc<dyn Statement>> {
        let request = Self::from_bytes(bytes);
        match request.flaw {
            Flaw::Malformed => Err(Error::request("request", "malformed", "mend it")),
            // The panic hook, which prints, does not hear of it.
            Flaw::DecodePanics => resume_unwind(Box::new("a decoder's defect")),
            _ => Ok(Arc::new(request)),
        }
    }

    /// Returns the number of the root of a partition.
    pub(super) fn root(&self, partition: usize) -> usize {
        (self.first + partition) % ROOTS
    }

    fn statement(&self, partition: usize) -> Root {
        let lies = self.flaw == Flaw::Lies && partition + 1 == self.partitions;
        Root::new(self.root(partition), lies)
    }

    /// Returns the public input of a partition.
    pub(super) fn input(&self, partition: usize) -> Scalar {
        self.statement(partition).input()
    }
}

impl Statement for Request {
    fn circuit(&self) -> CircuitId {
        id(self.kind)
    }

    fn partitions(&self) -> usize {
        self.partitions
    }

    fn writer(&self) -> Writer {
        Writer::Circuit
    }

    fn witness_in(
        &self,
        partition: usize,
        _: WitnessContext<'_>,
    ) -> std::result::Result<PackedWitness<Scalar>, StatementError> {
        if self.flaw == Flaw::WitnessPanics {
            resume_unwind(Box::new("a writer's defect"));
        }
        Ok(cuzk_pce::packed_witness(self.statement(partition)).unwrap())
    }

    fn public_inputs(&self, partition: usize) -> std::result::Result<Vec<Scalar>, StatementError> {
        Ok(vec![self.input(partition)])
    }

    fn partition_request(&self, partition: usize) -> std::result::Result<Vec<u8>, StatementError> {
        Ok(partition.to_le_bytes().to_vec())
    }
}
