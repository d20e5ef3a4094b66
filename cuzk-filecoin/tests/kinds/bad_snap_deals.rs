//! Bad requests of SnapDeals.

use serde_json::{Value, json};

use crate::altered::{Case, Edit, MODULUS, edit_bytes, encode, run};

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
