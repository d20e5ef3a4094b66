//! Requests made by sealing a sector here.

use cuzk_filecoin::request::{PorepC2, prover_id};
use cuzk_filecoin::{ProofKind, SectorSize, decode};
use cuzk_filecoin::{ProofRequest, vanilla};
use cuzk_pce::Columns;
use filecoin_proofs_api::seal::{
    add_piece, generate_synth_proofs, seal_commit_phase1, seal_pre_commit_phase1,
    seal_pre_commit_phase2,
};
use filecoin_proofs_api::{ApiFeature, RegisteredSealProof, SectorId, UnpaddedBytesAmount};

#[test]
fn a_sealed_sector_gives_a_request_of_each_kind() {
    for kind in ProofKind::ALL {
        let request = vanilla::make(kind, SectorSize::KiB2, 1).unwrap();
        assert_eq!(request.kind(), kind);
        assert_eq!(
            ProofRequest::from_json(&request.to_json()).unwrap(),
            request,
            "{kind}"
        );
        let job = decode(&request).unwrap();
        let witness = job.witness(0).unwrap();
        assert_eq!(
            witness.inputs()[1..],
            job.public_inputs(0).unwrap(),
            "{kind}"
        );
    }
}

#[test]
fn a_seed_decides_the_request() {
    let make = |seed| vanilla::make(ProofKind::WindowPost, SectorSize::KiB2, seed).unwrap();
    assert_eq!(make(2), make(2));
    assert_ne!(make(2), make(3));
}

/// Seals 2 KiB with a given version of PoRep, as far as the C1 output.
fn commit_phase1(registered: RegisteredSealProof) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let [data, cache, replica] =
        ["data", "cache", "replica"].map(|name| directory.path().join(name));
    std::fs::create_dir(&cache).unwrap();
    std::fs::write(&replica, b"").unwrap();
    let file = std::fs::File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(&data);
    let length = UnpaddedBytesAmount(2032);
    let (piece, _) = add_piece(registered, &[5; 2032][..], file.unwrap(), length, &[]).unwrap();
    let (pieces, prover, sector) = ([piece], prover_id(1000), SectorId::from(9));
    let (ticket, seed) = ([1; 32], [2; 32]);
    let phase1 = seal_pre_commit_phase1(
        registered, &cache, &data, &replica, prover, sector, ticket, &pieces,
    )
    .unwrap();
    let sealed = seal_pre_commit_phase2(phase1, &cache, &replica).unwrap();
    if registered.feature_enabled(ApiFeature::SyntheticPoRep) {
        let sealed = sealed.clone();
        generate_synth_proofs(&cache, &replica, prover, sector, ticket, sealed, &pieces).unwrap();
    }
    let output = seal_commit_phase1(
        &cache, &replica, prover, sector, ticket, seed, sealed, &pieces,
    )
    .unwrap();
    serde_json::to_vec(&output).unwrap()
}

#[test]
fn every_version_of_porep_is_the_same_circuit() {
    let versions = [
        (0, 1, RegisteredSealProof::StackedDrg2KiBV1),
        (5, 1, RegisteredSealProof::StackedDrg2KiBV1_1),
        (
            10,
            1,
            RegisteredSealProof::StackedDrg2KiBV1_1_Feat_SyntheticPoRep,
        ),
        (
            15,
            13,
            RegisteredSealProof::StackedDrg2KiBV1_2_Feat_NonInteractivePoRep,
        ),
    ];
    for (number, partitions, registered) in versions {
        let output = commit_phase1(registered);
        let request = PorepC2::new(number, 2048, Some(1000), Some(9), &output).unwrap();
        let job = decode(&ProofRequest::PorepC2(request)).unwrap();
        assert_eq!(job.partitions(), partitions, "{registered:?}");
        let witness = job.witness(partitions - 1).unwrap();
        assert_eq!(
            (witness.num_inputs(), witness.num_aux()),
            (40, 2_685_673),
            "{registered:?}"
        );
        assert_eq!(
            witness.inputs()[1..],
            job.public_inputs(partitions - 1).unwrap(),
            "{registered:?}"
        );

        let other = PorepC2::new(number, 2048, Some(1001), Some(9), &output).unwrap();
        assert!(
            decode(&ProofRequest::PorepC2(other)).is_err(),
            "{registered:?}"
        );
    }
}
