//! Bad requests of PoSts.

use serde_json::{Value, json};

use crate::altered::{
    Case, Edit, MODULUS, bundled, check_altered, edit_bytes, encode, run, thrice,
};

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
    ("too many proofs", thrice, "vanilla_proofs"),
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
            check_altered(what, file, *edit, field);
        }
    }
    run(ONE_POST);
}
