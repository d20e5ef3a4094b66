//! Bad requests of PoReps, and bad outputs of their first commit phase.

use serde_json::{Value, json};

use crate::altered::{Case, Edit, MODULUS, bundled, check, check_altered, edit_bytes, encode, run};

/// Alters the wrapper inside a PoRep request.
fn edit_wrapper(request: &mut Value, edit: impl FnOnce(&mut Value)) {
    edit_bytes(&mut request["vanilla_proof"], |bytes| {
        let mut wrapper: Value = serde_json::from_slice(bytes).unwrap();
        edit(&mut wrapper);
        *bytes = serde_json::to_vec(&wrapper).unwrap();
    });
}

/// Alters the C1 output inside a PoRep request.
fn edit_c1(request: &mut Value, edit: impl FnOnce(&mut Value)) {
    edit_wrapper(request, |wrapper| {
        edit_bytes(&mut wrapper["Phase1Out"], |bytes| {
            let mut output: Value = serde_json::from_slice(bytes).unwrap();
            edit(&mut output);
            *bytes = serde_json::to_vec(&output).unwrap();
        });
    });
}

/// The first challenge of a C1 output's first partition.
fn challenge(output: &mut Value) -> &mut Value {
    &mut output["vanilla_proofs"]["StackedDrg2KiBV1"][0][0]
}

/// A PoRep request, and the wrapper inside it.
const POREP: &[Case] = &[
    Case(
        "no proof",
        "porep.json",
        |r| r["vanilla_proof"] = Value::Null,
        "vanilla_proof",
    ),
    Case(
        "empty proof",
        "porep.json",
        |r| r["vanilla_proof"] = json!(""),
        "vanilla_proof",
    ),
    Case(
        "not base64",
        "porep.json",
        |r| r["vanilla_proof"] = json!("@@@@"),
        "vanilla_proof",
    ),
    Case(
        "not text",
        "porep.json",
        |r| r["vanilla_proof"] = json!([1, 2]),
        "vanilla_proof",
    ),
    Case(
        "URL-safe base64",
        "porep.json",
        |r| r["vanilla_proof"] = json!("_-8="),
        "vanilla_proof",
    ),
    Case(
        "not JSON",
        "porep.json",
        |r| r["vanilla_proof"] = encode(b"hello"),
        "vanilla_proof",
    ),
    Case(
        "another version",
        "porep.json",
        |r| r["registered_proof"] = json!(0),
        "registered_proof",
    ),
    Case(
        "non-interactive, and its C1 output is not",
        "porep.json",
        |r| r["registered_proof"] = json!(15),
        "registered_proof",
    ),
    Case(
        "another miner",
        "porep.json",
        |r| r["miner_id"] = json!(1002),
        "vanilla_proof.replica_id",
    ),
    Case(
        "another sector",
        "porep.json",
        |r| r["sector_number"] = json!(1),
        "vanilla_proof.SectorNum",
    ),
    Case(
        "another sector, wrapped alike",
        "porep.json",
        |r| {
            r["sector_number"] = json!(1);
            edit_wrapper(r, |w| w["SectorNum"] = json!(1));
        },
        "vanilla_proof.replica_id",
    ),
    Case(
        "wrapper's base64",
        "porep.json",
        |r| edit_wrapper(r, |w| w["Phase1Out"] = json!("====")),
        "vanilla_proof.Phase1Out",
    ),
    Case(
        "wrapper's content",
        "porep.json",
        |r| edit_wrapper(r, |w| w["Phase1Out"] = encode(b"{}")),
        "vanilla_proof",
    ),
    Case(
        "wrapper's size",
        "porep.json",
        |r| edit_wrapper(r, |w| w["SectorSize"] = json!(8 << 20)),
        "vanilla_proof.SectorSize",
    ),
    Case(
        "wrapper without size",
        "porep.json",
        |r| edit_wrapper(r, |w| w["SectorSize"] = Value::Null),
        "vanilla_proof",
    ),
];

#[test]
fn porep_requests() {
    run(POREP);
}

/// The output of the first commit phase, inside a request and by itself.
const C1_OUTPUTS: &[Case] = &[
    Case(
        "zero comm_r",
        "porep.json",
        |r| edit_c1(r, |c| c["comm_r"] = Value::from(vec![0; 32])),
        "vanilla_proof.comm_r",
    ),
    Case(
        "zero comm_d",
        "porep.json",
        |r| edit_c1(r, |c| c["comm_d"] = Value::from(vec![0; 32])),
        "vanilla_proof.comm_d",
    ),
    Case(
        "comm_r not in the field",
        "porep.json",
        |r| edit_c1(r, |c| c["comm_r"] = json!(MODULUS)),
        "vanilla_proof.comm_r",
    ),
    Case(
        "replica_id not in the field",
        "porep.json",
        |r| edit_c1(r, |c| c["replica_id"] = Value::from(vec![255; 32])),
        "vanilla_proof.replica_id",
    ),
    Case(
        "zero seed",
        "porep.json",
        |r| edit_c1(r, |c| c["seed"] = Value::from(vec![0; 32])),
        "vanilla_proof.seed",
    ),
    Case(
        "another seed",
        "porep.json",
        |r| {
            edit_c1(r, |c| {
                c["seed"][0] = json!(c["seed"][0].as_u64().unwrap() ^ 1)
            })
        },
        "vanilla_proof",
    ),
    Case(
        "another ticket",
        "porep.json",
        |r| edit_c1(r, |c| c["ticket"] = Value::from(vec![7; 32])),
        "vanilla_proof.replica_id",
    ),
    Case(
        "short comm_r",
        "porep.json",
        |r| edit_c1(r, |c| c["comm_r"] = Value::from(vec![1; 31])),
        "vanilla_proof",
    ),
    Case(
        "unknown proof",
        "porep.json",
        |r| edit_c1(r, |c| c["registered_proof"] = json!("StackedDrg4KiBV1")),
        "vanilla_proof",
    ),
    Case(
        "another version",
        "porep-c1.json",
        |c| c["registered_proof"] = json!("StackedDrg2KiBV1"),
        "vanilla_proof",
    ),
    Case(
        "another size",
        "porep-c1.json",
        |c| c["registered_proof"] = json!("StackedDrg8MiBV1_1"),
        "vanilla_proof.vanilla_proofs",
    ),
    Case(
        "non-interactive with one partition of thirteen",
        "porep-c1.json",
        |c| c["registered_proof"] = json!("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep"),
        "vanilla_proof.vanilla_proofs",
    ),
    Case(
        "non-interactive with the challenges of an interactive proof",
        "porep-c1.json",
        |c| {
            c["registered_proof"] = json!("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep");
            let partitions = &mut c["vanilla_proofs"]["StackedDrg2KiBV1"];
            *partitions = Value::from(vec![partitions[0].clone(); 13]);
        },
        "vanilla_proof",
    ),
    Case(
        "another size's proofs",
        "porep-c1.json",
        |c| {
            let proofs = c["vanilla_proofs"]["StackedDrg2KiBV1"].take();
            c["vanilla_proofs"] = json!({ "StackedDrg32GiBV1": proofs });
        },
        "vanilla_proof.vanilla_proofs",
    ),
];

#[test]
fn c1_outputs() {
    run(C1_OUTPUTS);
}

/// The proofs library would panic on each of these.
#[test]
fn c1_outputs_of_another_shape() {
    let edits: &[(&str, Edit)] = &[
        ("no partitions", |c| {
            c["vanilla_proofs"]["StackedDrg2KiBV1"] = json!([])
        }),
        ("an empty partition", |c| {
            c["vanilla_proofs"]["StackedDrg2KiBV1"] = json!([[]])
        }),
        ("a partition too many", |c| {
            let partitions = &mut c["vanilla_proofs"]["StackedDrg2KiBV1"];
            let first = partitions[0].clone();
            partitions.as_array_mut().unwrap().push(first);
        }),
        ("a challenge too few", |c| {
            c["vanilla_proofs"]["StackedDrg2KiBV1"][0]
                .as_array_mut()
                .unwrap()
                .pop();
        }),
        ("no drg_parents", |c| {
            challenge(c)["replica_column_proofs"]["drg_parents"] = json!([]);
        }),
        ("an exp_parent too few", |c| {
            challenge(c)["replica_column_proofs"]["exp_parents"]
                .as_array_mut()
                .unwrap()
                .pop();
        }),
        ("an empty column", |c| {
            challenge(c)["replica_column_proofs"]["c_x"]["column"]["rows"] = json!([]);
        }),
        ("no labels", |c| challenge(c)["labeling_proofs"] = json!([])),
        ("a label without parents", |c| {
            challenge(c)["labeling_proofs"][0]["parents"] = json!([])
        }),
        ("a sibling too many", |c| {
            let path = &mut challenge(c)["comm_r_last_proof"]["data"]["Single"]["path"]["path"];
            let hashes = path[0]["hashes"].as_array_mut().unwrap();
            hashes.push(hashes[0].clone());
        }),
        ("a position out of range", |c| {
            let path = &mut challenge(c)["comm_r_last_proof"]["data"]["Single"]["path"]["path"];
            path[0]["index"] = json!(8);
        }),
        ("a short path", |c| {
            let path = &mut challenge(c)["comm_d_proofs"]["data"]["Single"]["path"]["path"];
            path.as_array_mut().unwrap().pop();
        }),
        ("a proof of a compound tree", |c| {
            let single = challenge(c)["comm_r_last_proof"]["data"]["Single"].take();
            challenge(c)["comm_r_last_proof"]["data"] = json!({ "Sub": {
                "base_proof": single["path"], "sub_proof": single["path"],
                "root": single["root"], "leaf": single["leaf"],
            }});
        }),
    ];
    for (what, edit) in edits {
        check_altered(what, "porep-c1.json", *edit, "vanilla_proof.vanilla_proofs");
    }
    let mut output: Value = serde_json::from_slice(&bundled("porep-c1.json")).unwrap();
    challenge(&mut output)["comm_d_proofs"]["data"]["Single"]["leaf"] = json!(MODULUS);
    check(
        "a node not in the field",
        &serde_json::to_vec(&output).unwrap(),
        "vanilla_proof.vanilla_proofs",
    );
}
