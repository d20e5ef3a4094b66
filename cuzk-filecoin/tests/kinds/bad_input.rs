//! Bad requests: each is an error that names the field and says what to do.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cuzk_filecoin::request::{PorepC2, SnapDeals, WindowPost, WinningPost};
use cuzk_filecoin::{AggregateRequest, Error, ProofRequest, decode};
use serde_json::{Value, json};

/// The field's modulus, little endian: the least value that is no element.
pub(crate) const MODULUS: [u8; 32] = [
    0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0x02, 0xa4, 0xbd, 0x53,
    0x05, 0xd8, 0xa1, 0x09, 0x08, 0xd8, 0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73,
];

pub(crate) fn bundled(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/sector-2kib"));
    std::fs::read(folder.join(name)).unwrap()
}

/// Reads and decodes, and returns the field at fault.
fn fault(case: &str, bytes: &[u8]) -> String {
    let result = ProofRequest::from_json(bytes).and_then(|request| decode(&request).map(|_| ()));
    match result {
        Ok(()) => "none".to_owned(),
        Err(Error::InvalidRequest {
            field,
            problem,
            advice,
        }) => {
            assert!(!problem.is_empty() && !advice.is_empty(), "{case}");
            field
        }
        Err(error) => format!("another error: {error}"),
    }
}

/// Reads a bundled request with something altered.
fn read(file: &str, edit: Edit) -> Result<ProofRequest, Error> {
    let mut request: Value = serde_json::from_slice(&bundled(file)).unwrap();
    edit(&mut request);
    ProofRequest::from_json(&serde_json::to_vec(&request).unwrap())
}

fn check(case: &str, bytes: &[u8], field: &str) {
    assert_eq!(fault(case, bytes), field, "{case}");
}

pub(crate) type Edit = fn(&mut Value);

/// A bundled request with something altered, and the field at fault.
struct Case(&'static str, &'static str, Edit, &'static str);

fn run(cases: &[Case]) {
    for Case(what, file, edit, field) in cases {
        let mut request: Value = serde_json::from_slice(&bundled(file)).unwrap();
        edit(&mut request);
        check(
            &format!("{file}: {what}"),
            &serde_json::to_vec(&request).unwrap(),
            field,
        );
    }
}

fn encode(bytes: &[u8]) -> Value {
    Value::from(STANDARD.encode(bytes))
}

fn bytes_of(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

/// Alters the bytes behind a base64 string.
pub(crate) fn edit_bytes(value: &mut Value, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = bytes_of(value);
    edit(&mut bytes);
    *value = encode(&bytes);
}

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

#[test]
fn bytes_that_are_no_request() {
    for (case, bytes) in [
        ("empty", &b""[..]),
        ("blank", b" \n"),
        ("not JSON", b"hello"),
        ("a number", b"17"),
        ("an array", b"[]"),
        ("a string", b"\"x\""),
        ("not UTF-8", b"{\"proof_kind\": \"\xff\"}"),
        ("zeros", &[0; 64]),
        (
            "twice the same key",
            b"{\"proof_kind\": 1, \"proof_kind\": 1}",
        ),
    ] {
        check(case, bytes, "request");
    }
    let twice = bundled("winning-post.json");
    let open = twice.trim_ascii_end().strip_suffix(b"}").unwrap();
    let twice = [open, b", \"miner_id\": 5}"].concat();
    check("twice a key of a whole request", &twice, "request");
    check("an empty object", b"{}", "proof_kind");
    check(
        "only a kind",
        b"{\"proof_kind\": \"WINNING_POST\"}",
        "registered_proof",
    );
    let deep = [vec![b'{'], b"\"a\":".to_vec(), vec![b'['; 100_000]].concat();
    check("deep nesting", &deep, "request");
}

#[test]
fn truncated_files() {
    for file in [
        "porep.json",
        "winning-post.json",
        "window-post.json",
        "snap-deals.json",
    ] {
        let bytes = bundled(file);
        for end in [1, bytes.len() / 3, bytes.len() / 2, bytes.len() - 3] {
            check(&format!("{file} up to {end}"), &bytes[..end], "request");
        }
    }
    let bytes = bundled("porep-c1.json");
    check("C1 output", &bytes[..bytes.len() / 2], "request");
}

/// Fields that a request of any kind has.
const FIELDS: &[Case] = &[
    Case(
        "no kind",
        "porep.json",
        |r| r["proof_kind"] = Value::Null,
        "proof_kind",
    ),
    Case(
        "unknown kind",
        "porep.json",
        |r| r["proof_kind"] = json!("POREP"),
        "proof_kind",
    ),
    Case(
        "kind 0",
        "porep.json",
        |r| r["proof_kind"] = json!(0),
        "proof_kind",
    ),
    Case(
        "kind 5",
        "porep.json",
        |r| r["proof_kind"] = json!(5),
        "proof_kind",
    ),
    Case(
        "unknown key",
        "porep.json",
        |r| r["vanila_proof"] = json!(""),
        "vanila_proof",
    ),
    Case(
        "other's key",
        "porep.json",
        |r| r["randomness"] = json!(""),
        "randomness",
    ),
    Case(
        "wrong kind",
        "winning-post.json",
        |r| r["proof_kind"] = json!("WINDOW_POST_PARTITION"),
        "registered_proof",
    ),
    Case(
        "wrong kind",
        "window-post.json",
        |r| r["proof_kind"] = json!("WINNING_POST"),
        "registered_proof",
    ),
    Case(
        "wrong kind",
        "snap-deals.json",
        |r| r["proof_kind"] = json!("POREP_SEAL_COMMIT"),
        "comm_d_new",
    ),
    Case(
        "no registered proof",
        "porep.json",
        |r| r["registered_proof"] = Value::Null,
        "registered_proof",
    ),
    Case(
        "a negative registered proof",
        "porep.json",
        |r| r["registered_proof"] = json!(-1),
        "registered_proof",
    ),
    Case(
        "unknown registered proof",
        "porep.json",
        |r| r["registered_proof"] = json!(20),
        "registered_proof",
    ),
    Case(
        "unknown registered proof",
        "window-post.json",
        |r| r["registered_proof"] = json!(15),
        "registered_proof",
    ),
    Case(
        "unknown registered proof",
        "snap-deals.json",
        |r| r["registered_proof"] = json!(u64::MAX),
        "registered_proof",
    ),
    Case(
        "another's size",
        "porep.json",
        |r| r["sector_size"] = json!(8 << 20),
        "sector_size",
    ),
    Case(
        "odd size",
        "snap-deals.json",
        |r| r["sector_size"] = json!(2047),
        "sector_size",
    ),
    Case(
        "size as text",
        "porep.json",
        |r| r["sector_size"] = json!("2KiB"),
        "sector_size",
    ),
    Case(
        "miner as text",
        "porep.json",
        |r| r["miner_id"] = json!("f01001"),
        "miner_id",
    ),
    Case(
        "no miner",
        "window-post.json",
        |r| r["miner_id"] = Value::Null,
        "miner_id",
    ),
];

#[test]
fn fields_of_any_request() {
    run(FIELDS);
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
        let mut output: Value = serde_json::from_slice(&bundled("porep-c1.json")).unwrap();
        edit(&mut output);
        check(
            what,
            &serde_json::to_vec(&output).unwrap(),
            "vanilla_proof.vanilla_proofs",
        );
    }
    let mut output: Value = serde_json::from_slice(&bundled("porep-c1.json")).unwrap();
    challenge(&mut output)["comm_d_proofs"]["data"]["Single"]["leaf"] = json!(MODULUS);
    check(
        "a node not in the field",
        &serde_json::to_vec(&output).unwrap(),
        "vanilla_proof.vanilla_proofs",
    );
}

/// A request of either PoSt with something altered, and the field at fault.
const EITHER_POST: &[(&str, Edit, &str)] = &[
    (
        "no randomness",
        |r| r["randomness"] = Value::Null,
        "randomness",
    ),
    (
        "short randomness",
        |r| r["randomness"] = encode(&[1; 31]),
        "randomness",
    ),
    (
        "randomness not in the field",
        |r| r["randomness"] = encode(&MODULUS),
        "randomness",
    ),
    (
        "another randomness",
        |r| r["randomness"] = encode(&[1; 32]),
        "vanilla_proofs",
    ),
    (
        "no proofs",
        |r| r["vanilla_proofs"] = Value::Null,
        "vanilla_proofs",
    ),
    (
        "no list",
        |r| r["vanilla_proofs"] = json!("AAAA"),
        "vanilla_proofs",
    ),
    (
        "an empty list",
        |r| {
            r["vanilla_proofs"] = json!([]);
            r["public_sectors"] = json!([]);
        },
        "vanilla_proofs",
    ),
    (
        "too many proofs",
        |r| {
            let proof = r["vanilla_proofs"][0].clone();
            r["vanilla_proofs"] = json!([proof, proof, proof]);
        },
        "vanilla_proofs",
    ),
    (
        "an empty proof",
        |r| r["vanilla_proofs"][0] = json!(""),
        "vanilla_proofs[0]",
    ),
    (
        "not base64",
        |r| r["vanilla_proofs"][0] = json!("AAA"),
        "vanilla_proofs[0]",
    ),
    (
        "a truncated proof",
        |r| edit_bytes(&mut r["vanilla_proofs"][0], |b| b.truncate(b.len() - 1)),
        "vanilla_proofs[0]",
    ),
    (
        "a byte too many",
        |r| edit_bytes(&mut r["vanilla_proofs"][0], |b| b.push(0)),
        "vanilla_proofs[0]",
    ),
    (
        "a hostile length",
        |r| edit_bytes(&mut r["vanilla_proofs"][0], |b| b[40..48].fill(0xff)),
        "vanilla_proofs[0]",
    ),
    (
        "a node not in the field",
        |r| {
            edit_bytes(&mut r["vanilla_proofs"][0], |b| {
                let end = b.len();
                b[end - 32..].copy_from_slice(&MODULUS);
            });
        },
        "vanilla_proofs[0]",
    ),
    (
        "another sector",
        |r| {
            r["public_sectors"] = Value::Null;
            edit_bytes(&mut r["vanilla_proofs"][0], |b| b[0] ^= 1);
        },
        "vanilla_proofs",
    ),
    (
        "another comm_r",
        |r| {
            r["public_sectors"] = Value::Null;
            edit_bytes(&mut r["vanilla_proofs"][0], |b| b[8] ^= 1);
        },
        "vanilla_proofs",
    ),
    (
        "another public sector",
        |r| r["public_sectors"][0]["sector_number"] = json!(1),
        "public_sectors[0]",
    ),
    (
        "another public comm_r",
        |r| edit_bytes(&mut r["public_sectors"][0]["comm_r"], |b| b[0] ^= 1),
        "public_sectors[0]",
    ),
    (
        "a zero public comm_r",
        |r| r["public_sectors"][0]["comm_r"] = encode(&[0; 32]),
        "public_sectors[0].comm_r",
    ),
    (
        "no public sectors",
        |r| r["public_sectors"] = json!([]),
        "public_sectors",
    ),
    (
        "a public sector of nothing",
        |r| r["public_sectors"] = json!([{}]),
        "public_sectors[0].sector_number",
    ),
];

/// A request of one PoSt.
const ONE_POST: &[Case] = &[
    Case(
        "a second partition",
        "winning-post.json",
        |r| r["partition_index"] = json!(1),
        "partition_index",
    ),
    Case(
        "a huge partition",
        "window-post.json",
        |r| r["partition_index"] = json!(1u64 << 32),
        "partition_index",
    ),
    Case(
        "a sector twice",
        "window-post.json",
        |r| {
            r["public_sectors"] = Value::Null;
            let proof = r["vanilla_proofs"][0].clone();
            r["vanilla_proofs"] = json!([proof, proof]);
        },
        "vanilla_proofs[1]",
    ),
    Case(
        "a WinningPoSt's proof",
        "window-post.json",
        |r| {
            let other: Value = serde_json::from_slice(&bundled("winning-post.json")).unwrap();
            r["vanilla_proofs"] = other["vanilla_proofs"].clone();
        },
        "vanilla_proofs[0]",
    ),
];

#[test]
fn post_requests() {
    for file in ["winning-post.json", "window-post.json"] {
        for (what, edit, field) in EITHER_POST {
            let mut request: Value = serde_json::from_slice(&bundled(file)).unwrap();
            edit(&mut request);
            check(
                &format!("{file}: {what}"),
                &serde_json::to_vec(&request).unwrap(),
                field,
            );
        }
    }
    run(ONE_POST);
}

#[test]
fn snap_deals_requests() {
    let fields: [(&'static str, Edit, Edit, Edit); 3] = [
        (
            "comm_r_old",
            |r| r["comm_r_old"] = encode(&[0; 32]),
            |r| r["comm_r_old"] = encode(&MODULUS),
            |r| r["comm_r_old"] = encode(&[1; 33]),
        ),
        (
            "comm_r_new",
            |r| r["comm_r_new"] = encode(&[0; 32]),
            |r| r["comm_r_new"] = encode(&MODULUS),
            |r| r["comm_r_new"] = encode(&[]),
        ),
        (
            "comm_d_new",
            |r| r["comm_d_new"] = encode(&[0; 32]),
            |r| r["comm_d_new"] = encode(&[255; 32]),
            |r| r["comm_d_new"] = Value::Null,
        ),
    ];
    for (field, zero, outside, length) in fields {
        run(&[
            Case("zero", "snap-deals.json", zero, field),
            Case("not in the field", "snap-deals.json", outside, field),
            Case("wrong length", "snap-deals.json", length, field),
        ]);
    }
    run(&[
        Case(
            "too many partitions",
            "snap-deals.json",
            |r| {
                let proof = r["vanilla_proofs"][0].clone();
                r["vanilla_proofs"] = json!([proof, proof]);
            },
            "vanilla_proofs",
        ),
        Case(
            "another comm_r_new",
            "snap-deals.json",
            |r| edit_bytes(&mut r["comm_r_new"], |b| b[0] ^= 1),
            "vanilla_proofs[0]",
        ),
        Case(
            "a truncated proof",
            "snap-deals.json",
            |r| edit_bytes(&mut r["vanilla_proofs"][0], |b| b.truncate(100)),
            "vanilla_proofs[0]",
        ),
        Case(
            "an altered comm_c",
            "snap-deals.json",
            |r| edit_bytes(&mut r["vanilla_proofs"][0], |b| b[0] ^= 1),
            "vanilla_proofs[0]",
        ),
        Case(
            "an apex leaf too few",
            "snap-deals.json",
            |r| {
                edit_bytes(&mut r["vanilla_proofs"][0], |b| {
                    b[32] = 7;
                    b.drain(40..72);
                });
            },
            "vanilla_proofs[0]",
        ),
    ]);
}

#[test]
fn an_error_says_what_is_wrong_and_what_to_do() {
    let thrice = |request: &mut Value| {
        let proof = request["vanilla_proofs"][0].clone();
        request["vanilla_proofs"] = json!([proof, proof, proof]);
    };
    let rows: [(&str, Edit, &str); 8] = [
        (
            "winning-post.json",
            |r| r["miner_id"] = json!("f01000"),
            "expected an unsigned 64-bit integer, got \"f01000\"",
        ),
        (
            "winning-post.json",
            |r| r["miner_id"] = json!("1234567890".repeat(9)),
            "got \"123456789012345678901234567890123456789…",
        ),
        (
            "winning-post.json",
            thrice,
            "expected 1 for this registered proof, got 3",
        ),
        (
            "window-post.json",
            thrice,
            "expected 1 to 2 for this registered proof, got 3",
        ),
        (
            "porep.json",
            |r| r["vanila_proof"] = json!(""),
            "did you mean vanilla_proof?",
        ),
        (
            "porep.json",
            |r| r["zzz"] = json!(""),
            "its own fields are vanilla_proof",
        ),
        (
            "window-post.json",
            |r| edit_bytes(&mut r["public_sectors"][0]["comm_r"], |b| b[0] ^= 1),
            "its comm_r is not that of vanilla_proofs[0]",
        ),
        (
            "window-post.json",
            |r| r["public_sectors"][0]["sector_number"] = json!(1),
            "the sector of vanilla_proofs[0], got 1",
        ),
    ];
    for (file, edit, expected) in rows {
        let said = read(file, edit).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn an_aggregate_is_of_one_miner_and_keeps_its_proofs() {
    let request = |edit| read("porep.json", edit).unwrap();
    let proof = vec![7; 192];
    let mut aggregate = AggregateRequest::of(&request(|_| ()), proof.clone()).unwrap();
    let other = request(|r| r["miner_id"] = json!(1002));
    let refused = aggregate.push(&other, proof.clone()).unwrap_err();
    assert!(refused.to_string().starts_with("registered_proof: "));
    let mut list: Value = serde_json::from_slice(&aggregate.to_json()).unwrap();
    assert_eq!(list["sectors"][0]["proof"], encode(&proof));
    for version in [0, 1] {
        list["aggregation"] = json!(version);
        let read = AggregateRequest::from_json(&serde_json::to_vec(&list).unwrap());
        assert_eq!(read.unwrap().is_second_version(), version == 1);
    }
}

/// A request without a file gets the same checks.
#[test]
fn requests_made_of_fields() {
    let field = |result: Result<(), Error>| match result {
        Err(Error::InvalidRequest { field, .. }) => field,
        other => format!("{other:?}"),
    };
    let bytes = || vec![vec![1u8]];
    let winning = |p, s, r: &[u8], v| field(WinningPost::new(p, s, 1, r, v).map(drop));
    assert_eq!(winning(5, 0, &[0; 32], bytes()), "registered_proof");
    assert_eq!(winning(0, 1, &[0; 32], bytes()), "sector_size");
    assert_eq!(winning(0, 2048, &[], bytes()), "randomness");
    assert_eq!(winning(3, 32 << 30, &[0; 32], vec![]), "vanilla_proofs");
    let window = |p, r: &[u8], v| field(WindowPost::new(p, 0, 1, r, u32::MAX, v).map(drop));
    assert_eq!(window(4, &[0; 32], bytes()), "registered_proof");
    assert_eq!(
        window(13, &[0; 32], vec![vec![]; 2349]),
        "vanilla_proofs[0]"
    );
    assert_eq!(window(13, &[0; 32], vec![vec![1]; 2350]), "vanilla_proofs");
    let snap = |p, c: &[u8], v| field(SnapDeals::new(p, 0, c, c, c, v).map(drop));
    assert_eq!(snap(5, &[1; 32], bytes()), "registered_proof");
    assert_eq!(snap(3, &[1; 32], vec![vec![1]; 15]), "vanilla_proofs");
    assert_eq!(snap(3, &[0; 32], vec![vec![1]; 16]), "comm_r_old");
    let porep = |p, s, v: &[u8]| field(PorepC2::new(p, s, None, None, v).map(drop));
    assert_eq!(porep(20, 0, b"{}"), "registered_proof");
    assert_eq!(porep(5, 1, b"{}"), "sector_size");
    assert_eq!(porep(5, 0, b""), "vanilla_proof");
}
