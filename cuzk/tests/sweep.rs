//! `cuzk sweep`: its rows, its state, its pictures and its refusals.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::path::Path;
use std::process::{Command, Output};

use cuzk_bounded::BoundedCommand;
use serde_json::Value;

fn sweep(arguments: &[&str]) -> Output {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters");
    std::fs::create_dir_all(&cache).unwrap();
    Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args([&["sweep"], arguments].concat())
        .env("FIL_PROOFS_PARAMETER_CACHE", cache)
        .output_bounded()
        .unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const SMALL: [&str; 12] = [
    "--kind",
    "window-post",
    "--sector-size",
    "2KiB",
    "--c",
    "2",
    "--j",
    "1,2",
    "--rounds",
    "1",
    "--pipeline",
    "ours,seed",
];

#[test]
fn every_setting_has_a_row_and_a_state_is_not_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let (state, pictures) = (folder.path().join("state"), folder.path().join("svg"));
    let kept = ["--state", state.to_str().unwrap()];
    let drawn = ["--svg", pictures.to_str().unwrap()];
    let arms = ["--arms", "none,1+2+3", "--json"];
    let first = rows(&sweep(&[&SMALL[..], &arms, &kept, &drawn].concat()));
    let names: Vec<_> = first
        .iter()
        .map(|row| {
            format!(
                "{} {} {} {}",
                row["pipeline"], row["c"], row["j"], row["arm"]
            )
        })
        .collect();
    let mut expected = Vec::new();
    for pipeline in ["ours", "seed"] {
        for j in [1, 2] {
            for arm in ["none", "1+2+3"] {
                expected.push(format!("\"{pipeline}\" 2 {j} \"{arm}\""));
            }
        }
    }
    assert_eq!(names, expected);
    for row in &first {
        assert!(row["machine"]["caches"].is_array(), "{row}");
        for figure in [
            "s_per_proof",
            "mean_prove_s",
            "p95_prove_s",
            "device_s_per_partition",
        ] {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{figure}: {row}");
        }
        let utilisation = row["utilisation"].as_f64().unwrap();
        assert!(utilisation > 0.0 && utilisation <= 1.0, "{row}");
        assert!(row["idle_s"].as_f64().unwrap() >= 0.0, "{row}");
        assert!(row["stages"]["evaluate"]["inflation"].is_f64(), "{row}");
        // One round says nothing.
        assert!(row["faster"].is_null() && row["noise"].is_null(), "{row}");
        for counted in [
            "tlb_shootdowns",
            "dtlb_misses",
            "bytes_per_s",
            "huge_page_share",
        ] {
            assert!(row[counted].is_null() || row[counted].is_f64(), "{row}");
        }
    }
    #[cfg(target_os = "linux")]
    assert!(first[0]["peak_rss_bytes"].as_u64().unwrap() > 1 << 20);
    for picture in ["throughput.svg", "stages.svg", "waterfall.svg"] {
        let svg = std::fs::read_to_string(pictures.join(picture)).unwrap();
        assert!(svg.starts_with("<svg") || svg.contains("<svg"), "{picture}");
    }
    let again = rows(&sweep(&[&SMALL[..], &arms, &kept].concat()));
    assert_eq!(again, first);
    // Other arms go on with the same state; another kind does not.
    let more = rows(&sweep(
        &[&SMALL[..], &["--arms", "none", "--json"], &kept].concat(),
    ));
    assert_eq!(more[0], first[0]);
    let other = sweep(
        &[
            &["--kind", "winning-post", "--c", "1", "--j", "1"],
            &kept[..],
        ]
        .concat(),
    );
    refused(&other, "another sweep");
    let table = sweep(&[&SMALL[..], &arms[..2], &kept].concat());
    let text = String::from_utf8(table.stdout).unwrap();
    assert!(text.contains("s/proof") && text.contains("1+2+3"), "{text}");
}

/// The schedule of a device without the device: two workers, and the MSM in G2 after the
/// region.
#[test]
fn a_double_waits_as_long_as_it_is_told() {
    let double = ["--double", "40,10", "--arms", "1+2+3", "--pipeline", "seed"];
    let load = [
        "--kind",
        "window-post",
        "--c",
        "3",
        "--j",
        "2",
        "--rounds",
        "1",
        "--json",
    ];
    let rows = rows(&sweep(&[&double[..], &load].concat()));
    assert_eq!(rows.len(), 1);
    assert!(rows[0]["device_s_per_partition"].as_f64().unwrap() >= 0.04);
    assert!(rows[0]["stages"]["b_g2"]["s"].as_f64().unwrap() >= 0.01);
}

/// Proofs of several partitions, each of which the engine verifies.
#[test]
fn a_proof_has_as_many_partitions_as_it_is_told() {
    let load = ["--kind", "window-post", "--c", "1", "--j", "1"];
    let rounds = ["--rounds", "1", "--arms", "configured", "--json"];
    let of = |more: &[&str]| rows(&sweep(&[&load[..], &rounds, more].concat())).remove(0);
    let four = of(&["--partitions", "4", "--double", "50,0"]);
    // The regions of one device do not overlap.
    assert!(four["s_per_proof"].as_f64().unwrap() >= 0.2, "{four}");
    assert!(of(&["--partitions", "2"])["s_per_proof"].is_f64());
}

fn refused(output: &Output, message: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(message), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn bad_arguments_are_refused_with_what_is_expected() {
    let cases: [(&[&str], &str); 10] = [
        (&["--double", "1800"], "1800,500"),
        (&["--arms", "4"], "some of 1, 2 and 3"),
        (&["--arms", "1+1"], "each once"),
        (&["--pipeline", "theirs"], "`seed` or `ours`"),
        (&["--c", "0"], "from 1 to 1000"),
        (&["--partitions", "0"], "from 1 to 100"),
        (&["--j", "many"], "from 1 to 1000"),
        (&["--gpu-threads", "0"], "from 1 to 4096"),
        (&["--sector-size", "32GiB"], "--request"),
        (
            &["--request", "/nowhere/request.json"],
            "/nowhere/request.json",
        ),
    ];
    for (arguments, message) in cases {
        refused(&sweep(arguments), message);
    }
    let request =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/sector-2kib/window-post.json");
    let request = ["--kind", "porep", "--request", request.to_str().unwrap()];
    refused(&sweep(&request), "the sweep of");
}
