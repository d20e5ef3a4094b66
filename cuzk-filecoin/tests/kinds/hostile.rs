//! Altered requests never panic: they decode, or they are an error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cuzk_filecoin::ProofRequest;
use cuzk_filecoin::decode;
use cuzk_filecoin::request::{PorepC2, SnapDeals, WindowPost, WinningPost};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

fn bundled(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/sector-2kib"));
    std::fs::read(folder.join(name)).unwrap()
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&bundled(name)).unwrap()
}

fn bytes_of(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

/// Decodes what comes of `make`, and says whether it decoded. A request that
/// decodes is one that its circuit takes.
fn survives(case: &str, make: impl FnOnce() -> cuzk_filecoin::Result<ProofRequest>) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let job = decode(&make()?)?;
        job.public_inputs(0)?;
        if job.circuit().kind == cuzk_filecoin::ProofKind::WindowPost {
            job.witness(0)?;
        }
        cuzk_filecoin::Result::Ok(())
    }));
    match outcome {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            assert!(error.is_input(), "{case}: {error}");
            false
        }
        Err(_) => panic!("{case} panicked"),
    }
}

/// Alters bytes as a broken disk or an enemy would.
pub(crate) fn alter(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let at = rng.gen_range(0..bytes.len());
    let end = (at + rng.gen_range(1..64)).min(bytes.len());
    match rng.gen_range(0..6) {
        0 => bytes[at] ^= 1 << rng.gen_range(0..8),
        1 => bytes[at] = rng.r#gen(),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => bytes[at..end].fill(*[0, 0xff, b'9', b'['].get(rng.gen_range(0..4)).unwrap()),
        _ => {
            let copy = bytes[at..end].to_vec();
            let to = rng.gen_range(0..=bytes.len());
            bytes.splice(to..to, copy);
        }
    }
}

#[test]
fn altered_files() {
    let files = [
        "porep.json",
        "porep-c1.json",
        "winning-post.json",
        "window-post.json",
        "snap-deals.json",
    ];
    for name in files {
        let original = bundled(name);
        for seed in 0..150 {
            let mut bytes = original.clone();
            alter(&mut bytes, &mut ChaCha8Rng::seed_from_u64(seed));
            survives(&format!("{name}, seed {seed}"), || {
                ProofRequest::from_json(&bytes)
            });
        }
    }
}

/// Replaces something deep inside a JSON value.
fn alter_json(value: &mut Value, rng: &mut ChaCha8Rng) {
    let descend = rng.gen_range(0..10) > 0;
    match value {
        Value::Array(items) if descend && !items.is_empty() => {
            let index = rng.gen_range(0..items.len());
            alter_json(&mut items[index], rng);
        }
        Value::Object(members) if descend && !members.is_empty() => {
            let index = rng.gen_range(0..members.len());
            alter_json(members.values_mut().nth(index).unwrap(), rng);
        }
        Value::Array(items) => match rng.gen_range(0..4) {
            0 => items.clear(),
            1 => drop(items.pop()),
            2 => items.extend(items.last().cloned()),
            _ => items.insert(0, Value::Null),
        },
        Value::Number(_) => {
            let numbers = [0, 1, 2, 7, 8, 127, 255, 256, u64::from(u32::MAX), u64::MAX];
            *value = Value::from(numbers[rng.gen_range(0..numbers.len())]);
        }
        _ => *value = Value::Null,
    }
}

#[test]
fn altered_c1_outputs() {
    let original = json("porep-c1.json");
    let mut decoded = 0;
    for seed in 0..600 {
        let mut output = original.clone();
        alter_json(&mut output, &mut ChaCha8Rng::seed_from_u64(seed));
        let bytes = serde_json::to_vec(&output).unwrap();
        decoded += usize::from(survives(&format!("seed {seed}"), || {
            PorepC2::new(5, 2048, None, None, &bytes).map(ProofRequest::PorepC2)
        }));
    }
    // An alteration may be none, or of what the statement does not depend on.
    assert!(decoded < 60, "{decoded} of 600 altered outputs decoded");
}

/// Every length and position in the encoding becomes one that is too large or too small.
/// They are the words with small values.
#[test]
fn every_length_in_a_window_post() {
    let request = json("window-post.json");
    let original = bytes_of(&request["vanilla_proofs"][0]);
    let randomness = bytes_of(&request["randomness"]);
    for at in 0..original.len() - 8 {
        let was = u64::from_le_bytes(original[at..at + 8].try_into().unwrap());
        if was > u64::from(u32::MAX) {
            continue;
        }
        for word in [0, 1, 9, u64::MAX].into_iter().filter(|word| *word != was) {
            let mut bytes = original.clone();
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            let decoded = survives(&format!("{word} at {at}"), || {
                WindowPost::new(10, 2048, 1001, &randomness, 0, vec![bytes])
                    .map(ProofRequest::WindowPost)
            });
            assert!(!decoded, "{word} at {at}");
        }
    }
}

#[test]
fn altered_winning_posts() {
    let request = json("winning-post.json");
    let original = bytes_of(&request["vanilla_proofs"][0]);
    let randomness = bytes_of(&request["randomness"]);
    for seed in 0..300 {
        let mut bytes = original.clone();
        alter(&mut bytes, &mut ChaCha8Rng::seed_from_u64(seed));
        let changed = bytes != original;
        let decoded = survives(&format!("seed {seed}"), || {
            WinningPost::new(0, 2048, 1001, &randomness, vec![bytes]).map(ProofRequest::WinningPost)
        });
        assert!(!(changed && decoded), "seed {seed}");
    }
}

#[test]
fn altered_snap_deals() {
    let request = json("snap-deals.json");
    let original = bytes_of(&request["vanilla_proofs"][0]);
    let commitments = ["comm_r_old", "comm_r_new", "comm_d_new"].map(|key| bytes_of(&request[key]));
    let [old, new, data] = &commitments;
    for seed in 0..1500 {
        let mut bytes = original.clone();
        alter(&mut bytes, &mut ChaCha8Rng::seed_from_u64(seed));
        survives(&format!("seed {seed}"), || {
            SnapDeals::new(0, 2048, old, new, data, vec![bytes]).map(ProofRequest::SnapDeals)
        });
    }
}

/// Files that say they hold more than they could.
#[test]
fn repetition_without_end() {
    for (start, middle, end) in [
        ("", "[", ""),
        (
            "{\"vanilla_proofs\":{\"StackedDrg2KiBV1\":[",
            "[],",
            "[]]},\"replica_id\":[]}",
        ),
        ("{\"proof_kind\":1,\"vanilla_proofs\":[", "\"\",", "\"\"]}"),
    ] {
        let bytes = [start, &middle.repeat(1_000_000), end]
            .concat()
            .into_bytes();
        assert!(!survives(start, || ProofRequest::from_json(&bytes)));
    }
}
