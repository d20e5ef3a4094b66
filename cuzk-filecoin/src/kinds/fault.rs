//! Where a vanilla proof is wrong that the proofs library's verifier rejected.
//!
//! Not that verifier, which says yes or no: the same checks again, part by
//! part, until one fails. The invariant: nothing here can accept a proof.

use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::constants::{
    DRG_DEGREE, DefaultPieceDomain, DefaultPieceHasher, DefaultTreeDomain, DefaultTreeHasher,
    EXP_DEGREE,
};
use storage_proofs_core::drgraph::Graph as _;
use storage_proofs_core::merkle::MerkleProofTrait;
use storage_proofs_porep::stacked;
use storage_proofs_post::fallback::SectorProof;
use storage_proofs_update as update;

use crate::tree::ReplicaTree;

/// The place of a fault, from the outside in, and the fault.
pub(super) type Fault = String;

type PorepInputs = stacked::PublicInputs<DefaultTreeDomain, DefaultPieceDomain>;
type PorepProof<Tree> = stacked::Proof<Tree, DefaultPieceHasher>;

/// Returns the text of a fault. A verifier can reject a proof whose parts all hold by
/// themselves.
pub(super) fn reason(found: Result<(), Fault>) -> String {
    let unknown = || {
        "each part holds by itself, so a part is missing, is there too often or is in another \
         place"
    };
    found.err().unwrap_or_else(|| unknown().to_owned())
}

fn ensure(holds: bool, fault: impl FnOnce() -> Fault) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(fault()) }
}

/// That a path leads from its leaf, of the given number, to a root.
fn check_path<P: MerkleProofTrait>(
    part: &str,
    path: &P,
    node: usize,
    root: <P::Hasher as Hasher>::Domain,
) -> Result<(), Fault> {
    ensure(path.path_index() == node, || {
        format!("{part}: expected node {node}, got {}", path.path_index())
    })?;
    ensure(path.root() == root, || {
        format!("{part}: its root is not the others'")
    })?;
    ensure(path.verify(), || {
        format!("{part}: the Merkle path does not lead from its leaf to its root")
    })
}

fn check_comm_r(
    name: &str,
    comm_c: &DefaultTreeDomain,
    comm_r_last: &DefaultTreeDomain,
    comm_r: &DefaultTreeDomain,
) -> Result<(), Fault> {
    let expected = <DefaultTreeHasher as Hasher>::Function::hash2(comm_c, comm_r_last);
    ensure(expected == *comm_r, || {
        format!("{name} is not the hash of the roots of its trees")
    })
}

/// The first part of a PoRep's partition `k` that is wrong.
pub(super) fn porep<Tree: ReplicaTree>(
    params: &stacked::PublicParams<Tree>,
    inputs: &PorepInputs,
    k: usize,
    proofs: &[PorepProof<Tree>],
) -> Result<(), Fault> {
    let (Some(tau), Some(first)) = (&inputs.tau, proofs.first()) else {
        return Ok(());
    };
    let (comm_c, comm_r_last) = (first.comm_c(), first.comm_r_last());
    check_comm_r("comm_r", &comm_c, &comm_r_last, &tau.comm_r)?;
    let challenges = inputs.challenges(&params.challenges, params.graph.size(), Some(k));
    for (c, (proof, challenge)) in proofs.iter().zip(challenges).enumerate() {
        let check = || {
            let node = challenge;
            check_path("comm_d_proofs", &proof.comm_d_proofs, node, tau.comm_d)?;
            check_path(
                "comm_r_last_proof",
                &proof.comm_r_last_proof,
                node,
                comm_r_last,
            )?;
            check_columns(params, proof, node, comm_c)?;
            check_labels(params, inputs, proof)
        };
        check().map_err(|fault| format!("partition {k}: challenge {c}: {fault}"))?;
    }
    Ok(())
}

fn check_columns<Tree: ReplicaTree>(
    params: &stacked::PublicParams<Tree>,
    proof: &PorepProof<Tree>,
    challenge: usize,
    comm_c: DefaultTreeDomain,
) -> Result<(), Fault> {
    let mut parents = [0; DRG_DEGREE + EXP_DEGREE];
    params
        .graph
        .parents(challenge, &mut parents)
        .map_err(|problem| format!("the parents of node {challenge}: {problem}"))?;
    let columns = &proof.replica_column_proofs;
    let drg = columns
        .drg_parents
        .iter()
        .map(|column| ("drg_parents", column));
    let exp = columns
        .exp_parents
        .iter()
        .map(|column| ("exp_parents", column));
    let node = u32::try_from(challenge).map_err(|problem| problem.to_string())?;
    let all = [("c_x", &columns.c_x)].into_iter().chain(drg).chain(exp);
    for ((name, column), node) in all.zip([node].into_iter().chain(parents)) {
        ensure(column.verify(node, &comm_c), || {
            format!("{name}: not the column of node {node} in the tree of the others")
        })?;
    }
    Ok(())
}

fn check_labels<Tree: ReplicaTree>(
    params: &stacked::PublicParams<Tree>,
    inputs: &PorepInputs,
    proof: &PorepProof<Tree>,
) -> Result<(), Fault> {
    for (layer, label) in (1..=params.num_layers).zip(&proof.labeling_proofs) {
        let expected = proof
            .replica_column_proofs
            .c_x
            .get_node_at_layer(layer)
            .map_err(|problem| format!("c_x: {problem}"))?;
        ensure(label.verify(&inputs.replica_id, expected), || {
            format!("labeling_proofs {}: not the label in c_x", layer - 1)
        })?;
    }
    let encodes = proof.encoding_proof.verify::<DefaultPieceHasher>(
        &inputs.replica_id,
        &proof.comm_r_last_proof.leaf(),
        &proof.comm_d_proofs.leaf(),
    );
    ensure(encodes, || {
        "encoding_proof: the replica's node does not encode the data's".into()
    })
}

/// The first part of a PoSt's sector that is wrong, where challenges, counted
/// from `first`, ask for `leaves`.
pub(super) fn post<P: MerkleProofTrait<Hasher = DefaultTreeHasher>>(
    comm_r: &DefaultTreeDomain,
    proof: &SectorProof<P>,
    first: usize,
    leaves: impl Iterator<Item = u64>,
) -> Result<(), Fault> {
    check_comm_r("comm_r", &proof.comm_c, &proof.comm_r_last, comm_r)?;
    for (c, (path, leaf)) in (first..).zip(proof.inclusion_proofs.iter().zip(leaves)) {
        let leaf = usize::try_from(leaf).map_err(|problem| problem.to_string())?;
        check_path(&format!("challenge {c}"), path, leaf, proof.comm_r_last)?;
    }
    Ok(())
}

/// The first part of an update's partition that is wrong.
pub(super) fn snap_deals<Tree: ReplicaTree>(
    params: &update::PublicParams,
    inputs: &update::PublicInputs,
    proof: &update::PartitionProof<Tree>,
) -> Result<(), Fault> {
    let Some(first) = proof.challenge_proofs.first() else {
        return Ok(());
    };
    let (old, new) = (first.proof_r_old.root(), first.proof_r_new.root());
    check_comm_r("comm_r_old", &proof.comm_c, &old, &inputs.comm_r_old)?;
    check_comm_r("comm_r_new", &proof.comm_c, &new, &inputs.comm_r_new)?;
    let phi = update::phi(&inputs.comm_d_new, &inputs.comm_r_old);
    let challenges = update::Challenges::new(params.sector_nodes, inputs.comm_r_new, inputs.k);
    for (c, (proof, challenge)) in proof.challenge_proofs.iter().zip(challenges).enumerate() {
        let rho = update::rho(&phi, challenge >> (params.challenge_bit_len - inputs.h));
        let check = || {
            let node = usize::try_from(challenge).map_err(|problem| problem.to_string())?;
            check_path("proof_r_old", &proof.proof_r_old, node, old)?;
            check_path("proof_d_new", &proof.proof_d_new, node, inputs.comm_d_new)?;
            check_path("proof_r_new", &proof.proof_r_new, node, new)?;
            let old: blstrs::Scalar = proof.proof_r_old.leaf().into();
            let data: blstrs::Scalar = proof.proof_d_new.leaf().into();
            ensure(
                proof.proof_r_new.leaf() == (old + data * rho).into(),
                || "proof_r_new: its leaf does not encode proof_d_new's".into(),
            )
        };
        check().map_err(|fault| format!("challenge {c}: {fault}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use filecoin_proofs::parameters::public_params;
    use filecoin_proofs_api::RegisteredSealProof;
    use serde::Deserialize;

    use super::*;
    use crate::tree::BaseTree;

    #[test]
    fn a_rejection_is_never_without_a_reason() {
        assert_eq!(reason(Err("why".to_owned())), "why");
        assert!(reason(Ok(())).contains("in another place"));
    }

    #[derive(Deserialize)]
    struct Phase1 {
        registered_proof: RegisteredSealProof,
        vanilla_proofs: Partitions,
        replica_id: [u8; 32],
    }

    #[derive(Deserialize)]
    struct Partitions {
        #[serde(rename = "StackedDrg2KiBV1")]
        partitions: Vec<Vec<PorepProof<BaseTree>>>,
    }

    /// The challenges of a replica depend on its id. So a request that has only another id is
    /// refused for its nodes, before its labels are looked at.
    #[test]
    fn labels_and_encodings_of_another_replica_are_named() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../data/sector-2kib/porep-c1.json"
        );
        let output: Phase1 = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let config = output.registered_proof.as_v1_config();
        let params = public_params::<BaseTree>(&config).unwrap();
        let inputs = |replica_id: [u8; 32]| PorepInputs {
            replica_id: replica_id.into(),
            tau: None,
            k: None,
            seed: None,
        };
        let (good, other) = (inputs(output.replica_id), inputs([1; 32]));
        for mut proof in output.vanilla_proofs.partitions.into_iter().flatten() {
            assert_eq!(check_labels(&params, &good, &proof), Ok(()));
            let fault = check_labels(&params, &other, &proof).unwrap_err();
            assert_eq!(fault, "labeling_proofs 0: not the label in c_x");
            proof.labeling_proofs.clear();
            let fault = check_labels(&params, &other, &proof).unwrap_err();
            assert!(fault.starts_with("encoding_proof: "), "{fault}");
        }
    }
}
