//! Bad requests of any kind: each is an error that names the field and says what to do.

use cuzk_filecoin::Error;
use cuzk_filecoin::request::{PorepC2, SnapDeals, WindowPost, WinningPost};
use serde_json::{Value, json};

use crate::altered::{Case, Edit, bundled, check, edit_bytes, read, run, thrice};

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

#[test]
fn an_error_says_what_is_wrong_and_what_to_do() {
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
