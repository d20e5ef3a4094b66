//! Requests to aggregate proofs of replication.
//!
//! Not a proof to make: the proofs are there. They are not verified here. The invariants of a
//! request:
//!
//! * Its proofs are of one registered proof.
//! * A proof has the length of its partitions.
//! * Its commitments are nonzero field elements.

use bellperson::groth16::Proof;
use blstrs::{Bls12, Scalar};
use filecoin_proofs_api::seal::get_seal_inputs;
use filecoin_proofs_api::{RegisteredAggregationProof, RegisteredSealProof};
use sha2::{Digest, Sha256};

use super::aggregate_file::{AggregateFile, SectorFile};
use super::field::{self, WireNumber};
use super::members::{base64, encode};
use super::phase1::Phase1Public;
use super::{Commitment, ProofRequest, prover_id};
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::sector_size::SectorSize;

/// Bytes of one partition's proof: two G1 points and one of G2, compressed.
const PARTITION_PROOF_BYTES: usize = 192;

/// Proofs of replication to aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateRequest {
    registered_proof: RegisteredSealProof,
    aggregation: RegisteredAggregationProof,
    miner_id: u64,
    sectors: Vec<AggregateSector>,
}

/// A sector with its proof, in the order of the aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AggregateSector {
    number: u64,
    comm_r: Commitment,
    comm_d: Commitment,
    ticket: [u8; 32],
    seed: [u8; 32],
    /// The proofs of all partitions, one after the other.
    proof: Vec<u8>,
}

impl AggregateRequest {
    /// The most circuit proofs of an aggregate. The chain's verifier reads no more of the SRS.
    pub const PROOFS_MAX: usize = 1 << 14;

    /// Reads a request file: an object with `registered_proof` (0 to 14), `aggregation` (0
    /// for SnarkPack v1; 1, the default, for v2), `miner_id` and `sectors`. A sector has
    /// `sector_number`, `comm_r`, `comm_d`, `ticket`, `seed` and `proof`.
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
        let partitions = registered_proof.partitions().into();
        let sectors = file.sectors.iter().enumerate();
        let request = Self {
            registered_proof,
            aggregation: aggregation(file.aggregation)?,
            miner_id: file.miner_id,
            sectors: sectors
                .map(|(index, sector)| AggregateSector::new(index, sector, partitions))
                .collect::<Result<_, Error>>()?,
        };
        request.check_number()?;
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
        let public = Phase1Public::of(&porep.phase1_output)?;
        let index = self.sectors.len();
        let comm = |key: &str, bytes| field::commitment(&format!("sectors[{index}].{key}"), bytes);
        self.sectors.push(AggregateSector {
            number: porep
                .sector_number
                .ok_or_else(|| missing("sector_number"))?,
            comm_r: comm("comm_r", &public.comm_r)?,
            comm_d: comm("comm_d", &public.comm_d)?,
            ticket: public.ticket,
            seed: public.seed,
            proof: whole(index, proof, self.partitions())?,
        });
        self.check_number()
    }

    /// Returns it with SnarkPack v1 in place of v2.
    #[must_use]
    pub fn with_first_version(self) -> Self {
        Self {
            aggregation: RegisteredAggregationProof::SnarkPackV1,
            ..self
        }
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

    /// Checks the number of proofs.
    fn check_number(&self) -> Result<(), Error> {
        let proofs = self.padded_len();
        if !self.sectors.is_empty() && proofs <= Self::PROOFS_MAX {
            return Ok(());
        }
        let partitions = usize::from(self.registered_proof.partitions());
        Err(Error::request(
            "sectors",
            format!(
                "expected 1 to {}, got {}",
                Self::PROOFS_MAX / partitions,
                self.sectors.len()
            ),
            "send each sector of the aggregate with its proof, and split a longer list",
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
    /// sectors' seeds and replica commitments.
    #[must_use]
    pub fn included(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for sector in &self.sectors {
            hash.update(sector.seed);
            hash.update(sector.comm_r);
        }
        hash.finalize().into()
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
            sector.seed,
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

    /// The seeds, in order.
    pub(crate) fn seeds(&self) -> Vec<[u8; 32]> {
        self.sectors.iter().map(|sector| sector.seed).collect()
    }
}

impl AggregateSector {
    fn new(index: usize, file: &SectorFile, partitions: usize) -> Result<Self, Error> {
        let name = |key: &str| format!("sectors[{index}].{key}");
        let bytes = |key: &str, text: &str| base64(&name(key), text);
        let bytes32 = |key: &str, text: &str| field::bytes32(&name(key), &bytes(key, text)?);
        Ok(Self {
            number: file.sector_number,
            comm_r: field::commitment(&name("comm_r"), &bytes("comm_r", &file.comm_r)?)?,
            comm_d: field::commitment(&name("comm_d"), &bytes("comm_d", &file.comm_d)?)?,
            ticket: bytes32("ticket", &file.ticket)?,
            seed: bytes32("seed", &file.seed)?,
            proof: whole(index, bytes("proof", &file.proof)?, partitions)?,
        })
    }

    fn file(&self) -> SectorFile {
        SectorFile {
            sector_number: self.number,
            comm_r: encode(&self.comm_r),
            comm_d: encode(&self.comm_d),
            ticket: encode(&self.ticket),
            seed: encode(&self.seed),
            proof: encode(&self.proof),
        }
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

/// Checks the length of a sector's proof.
fn whole(index: usize, proof: Vec<u8>, partitions: usize) -> Result<Vec<u8>, Error> {
    let expected = partitions * PARTITION_PROOF_BYTES;
    if proof.len() == expected {
        return Ok(proof);
    }
    Err(Error::request(
        format!("sectors[{index}].proof"),
        format!("expected {expected} bytes, got {}", proof.len()),
        "send the proof that cuzk or the proofs library returned, of all partitions",
    ))
}

/// The error of a request that does not say which sector it is of.
fn missing(field: &str) -> Error {
    Error::request(
        field,
        "missing, and the public inputs of a proof depend on it",
        "put it into the request file",
    )
}
