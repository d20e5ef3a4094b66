//! Vanilla proofs that are wrong in one part: the error names the part.

use cuzk_filecoin::{Error, ProofRequest, decode};
use serde_json::{Value, json};

use crate::altered::{Edit, MODULUS, bundled, edit_bytes};

/// Reads and decodes, and returns what is wrong.
fn problem(bytes: &[u8]) -> String {
    match ProofRequest::from_json(bytes).and_then(|request| decode(&request).map(|_| ())) {
        Err(Error::InvalidRequest { problem, .. }) => problem,
        other => format!("{other:?}"),
    }
}

/// A node of a C1 output, altered but in the field.
fn flip(node: &mut Value) {
    node[0] = json!(node[0].as_u64().unwrap() ^ 1);
}

fn path<'a>(challenge: &'a mut Value, name: &str) -> &'a mut Value {
    &mut challenge[name]["data"]["Single"]["path"]["path"]
}

/// A challenge of a C1 output with something altered, and the words that name the part. The
/// library's verifier sees what is wrong, only the circuit would, or neither gets to see it.
const NAMED_PARTS: &[(&str, Edit)] = &[
    ("comm_d_proofs: the leaf is not a field element", |c| {
        c["comm_d_proofs"]["data"]["Single"]["leaf"] = json!(MODULUS);
    }),
    (
        "comm_r_last_proof: a sibling in the Merkle path is not a field element",
        |c| {
            path(c, "comm_r_last_proof")[1]["hashes"][6] = json!(MODULUS);
        },
    ),
    (
        "exp_parents 7: a label in the column is not a field element",
        |c| {
            c["replica_column_proofs"]["exp_parents"][7]["column"]["rows"][1] = json!(MODULUS);
        },
    ),
    ("comm_d_proofs: the Merkle path does not lead", |c| {
        flip(&mut path(c, "comm_d_proofs")[2]["hashes"][0]);
    }),
    ("comm_r_last_proof: the Merkle path does not lead", |c| {
        flip(&mut path(c, "comm_r_last_proof")[0]["hashes"][3]);
    }),
    ("comm_d_proofs: the Merkle path does not lead", |c| {
        flip(&mut c["comm_d_proofs"]["data"]["Single"]["leaf"]);
    }),
    ("comm_d_proofs: its root", |c| {
        flip(&mut c["comm_d_proofs"]["data"]["Single"]["root"]);
    }),
    ("comm_d_proofs: expected node", |c| {
        let index = &mut path(c, "comm_d_proofs")[0]["index"];
        *index = json!(1 - index.as_u64().unwrap());
    }),
    ("comm_r_last_proof: expected node", |c| {
        let index = &mut path(c, "comm_r_last_proof")[1]["index"];
        *index = json!(7 - index.as_u64().unwrap());
    }),
    ("labeling_proofs 1: expected node", |c| {
        c["labeling_proofs"][1]["node"] = json!(1u64 << 40);
    }),
    ("labeling_proofs 0: expected layer 1, got 2", |c| {
        c["labeling_proofs"][0]["layer_index"] = json!(2);
    }),
    (
        "labeling_proofs 1: parent 36 is not labeled as in its column",
        |c| {
            flip(&mut c["labeling_proofs"][1]["parents"][36]);
        },
    ),
    (
        "labeling_proofs 0: parent 2 is not labeled as in its column",
        |c| {
            flip(&mut c["replica_column_proofs"]["drg_parents"][2]["column"]["rows"][0]);
        },
    ),
    ("encoding_proof: is not the label of the last layer", |c| {
        flip(&mut c["encoding_proof"]["parents"][0]);
    }),
    ("c_x: not the column of node", |c| {
        flip(&mut c["replica_column_proofs"]["c_x"]["column"]["rows"][0]);
    }),
    ("exp_parents: not the column of node", |c| {
        let proof = &mut c["replica_column_proofs"]["exp_parents"][4]["inclusion_proof"];
        flip(&mut proof["data"]["Single"]["path"]["path"][1]["hashes"][5]);
    }),
    ("drg_parents 5: expected node", |c| {
        c["replica_column_proofs"]["drg_parents"][5]["column"]["index"] = json!(1u32 << 31);
    }),
];

#[test]
fn a_challenge_and_its_part_are_named() {
    for (named, edit) in NAMED_PARTS {
        for i in [0, 1] {
            let mut output: Value = serde_json::from_slice(&bundled("porep-c1.json")).unwrap();
            edit(&mut output["vanilla_proofs"]["StackedDrg2KiBV1"][0][i]);
            let problem = problem(&serde_json::to_vec(&output).unwrap());
            let named = format!("partition 0: challenge {i}: {named}");
            assert!(problem.contains(&named), "{named:?} is not in {problem:?}");
        }
    }
    // Each is sound, but the other is asked for.
    let mut output: Value = serde_json::from_slice(&bundled("porep-c1.json")).unwrap();
    let challenges = output["vanilla_proofs"]["StackedDrg2KiBV1"][0].as_array_mut();
    challenges.unwrap().swap(0, 1);
    let problem = problem(&serde_json::to_vec(&output).unwrap());
    let named = "partition 0: challenge 0: comm_d_proofs: expected node";
    assert!(problem.contains(named), "{problem:?}");
}

/// A bincode proof's last path ends `after` bytes before the proof does.
#[test]
fn the_challenge_of_a_bincode_proof_is_named() {
    for (file, part, after) in [
        ("winning-post.json", "challenge 65", 64),
        ("window-post.json", "challenge 9", 64),
        ("snap-deals.json", "challenge 9: proof_r_new", 0),
    ] {
        type EditEnd = fn(&mut [u8], usize);
        let edits: [(&str, EditEnd); 4] = [
            ("expected a position below 8", |b, end| b[end - 8] = 8),
            ("expected node", |b, end| b[end - 8] ^= 1),
            (
                "a sibling in the Merkle path is not a field element",
                |b, end| {
                    b[end - 40..end - 8].copy_from_slice(&MODULUS);
                },
            ),
            ("the Merkle path does not lead", |b, end| b[end - 40] ^= 1),
        ];
        for (named, edit) in edits {
            let mut request: Value = serde_json::from_slice(&bundled(file)).unwrap();
            edit_bytes(&mut request["vanilla_proofs"][0], |bytes| {
                let end = bytes.len() - after;
                edit(bytes, end);
            });
            let problem = problem(&serde_json::to_vec(&request).unwrap());
            let named = format!("{part}: {named}");
            assert!(
                problem.contains(&named),
                "{file}: {named:?} is not in {problem:?}"
            );
        }
    }
}

/// The roots of its trees are as in the replica, and only their hash is another.
#[test]
fn a_comm_r_of_other_trees_is_named() {
    let edits: [(&str, Edit, &str); 3] = [
        ("porep-c1.json", |c| flip(&mut c["comm_r"]), "comm_r is not"),
        (
            "snap-deals.json",
            |r| edit_bytes(&mut r["comm_r_old"], |b| b[0] ^= 1),
            "comm_r_old is not",
        ),
        (
            "snap-deals.json",
            |r| edit_bytes(&mut r["comm_r_new"], |b| b[0] ^= 1),
            "comm_r_new is not",
        ),
    ];
    for (file, edit, named) in edits {
        let mut request: Value = serde_json::from_slice(&bundled(file)).unwrap();
        edit(&mut request);
        let problem = problem(&serde_json::to_vec(&request).unwrap());
        let named = format!("{named} the hash of the roots of its trees");
        assert!(problem.contains(&named), "{named:?} is not in {problem:?}");
    }
}
