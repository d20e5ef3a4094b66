//! Proof bytes against filecoin-proofs-api's own verify functions, which are
//! what the chain runs.
//!
//! Not the engine's own verification: it takes nothing from a [`Statement`](crate::kinds::Statement).
//! The verifying key is read by the library, from the directory that
//! `FIL_PROOFS_PARAMETER_CACHE` named when the process first asked.

use std::collections::BTreeMap;
use std::io;

use filecoin_proofs_api::post::{verify_window_post, verify_winning_post};
use filecoin_proofs_api::seal::{verify_aggregate_seal_commit_proofs, verify_seal};
use filecoin_proofs_api::update::verify_empty_sector_update_proof;
use filecoin_proofs_api::{ApiVersion, PublicReplicaInfo, RegisteredPoStProof, SectorId};
use storage_proofs_core::parameter_cache::parameter_cache_dir;

use crate::Error;
use crate::circuit_id::{CircuitId, srs_file_name};
use crate::request::{AggregateRequest, ProofRequest};
use crate::request::{Phase1Public, PorepC2, SnapDeals, WindowPost, WinningPost};
use crate::request::{claimed_sector, prover_id};
use crate::sector_size::SectorSize;
use crate::verify::{PARTITION_PROOF_BYTES, Rejection, Verdict};

type Replicas = BTreeMap<SectorId, PublicReplicaInfo>;

/// Verifies with filecoin-proofs-api that `proof` is one of the statement of `request`. That of
/// a non-interactive PoRep is the aggregate of its partitions' proofs.
///
/// # Errors
///
/// [`Error::InvalidRequest`] if the request does not say enough for the chain's verifier. A
/// bare C1 output has no miner. A V1 WindowPoSt after the first partition needs the
/// partitions before it. The proofs of the partitions of a non-interactive PoRep are not what
/// it takes. [`Error::Io`] if there is no verifying key, or no SRS for an aggregate.
pub fn verify(request: &ProofRequest, proof: &[u8]) -> Result<Verdict, Error> {
    let expected = partitions(request) * PARTITION_PROOF_BYTES;
    if matches!(request, ProofRequest::PorepC2(porep) if porep.is_non_interactive()) {
        // No aggregate has this length.
        if proof.len() == expected {
            return Err(not_aggregated());
        }
        require_file(srs_file_name())?;
    } else if proof.len() != expected {
        return Ok(Verdict::Invalid(Rejection::Length {
            expected,
            got: proof.len(),
        }));
    }
    require_key(request)?;
    let outcome = match request {
        ProofRequest::PorepC2(request) => porep(request, proof)?,
        ProofRequest::WinningPost(request) => winning_post(request, proof)?,
        ProofRequest::WindowPost(request) => window_post(request, proof)?,
        ProofRequest::SnapDeals(request) => snap_deals(request, proof),
    };
    Ok(verdict(outcome))
}

/// Verifies with filecoin-proofs-api that `aggregate` is one of the proofs of `request`. The
/// library reads the inner-product SRS too.
///
/// # Errors
///
/// [`Error::InvalidRequest`] if the sectors have no public inputs. [`Error::Io`] if there is no
/// verifying key.
pub fn verify_aggregate(request: &AggregateRequest, aggregate: &[u8]) -> Result<Verdict, Error> {
    require_file(request.circuit()?.vk_file_name()?)?;
    require_file(srs_file_name())?;
    Ok(verdict(verify_aggregate_seal_commit_proofs(
        request.registered_proof(),
        request.aggregation(),
        aggregate.to_vec(),
        &request.comm_rs(),
        &request.seeds(),
        request.public_inputs()?,
    )))
}

fn verdict(outcome: anyhow::Result<bool>) -> Verdict {
    match outcome {
        Ok(true) => Verdict::Valid,
        Ok(false) => Verdict::Invalid(Rejection::Reference {
            problem: "the proof is not valid".into(),
        }),
        Err(problem) => Verdict::Invalid(Rejection::Reference {
            problem: format!("{problem:#}"),
        }),
    }
}

fn not_aggregated() -> Error {
    Error::request(
        "registered_proof",
        "the chain's verifier takes the aggregate of a non-interactive PoRep, and these are the \
         proofs of its partitions",
        "make the aggregate with `cuzk aggregate`, and verify that",
    )
}

fn partitions(request: &ProofRequest) -> usize {
    match request {
        ProofRequest::PorepC2(request) => request.registered_proof.partitions().into(),
        ProofRequest::WinningPost(_) | ProofRequest::WindowPost(_) => 1,
        ProofRequest::SnapDeals(request) => request.vanilla_proofs.len(),
    }
}

/// Without this, the library would go on to look for the parameters and
/// report those as missing.
fn require_key(request: &ProofRequest) -> Result<(), Error> {
    let size = match request {
        ProofRequest::PorepC2(request) => request.registered_proof.sector_size(),
        ProofRequest::WinningPost(request) => request.registered_proof.sector_size(),
        ProofRequest::WindowPost(request) => request.registered_proof.sector_size(),
        ProofRequest::SnapDeals(request) => request.registered_proof.sector_size(),
    };
    let id = CircuitId {
        kind: request.kind(),
        sector_size: SectorSize::registered(size)?,
    };
    require_file(id.vk_file_name()?)
}

fn require_file(name: String) -> Result<(), Error> {
    let path = parameter_cache_dir().join(name);
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(Error::io(path, io::Error::other("not a file"))),
        Err(error) => Err(Error::io(path, error)),
    }
}

fn porep(request: &PorepC2, proof: &[u8]) -> Result<anyhow::Result<bool>, Error> {
    let (Some(miner_id), Some(sector_number)) = (request.miner_id, request.sector_number) else {
        return Err(Error::request(
            "miner_id",
            "a bare C1 output says neither miner nor sector, which the chain's verifier needs",
            "put it into a request file with miner_id and sector_number",
        ));
    };
    let output = Phase1Public::of(&request.phase1_output)?;
    Ok(verify_seal(
        request.registered_proof,
        output.comm_r,
        output.comm_d,
        prover_id(miner_id),
        sector_number.into(),
        output.ticket,
        output.seed,
        proof,
    ))
}

fn winning_post(request: &WinningPost, proof: &[u8]) -> Result<anyhow::Result<bool>, Error> {
    let replicas = replicas(request.registered_proof, &request.vanilla_proofs)?;
    let prover = prover_id(request.miner_id);
    Ok(verify_winning_post(
        &request.randomness,
        proof,
        &replicas,
        prover,
    ))
}

fn window_post(request: &WindowPost, proof: &[u8]) -> Result<anyhow::Result<bool>, Error> {
    let registered = request.registered_proof;
    if request.partition_index != 0 && registered.version() < ApiVersion::V1_2_0 {
        return Err(Error::request(
            "partition_index",
            format!("the challenges of {registered:?} depend on the partitions before this one"),
            "verify the proofs of the whole deadline together",
        ));
    }
    let replicas = replicas(registered, &request.vanilla_proofs)?;
    let proofs = [(registered, proof)];
    Ok(verify_window_post(
        &request.randomness,
        &proofs,
        &replicas,
        prover_id(request.miner_id),
    ))
}

fn snap_deals(request: &SnapDeals, proof: &[u8]) -> anyhow::Result<bool> {
    verify_empty_sector_update_proof(
        request.registered_proof,
        proof,
        request.comm_r_old,
        request.comm_r_new,
        request.comm_d_new,
    )
}

/// The sectors' public side, as their vanilla proofs state it.
fn replicas(
    registered: RegisteredPoStProof,
    vanilla_proofs: &[Vec<u8>],
) -> Result<Replicas, Error> {
    let sectors = vanilla_proofs.iter().enumerate().map(|(index, vanilla)| {
        let (number, comm_r) = claimed_sector(vanilla).ok_or_else(|| {
            Error::request(
                format!("vanilla_proofs[{index}]"),
                format!("expected at least 40 bytes, got {}", vanilla.len()),
                "send the bytes that the vanilla prover returned",
            )
        })?;
        Ok((
            SectorId::from(number),
            PublicReplicaInfo::new(registered, comm_r),
        ))
    });
    sectors.collect()
}
