//! A sector that is really sealed, as far as every kind's vanilla proof.
//!
//! The sector lives in a directory of the caller's, which is of no use once the request is
//! returned. Sealing fails once the caller has removed it.
//!
//! The proofs library keeps the parents of a sector's graph, 56 bytes a node, and reads
//! them the next time. They are in the directory that `FIL_PROOFS_PARENT_CACHE` names, by
//! default under `/var/tmp`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use filecoin_proofs_api::post::{
    generate_fallback_sector_challenges, generate_single_vanilla_proof,
};
use filecoin_proofs_api::seal::{
    SealPreCommitPhase2Output, add_piece, seal_commit_phase1, seal_pre_commit_phase1,
    seal_pre_commit_phase2,
};
use filecoin_proofs_api::update::{empty_sector_update_encode_into, generate_partition_proofs};
use filecoin_proofs_api::{
    PaddedBytesAmount, PieceInfo, PrivateReplicaInfo, RegisteredPoStProof, RegisteredSealProof,
    SectorId, UnpaddedBytesAmount,
};
use rand::RngCore;
use rand_chacha::ChaCha8Rng;
use tracing::info_span;

use crate::Error;
use crate::library_settings::library_settings;
use crate::proof_kind::ProofKind;
use crate::registered;
use crate::request::ProofRequest;
use crate::request::{PorepC2, SnapDeals, WindowPost, WinningPost, prover_id};
use crate::sector_size::SectorSize;

use super::{MINER_ID, field_element, parents};

/// Seals a sector of `size` with data drawn from `rng` in `directory`, and makes a request for
/// a proof of `kind` over it.
pub(super) fn make(
    kind: ProofKind,
    size: SectorSize,
    rng: ChaCha8Rng,
    directory: &Path,
) -> Result<ProofRequest, Error> {
    Sector::seal(registered::seal_proof(size), size, rng, directory)?.request(kind)
}

/// Seals a sector as [`make`] does, once, and makes the requests of [`make`] for proofs of `kinds`
/// over it. Each kind is there once at most.
pub(super) fn make_each(
    kinds: &[ProofKind],
    size: SectorSize,
    rng: ChaCha8Rng,
    directory: &Path,
) -> Result<Vec<ProofRequest>, Error> {
    let sector = Sector::seal(registered::seal_proof(size), size, rng, directory)?;
    let request = |kind: &ProofKind| sector.clone().request(*kind);
    kinds.iter().map(request).collect()
}

/// Seals a sector of `size` for non-interactive PoRep in `directory`, and makes a request for a
/// proof of it.
pub(super) fn make_non_interactive(
    size: SectorSize,
    rng: ChaCha8Rng,
    directory: &Path,
) -> Result<ProofRequest, Error> {
    Sector::seal(
        registered::non_interactive_seal_proof(size),
        size,
        rng,
        directory,
    )?
    .porep()
}

/// A sector as far as its replica. A copy is of the same files.
#[derive(Clone)]
struct Sector {
    size: SectorSize,
    number: u64,
    ticket: [u8; 32],
    pieces: [PieceInfo; 1],
    commitments: SealPreCommitPhase2Output,
    directory: PathBuf,
    rng: ChaCha8Rng,
}

impl Sector {
    fn seal(
        registered: RegisteredSealProof,
        size: SectorSize,
        mut rng: ChaCha8Rng,
        directory: &Path,
    ) -> Result<Self, Error> {
        let _span = info_span!("seal", %size).entered();
        let kept = PathBuf::from(&library_settings()?.parent_cache);
        fs::create_dir_all(&kept).map_err(|error| Error::io(&kept, error))?;
        parents::remove_damaged(&kept, size)?;
        let number = u64::from(rng.next_u32());
        let ticket = field_element(&mut rng);
        let pieces = [write_piece(size, &mut rng, &directory.join("data"))?];
        create_directory(&directory.join("cache"))?;
        create_file(&directory.join("replica"), 0)?;
        let phase1 = seal_pre_commit_phase1(
            registered,
            directory.join("cache"),
            directory.join("data"),
            directory.join("replica"),
            prover_id(MINER_ID),
            SectorId::from(number),
            ticket,
            &pieces,
        )
        .map_err(|problem| failed(directory, "seal_pre_commit_phase1", &problem))?;
        let commitments =
            seal_pre_commit_phase2(phase1, directory.join("cache"), directory.join("replica"))
                .map_err(|problem| failed(directory, "seal_pre_commit_phase2", &problem))?;
        Ok(Self {
            size,
            number,
            ticket,
            pieces,
            commitments,
            directory: directory.to_owned(),
            rng,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn request(self, kind: ProofKind) -> Result<ProofRequest, Error> {
        match kind {
            ProofKind::Porep => self.porep(),
            ProofKind::WinningPost => self.winning_post(),
            ProofKind::WindowPost => self.window_post(),
            ProofKind::SnapDeals => self.snap_deals(),
        }
    }

    fn porep(mut self) -> Result<ProofRequest, Error> {
        // A non-interactive proof takes a seed, too, and ignores it.
        let seed = field_element(&mut self.rng);
        let output = seal_commit_phase1(
            self.path("cache"),
            self.path("replica"),
            prover_id(MINER_ID),
            SectorId::from(self.number),
            self.ticket,
            seed,
            self.commitments,
            &self.pieces,
        )
        .map_err(|problem| failed(&self.directory, "seal_commit_phase1", &problem))?;
        let phase1_output =
            serde_json::to_vec(&output).map_err(|problem| super::failed("C1 output", &problem))?;
        Ok(ProofRequest::PorepC2(PorepC2 {
            registered_proof: output.registered_proof,
            miner_id: Some(MINER_ID),
            sector_number: Some(self.number),
            phase1_output,
        }))
    }

    fn winning_post(mut self) -> Result<ProofRequest, Error> {
        let registered_proof = registered::winning_post_proof(self.size);
        let (randomness, vanilla_proof) = self.post(registered_proof)?;
        Ok(ProofRequest::WinningPost(WinningPost {
            registered_proof,
            miner_id: MINER_ID,
            randomness,
            vanilla_proofs: vec![vanilla_proof],
        }))
    }

    fn window_post(mut self) -> Result<ProofRequest, Error> {
        let registered_proof = registered::window_post_proof(self.size);
        let (randomness, vanilla_proof) = self.post(registered_proof)?;
        Ok(ProofRequest::WindowPost(WindowPost {
            registered_proof,
            miner_id: MINER_ID,
            randomness,
            partition_index: 0,
            vanilla_proofs: vec![vanilla_proof],
        }))
    }

    /// Randomness, and the vanilla proof for the challenges that follow.
    fn post(&mut self, registered: RegisteredPoStProof) -> Result<([u8; 32], Vec<u8>), Error> {
        let randomness = field_element(&mut self.rng);
        let id = SectorId::from(self.number);
        let challenges = generate_fallback_sector_challenges(
            registered,
            &randomness,
            &[id],
            prover_id(MINER_ID),
        )
        .map_err(|problem| failed(&self.directory, "PoSt challenges", &problem))?;
        let replica = PrivateReplicaInfo::new(
            registered,
            self.commitments.comm_r,
            self.path("cache"),
            self.path("replica"),
        );
        let challenges = challenges.get(&id).map(Vec::as_slice).unwrap_or_default();
        let vanilla_proof = generate_single_vanilla_proof(registered, id, &replica, challenges)
            .map_err(|problem| failed(&self.directory, "PoSt vanilla proof", &problem))?;
        Ok((randomness, vanilla_proof))
    }

    fn snap_deals(mut self) -> Result<ProofRequest, Error> {
        let registered_proof = registered::update_proof(self.size);
        let data = self.path("new-data");
        let pieces = [write_piece(self.size, &mut self.rng, &data)?];
        create_directory(&self.path("new-cache"))?;
        create_file(&self.path("new-replica"), self.size.bytes())?;
        let encoded = empty_sector_update_encode_into(
            registered_proof,
            self.path("new-replica"),
            self.path("new-cache"),
            self.path("replica"),
            self.path("cache"),
            data,
            &pieces,
        )
        .map_err(|problem| failed(&self.directory, "sector update", &problem))?;
        let vanilla_proofs = generate_partition_proofs(
            registered_proof,
            self.commitments.comm_r,
            encoded.comm_r_new,
            encoded.comm_d_new,
            self.path("replica"),
            self.path("cache"),
            self.path("new-replica"),
            self.path("new-cache"),
        )
        .map_err(|problem| failed(&self.directory, "update vanilla proofs", &problem))?;
        Ok(ProofRequest::SnapDeals(SnapDeals {
            registered_proof,
            comm_r_old: self.commitments.comm_r,
            comm_r_new: encoded.comm_r_new,
            comm_d_new: encoded.comm_d_new,
            vanilla_proofs: vanilla_proofs.into_iter().map(|proof| proof.0).collect(),
        }))
    }
}

/// Fills `path` with one piece of random data, as large as the sector holds.
fn write_piece(size: SectorSize, rng: &mut ChaCha8Rng, path: &Path) -> Result<PieceInfo, Error> {
    let file = create_file(path, 0)?;
    let length = UnpaddedBytesAmount::from(PaddedBytesAmount(size.bytes()));
    let registered = registered::seal_proof(size);
    let data = RandomData(rng).take(length.0);
    let (piece, _) = add_piece(registered, data, file, length, &[])
        .map_err(|problem| failed(path, "piece", &problem))?;
    Ok(piece)
}

/// Returns the error of a stage of the proofs library. A disk without room is an error of
/// `path`, which is on it.
fn failed(path: &Path, stage: &'static str, problem: &anyhow::Error) -> Error {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    let causes = problem
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    let mut kinds = causes.map(io::Error::kind);
    match kinds.find(|kind| matches!(kind, StorageFull | QuotaExceeded)) {
        Some(kind) => Error::io(path, kind.into()),
        None => super::failed(stage, problem),
    }
}

/// A generator's output as a file.
struct RandomData<'a>(&'a mut ChaCha8Rng);

impl Read for RandomData<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.fill_bytes(buffer);
        Ok(buffer.len())
    }
}

fn create_directory(path: &Path) -> Result<(), Error> {
    fs::create_dir(path).map_err(|error| Error::io(path, error))
}

fn create_file(path: &Path, length: u64) -> Result<File, Error> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| Error::io(path, error))?;
    file.set_len(length)
        .map_err(|error| Error::io(path, error))?;
    Ok(file)
}
