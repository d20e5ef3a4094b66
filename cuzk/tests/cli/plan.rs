//! `cuzk plan`: its contract with programs, and bad descriptions.

use std::path::{Path, PathBuf};

use cuzk_kernels::Isa;
use serde_json::{Deserializer, Value};

use super::{cuzk, fails, json, text};

fn machine(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs/machines");
    folder.join(name)
}

/// Each published point is an object with the four keys. At most four are calibrated on,
/// and the others are within 5 %.
#[test]
fn the_seeds_points_are_objects_of_their_own() {
    let output = cuzk(&["plan", "--check-seed", "--json"]);
    assert!(output.status.success());
    let points: Vec<Value> = Deserializer::from_slice(&output.stdout)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let names: Vec<_> = points
        .iter()
        .map(|p| p["point"].as_str().unwrap())
        .collect();
    for name in [
        "c=5",
        "c=10",
        "c=15",
        "c=20",
        "isolation",
        "intervention 1",
        "interventions 1+2",
        "interventions 1+2+3",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    let is_calibrated = |point: &&Value| point["calibrated_on"].as_bool().unwrap();
    assert!(points.iter().filter(is_calibrated).count() <= 4);
    for point in &points {
        let [published_s, model_s] =
            ["published_s", "model_s"].map(|key| point[key].as_f64().unwrap());
        assert!((model_s / published_s - 1.0).abs() <= 0.05, "{point}");
    }
}

/// A plan without a load has the capacities, the recommendation, the bound and what was
/// only assumed.
#[test]
fn a_plan_is_one_object() {
    let two_cores = machine("two-cores-24gib.toml");
    let plan = json(&["plan", "--machine", text(&two_cores)]);
    assert!(plan["machine"].as_str().unwrap().contains("2 cores"));
    for capacity in plan["capacity"].as_array().unwrap() {
        assert!(capacity["proofs_per_day"].as_f64().unwrap() > 0.0);
        assert!(capacity["s_per_proof"].as_f64().unwrap() > 0.0);
    }
    assert!(plan["recommended"]["partition_workers"].is_u64());
    assert!(plan["bound_by"].is_string());
    assert!(!plan["more"].as_array().unwrap().is_empty());
    let assumed = plan["assumed"].as_array().unwrap();
    assert!(assumed.contains(&"memory.bandwidth_gb_per_s".into()));
    assert!(plan["load"].is_null());
}

/// A value, a key and a file that are wrong. cuzk-plan's own tests have a table of the others.
#[test]
fn a_bad_description_names_its_file_and_key_and_prints_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.toml");
    let plan = || cuzk(&["plan", "--machine", text(&bad)]);
    fails(2, "bad.toml", &plan());

    let good = std::fs::read_to_string(machine("two-cores-24gib.toml")).unwrap();
    for (line, other, named) in [
        (
            "hardware_threads = 2",
            "hardware_threads = 0",
            "cpu.hardware_threads",
        ),
        ("total_gib = 24", "total_gb = 24", "total_gb"),
        ("[cpu]", "[cpu", "bad.toml"),
    ] {
        assert!(good.contains(line));
        std::fs::write(&bad, good.replacen(line, other, 1)).unwrap();
        let output = plan();
        fails(2, named, &output);
        fails(2, "bad.toml", &output);
    }
    std::fs::write(&bad, [0xff, 0xfe]).unwrap();
    fails(2, "UTF-8", &plan());

    let two_cores = machine("two-cores-24gib.toml");
    std::fs::write(&bad, "name = \"a load\"\n").unwrap();
    let load = ["plan", "--machine", text(&two_cores), "--load", text(&bad)];
    fails(2, "bad.toml", &cuzk(&load));
}

#[test]
fn a_plan_needs_a_machine_or_the_seed() {
    fails(2, "--machine", &cuzk(&["plan"]));
    let both = ["plan", "--check-seed", "--machine", "x.toml"];
    fails(2, "cannot be used with", &cuzk(&both));
    fails(2, "--machine", &cuzk(&["plan", "--load", "x.toml"]));
}

/// Writes a description of two cores whose costs are of these instructions.
fn two_cores_with(folder: &Path, isa: &str) -> PathBuf {
    let text = std::fs::read_to_string(machine("two-cores-24gib.toml")).unwrap();
    assert!(text.contains("isa = \"ifma\""));
    let path = folder.join(format!("{isa}.toml"));
    let line = format!("isa = \"{isa}\"");
    std::fs::write(&path, text.replacen("isa = \"ifma\"", &line, 1)).unwrap();
    path
}

/// A plan says of which instructions the costs are, and a check compares them with an engine
/// that uses the same only.
#[test]
fn costs_are_of_the_instructions_that_the_description_names() {
    let folder = tempfile::tempdir().unwrap();
    for isa in ["ifma", "avx2", "scalar", "portable"] {
        let described = two_cores_with(folder.path(), isa);
        let plan = ["plan", "--machine", text(&described)];
        assert_eq!(json(&plan)["isa"], isa);
        let said = String::from_utf8(cuzk(&plan).stdout).unwrap();
        let line = format!("costs of the instructions: {isa}\n");
        assert!(said.contains(&line), "{said}");
        if isa != Isa::best().name() {
            let check = ["plan", "check", "--machine", text(&described)];
            let refused = cuzk(&check);
            fails(2, "cpu.isa", &refused);
            fails(2, Isa::best().name(), &refused);
            fails(2, text(&described), &refused);
        }
    }
}

/// A check proves for real, and prints what the model says of as many proofs in flight.
#[test]
fn a_check_has_a_prediction_beside_each_measurement() {
    let folder = tempfile::tempdir().unwrap();
    let two_cores = two_cores_with(folder.path(), Isa::best().name());
    let check = ["plan", "check", "--machine", text(&two_cores), "--json"];
    let few = [
        "--kind",
        "window-post",
        "--c",
        "2",
        "--j",
        "1,2",
        "--rounds",
        "1",
    ];
    let output = cuzk(&[&check[..], &few[..]].concat());
    assert!(output.status.success(), "{output:?}");
    // Its jobs have no lines in the log.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("the job "), "{said}");
    let rows = Deserializer::from_slice(&output.stdout).into_iter();
    let rows: Vec<Value> = rows.map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    for (row, j) in rows.iter().zip([1, 2]) {
        assert_eq!(row["kind"], "window-post");
        assert_eq!(row["j"], j);
        assert!(row["machine"]["caches"].is_array(), "{row}");
        let [measured_s, model_s, difference] =
            ["measured_s", "model_s", "difference"].map(|key| row[key].as_f64().unwrap());
        assert!(measured_s > 0.0 && model_s > 0.0, "{row}");
        assert!(
            (model_s / measured_s - 1.0 - difference).abs() < 1e-6,
            "{row}"
        );
    }
    let missing = ["plan", "check", "--machine", "missing.toml"];
    fails(2, "missing.toml", &cuzk(&missing));
}
