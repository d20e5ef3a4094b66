//! Requests to aggregate proofs of replication.
//!
//! Not a proof to make: the proofs are there. They are not verified here. The invariants of a
//! request:
//!
//! * Its proofs are of one registered proof.
//! * Non-interactive proofs are aggregated by SnarkPack v2.
//! * It has no more sectors than the chain takes.

use bellperson::groth16::Proof;
use blstrs::{Bls12, Scalar};
use filecoin_proofs::constants::FIP92_MAX_NI_POREP_AGGREGATION_PROOFS;
use filecoin_proofs_api::seal::get_seal_inputs;
use filecoin_proofs_api::{RegisteredAggregationProof, RegisteredSealProof};

use super::aggregate_file::AggregateFile;
use super::aggregate_sector::{AggregateSector, PARTITION_PROOF_BYTES, included, missing};
use super::field::{self, WireNumber};
use super::{Commitment, ProofRequest, prover_id};
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::sector_size::SectorSize;

/// Proofs of replication to aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateRequest {
    registered_proof: RegisteredSealProof,
    aggregation: RegisteredAggregationProof,
    miner_id: u64,
    sectors: Vec<AggregateSector>,
}

impl AggregateRequest {
    /// The most circuit proofs of an aggregate. The chain's verifier reads no more of the SRS.
    pub const PROOFS_MAX: usize = 1 << 14;

    /// Reads a request file: an object with `registered_proof` (0 to 19), `aggregation` (0
    /// for SnarkPack v1; 1, the default, for v2), `miner_id` and `sectors`. A sector has
    /// `sector_number`, `comm_r`, `comm_d`, `ticket`, `seed` and `proof`. That of a
    /// non-interactive PoRep (15 to 19) needs no `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`], naming the field.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let file: AggregateFile = serde_json::from_slice(bytes).map_err(|problem| {
            Error::request(
                "request",
                format!("not a request to aggregate: {problem}"),
                "send an object as docs/aggregation.md describes it",
            )
        })?;
        let registered_proof = field::seal_proof(file.registered_proof)?;
        let sectors = file.sectors.iter().enumerate();
        let request = Self {
            registered_proof,
            aggregation: aggregation(file.aggregation)?,
            miner_id: file.miner_id,
            sectors: sectors
                .map(|(index, sector)| AggregateSector::read(index, sector, registered_proof))
                .collect::<Result<_, Error>>()?,
        };
        request.check_number()?;
        request.check_version()?;
        Ok(request)
    }

    /// Makes a request of one proof, by SnarkPack v2. [`push`](Self::push) adds others.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] for a request of another kind, or one that does not say which
    /// sector it is of. A proof of another length is one too.
    pub fn of(request: &ProofRequest, proof: Vec<u8>) -> Result<Self, Error> {
        let ProofRequest::PorepC2(porep) = request else {
            return Err(Error::request(
                "proof_kind",
                format!("a proof of kind {} cannot be aggregated", request.kind()),
                "give requests of proofs of replication",
            ));
        };
        let mut aggregate = Self {
            registered_proof: porep.registered_proof,
            aggregation: RegisteredAggregationProof::SnarkPackV2,
            miner_id: porep.miner_id.ok_or_else(|| missing("miner_id"))?,
            sectors: Vec::new(),
        };
        aggregate.push(request, proof)?;
        Ok(aggregate)
    }

    /// Adds a sector with its proof.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of), and for a request of another miner or registered proof.
    pub fn push(&mut self, request: &ProofRequest, proof: Vec<u8>) -> Result<(), Error> {
        let first = (self.registered_proof, Some(self.miner_id));
        let porep = match request {
            ProofRequest::PorepC2(porep) if (porep.registered_proof, porep.miner_id) == first => {
                porep
            }
            _ => {
                return Err(Error::request(
                    "registered_proof",
                    "the request is of another registered proof or miner than the first one",
                    "aggregate the sectors of one miner and registered proof",
                ));
            }
        };
        let sector = AggregateSector::of(self.sectors.len(), porep, proof)?;
        self.sectors.push(sector);
        self.check_number()
    }

    /// Returns it with SnarkPack v1 in place of v2.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] for non-interactive PoRep, which is aggregated by v2 alone.
    pub fn with_first_version(self) -> Result<Self, Error> {
        let request = Self {
            aggregation: RegisteredAggregationProof::SnarkPackV1,
            ..self
        };
        request.check_version()?;
        Ok(request)
    }

    /// Returns the request file that [`from_json`](Self::from_json) reads back as this
    /// request.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let file = AggregateFile {
            registered_proof: self.registered_proof.wire_number(),
            aggregation: match self.aggregation {
                RegisteredAggregationProof::SnarkPackV1 => 0,
                RegisteredAggregationProof::SnarkPackV2 => 1,
            },
            miner_id: self.miner_id,
            sectors: self.sectors.iter().map(AggregateSector::file).collect(),
        };
        // Strings and numbers are always JSON.
        serde_json::to_vec(&file).unwrap_or_default()
    }

    /// Checks the number of sectors.
    fn check_number(&self) -> Result<(), Error> {
        // As many proofs as fit are padded to no more, since the most is a power of two.
        let fit = Self::PROOFS_MAX / self.partitions().max(1);
        let most = match field::is_non_interactive(self.registered_proof) {
            true => fit.min(FIP92_MAX_NI_POREP_AGGREGATION_PROOFS),
            false => fit,
        };
        if (1..=most).contains(&self.sectors.len()) {
            return Ok(());
        }
        Err(Error::request(
            "sectors",
            format!("expected 1 to {most}, got {}", self.sectors.len()),
            "send each sector of the aggregate with its proof, and split a longer list",
        ))
    }

    /// Checks that the version of SnarkPack is one of the registered proof.
    fn check_version(&self) -> Result<(), Error> {
        if self.is_second_version() || !field::is_non_interactive(self.registered_proof) {
            return Ok(());
        }
        Err(Error::request(
            "aggregation",
            format!(
                "{:?} is aggregated by SnarkPack v2, not by v1",
                self.registered_proof
            ),
            "leave it out, or send 1",
        ))
    }

    /// The registered proof of the sectors.
    #[must_use]
    pub fn registered_proof(&self) -> RegisteredSealProof {
        self.registered_proof
    }

    /// The registered aggregation.
    #[must_use]
    pub fn aggregation(&self) -> RegisteredAggregationProof {
        self.aggregation
    }

    /// Returns true for SnarkPack v2, and false for v1.
    #[must_use]
    pub fn is_second_version(&self) -> bool {
        self.aggregation == RegisteredAggregationProof::SnarkPackV2
    }

    /// The number of sectors.
    #[must_use]
    pub fn sectors(&self) -> usize {
        self.sectors.len()
    }

    /// The number of partitions of a sector, each of which has a proof.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.registered_proof.partitions().into()
    }

    /// The number of proofs of the aggregate. The last proof is repeated up to a power of
    /// two.
    #[must_use]
    pub fn padded_len(&self) -> usize {
        let proofs = self.sectors.len() * self.partitions();
        proofs.max(2).next_power_of_two()
    }

    /// The circuit of the proofs.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] for a sector size without a circuit.
    pub fn circuit(&self) -> Result<CircuitId, Error> {
        Ok(CircuitId {
            kind: ProofKind::Porep,
            sector_size: SectorSize::registered(self.registered_proof.sector_size())?,
        })
    }

    /// Returns the hash that the first challenge of the aggregation includes: SHA-256 of the
    /// sectors' seeds and replica commitments. Non-interactive PoRep has no seeds.
    #[must_use]
    pub fn included(&self) -> [u8; 32] {
        let sectors = self.sectors.iter();
        included(sectors.map(|sector| (sector.seed, sector.comm_r)))
    }

    /// Decodes the proofs of all partitions, sector by sector.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`], naming the sector.
    pub fn proofs(&self) -> Result<Vec<Proof<Bls12>>, Error> {
        let mut proofs = Vec::with_capacity(self.padded_len());
        for (index, sector) in self.sectors.iter().enumerate() {
            for (partition, bytes) in sector.proof.chunks(PARTITION_PROOF_BYTES).enumerate() {
                let decoded = Proof::read(bytes).map_err(|problem| {
                    let problem = format!("partition {partition}: {problem}");
                    self.bad_proof(index, problem)
                });
                proofs.push(decoded?);
            }
        }
        Ok(proofs)
    }

    /// Returns the public inputs of every proof.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`], naming the sector.
    pub fn public_inputs(&self) -> Result<Vec<Vec<Scalar>>, Error> {
        let mut inputs = Vec::with_capacity(self.padded_len());
        for (index, sector) in self.sectors.iter().enumerate() {
            inputs.extend(self.inputs_of(index, sector)?);
        }
        Ok(inputs)
    }

    /// Returns the number of public inputs of a proof.
    ///
    /// # Errors
    ///
    /// As [`public_inputs`](Self::public_inputs).
    pub fn inputs_of_a_proof(&self) -> Result<usize, Error> {
        let Some(first) = self.sectors.first() else {
            return Ok(0);
        };
        Ok(self.inputs_of(0, first)?.first().map_or(0, Vec::len))
    }

    /// Returns the public inputs of the proofs of a sector.
    fn inputs_of(&self, index: usize, sector: &AggregateSector) -> Result<Vec<Vec<Scalar>>, Error> {
        let inputs = get_seal_inputs(
            self.registered_proof,
            sector.comm_r,
            sector.comm_d,
            prover_id(self.miner_id),
            sector.number.into(),
            sector.ticket,
            sector.seed.unwrap_or_default(),
        );
        inputs.map_err(|problem| {
            Error::request(
                format!("sectors[{index}]"),
                format!("no public inputs: {problem:#}"),
                "send the commitments, ticket and seed of the sector",
            )
        })
    }

    /// The error of a proof that cannot be aggregated.
    #[must_use]
    pub fn bad_proof(&self, sector: usize, problem: impl Into<String>) -> Error {
        let number = self.sectors.get(sector).map_or(0, |sector| sector.number);
        Error::request(
            format!("sectors[{sector}].proof"),
            format!("sector {number}: {}", problem.into()),
            "send the sector's own proof and public values, or prove the sector again",
        )
    }

    /// The replica commitments, in order.
    pub(crate) fn comm_rs(&self) -> Vec<Commitment> {
        self.sectors.iter().map(|sector| sector.comm_r).collect()
    }

    /// The seeds, in order. In place of those that there are not, the proofs library takes any.
    pub(crate) fn seeds(&self) -> Vec<[u8; 32]> {
        let seeds = self.sectors.iter().map(|sector| sector.seed);
        seeds.map(Option::unwrap_or_default).collect()
    }
}

fn aggregation(number: u64) -> Result<RegisteredAggregationProof, Error> {
    match number {
        0 => Ok(RegisteredAggregationProof::SnarkPackV1),
        1 => Ok(RegisteredAggregationProof::SnarkPackV2),
        _ => Err(Error::request(
            "aggregation",
            format!("expected 0 (SnarkPack v1) or 1 (v2), got {number}"),
            "leave it out for the version that networks take now",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A non-interactive sector has no seed.
    #[test]
    fn the_chains_verifier_gets_the_commitment_and_the_seed_of_each_sector() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../data/sector-2kib/porep.json"
        );
        let sector = ProofRequest::from_json(&fs::read(path).unwrap()).unwrap();
        let proof = vec![7; PARTITION_PROOF_BYTES];
        let mut request = AggregateRequest::of(&sector, proof.clone()).unwrap();
        request.push(&sector, proof).unwrap();
        request.sectors[1].comm_r = [5; 32];
        request.sectors[1].seed = None;
        let first = &request.sectors[0];
        let seed = first.seed.unwrap();
        assert!(first.comm_r != [0; 32] && seed != [0; 32]);
        assert_eq!(request.comm_rs(), [first.comm_r, [5; 32]]);
        assert_eq!(request.seeds(), [seed, [0; 32]]);
    }
}
