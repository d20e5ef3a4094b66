//! The command line as a user runs it: what it prints, where, and its exit
//! codes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

#[path = "cli/aggregate.rs"]
mod aggregate;
#[cfg(target_os = "linux")]
#[path = "cli/codes.rs"]
mod codes;
mod common;
#[cfg(target_os = "linux")]
#[path = "cli/doctor.rs"]
mod doctor;
#[cfg(target_os = "linux")]
#[path = "cli/false_row.rs"]
mod false_row;
#[cfg(target_os = "linux")]
#[path = "cli/messages.rs"]
mod messages;
#[cfg(target_os = "linux")]
#[path = "cli/operator.rs"]
mod operator;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/refusals.rs"]
mod refusals;
#[cfg(target_os = "linux")]
#[path = "cli/results.rs"]
mod results;
#[path = "cli/stages.rs"]
mod stages;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use common::{cuzk_in, data, generate, param_cache, text};

fn cuzk(arguments: &[&str]) -> Output {
    cuzk_in(&param_cache(), arguments)
}

/// The one JSON object that a command that succeeded printed.
fn json(arguments: &[&str]) -> Value {
    let output = cuzk(&[arguments, &["--json"]].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A command that must fail with `code`, printing nothing but an error that
/// contains `message`.
fn fails(code: i32, message: &str, output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(message), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(output.stdout.is_empty());
}

/// Makes the parameters if need be, proves, and has both verifiers look at the
/// proof; then alters the proof and has them look again.
fn prove_and_verify(kind: &str) {
    let directory = tempfile::tempdir().unwrap();
    let proof = directory.path().join("proof");
    let request = data(&format!("{kind}.json"));
    generate(kind);

    let report = json(&["prove", "--request", text(&request), "--out", text(&proof)]);
    assert_eq!(report["verified"], true);
    assert_eq!(report["kind"], kind);
    assert_eq!(report["proof_bytes"], 192);
    let stages: Vec<_> = report["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| span["stage"].as_str().unwrap())
        .collect();
    for stage in ["decode", "witness", "evaluate", "device", "b_g2", "verify"] {
        assert!(stages.contains(&stage), "{stage} is not in {stages:?}");
    }

    let verify = [
        "verify",
        "--reference",
        "--request",
        text(&request),
        "--proof",
        text(&proof),
    ];
    assert_eq!(json(&verify)["valid"], true);

    // π_A and π_C, both points of G1, change places: another proof that decodes.
    // Single bytes could be equal by chance, since a proof is randomized.
    let mut altered = std::fs::read(&proof).unwrap();
    let (a, c) = altered.split_at_mut(144);
    a[..48].swap_with_slice(c);
    std::fs::write(&proof, altered).unwrap();
    let output = cuzk(&verify);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("not valid: "));
}

#[test]
fn porep() {
    prove_and_verify("porep");
}

#[test]
fn winning_post() {
    prove_and_verify("winning-post");
}

#[test]
fn window_post() {
    prove_and_verify("window-post");
}

#[test]
fn snap_deals() {
    prove_and_verify("snap-deals");
}

#[test]
fn several_requests_are_proved_side_by_side_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let generate = ["params", "generate", "--kind", "window-post"];
    json(&[&generate[..], &["--sector-size", "2KiB"]].concat());
    let request = data("window-post.json");
    let (first, second) = (file("first"), file("second"));
    let prove = [
        "prove",
        "--json",
        "--request",
        text(&request),
        "--out",
        &first,
        "--request",
        text(&request),
        "--out",
        &second,
    ];
    for timeline in [file("run.svg"), file("run.json")] {
        let output = cuzk(&[&prove[..], &["--timeline", &timeline]].concat());
        assert!(output.status.success());
        let reports = String::from_utf8(output.stdout).unwrap();
        let jobs: Vec<_> = reports
            .lines()
            .map(|report| serde_json::from_str::<Value>(report).unwrap())
            .map(|report| report["timeline"][0]["job"].as_u64().unwrap())
            .collect();
        assert_eq!(jobs, [0, 1]);
    }
    let [first, second] = [first, second].map(|proof| std::fs::read(proof).unwrap());
    assert_eq!(first.len(), 192);
    assert_ne!(first, second, "each proof has randomness of its own");

    let svg = std::fs::read_to_string(file("run.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("2 job(s), 2 partition(s)"));
    let trace: Value = serde_json::from_slice(&std::fs::read(file("run.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let verified = events.iter().filter(|event| event["name"] == "verify");
    assert_eq!(verified.count(), 2);
}

#[test]
fn each_request_needs_a_place_for_its_proof_and_a_timeline_a_form() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("proof");
    let request = data("window-post.json");
    let prove = ["prove", "--request", text(&request), "--out", text(&out)];
    let output = cuzk(&[&prove[..], &["--out", text(&out)]].concat());
    fails(2, "--out 2", &output);
    let output = cuzk(&[&prove[..], &["--id", "a", "--id", "b"]].concat());
    fails(2, "--id is given 2", &output);
    let output = cuzk(&[&prove[..], &["--priority", "Critical"]].concat());
    fails(2, "critical, high, normal, low", &output);
    let picture = directory.path().join("run.png");
    let output = cuzk(&[&prove[..], &["--timeline", text(&picture)]].concat());
    fails(2, ".svg", &output);
    assert!(!out.exists() && !picture.exists());
}

#[test]
fn a_named_job_is_proved_once_and_a_late_one_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    generate("window-post");
    generate("winning-post");
    let config = file("cuzk.toml");
    let journal = file("jobs.journal");
    std::fs::write(&config, format!("[jobs]\njournal = {journal:?}\n")).unwrap();
    let prove = |request: &str, out: &str, more: &[&str]| {
        let request = data(request);
        let common = ["--config", &config, "prove", "--request", text(&request)];
        cuzk(&[&common[..], &["--out", &file(out)], more].concat())
    };
    for out in ["first", "second"] {
        let named = [
            "--id",
            "sector-1",
            "--priority",
            "low",
            "--deadline-s",
            "600",
        ];
        assert!(prove("window-post.json", out, &named).status.success());
    }
    let [first, second] = ["first", "second"].map(|out| std::fs::read(file(out)).unwrap());
    assert_eq!(first, second, "kept, and not proved again");
    let other = prove("winning-post.json", "other", &["--id", "sector-1"]);
    fails(2, "stands for another request", &other);
    let late = prove("window-post.json", "late", &["--deadline-s", "0"]);
    fails(1, "deadline", &late);
    assert!(!directory.path().join("late").exists());
}

#[test]
fn a_request_that_is_no_request_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("proof");
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("text", b"a proof, please"),
        (
            "truncated",
            &std::fs::read(data("porep.json")).unwrap()[..1000],
        ),
        (
            "wrong kind",
            br#"{"proof_kind":"SEALED","sector_size":2048}"#,
        ),
    ] {
        let request = directory.path().join("request.json");
        std::fs::write(&request, bytes).unwrap();
        let output = cuzk(&["prove", "--request", text(&request), "--out", text(&out)]);
        fails(2, "request.json", &output);
        assert!(!out.exists(), "{name}");
    }
    let missing = directory.path().join("missing.json");
    fails(
        2,
        "missing.json",
        &cuzk(&["prove", "--request", text(&missing), "--out", text(&out)]),
    );
}

#[test]
fn missing_parameters_say_which_file_and_where() {
    let empty = tempfile::tempdir().unwrap();
    let out = empty.path().join("proof");
    let request = data("window-post.json");
    let prove = ["prove", "--request", text(&request), "--out", text(&out)];
    let output = cuzk_in(empty.path(), &prove);
    fails(2, text(empty.path()), &output);
    fails(2, "v28-proof-of-spacetime-fallback", &output);
    fails(2, "cuzk params generate", &output);
    assert!(!out.exists());
}

#[test]
fn parameters_of_another_circuit_truncated_or_empty() {
    let cache = tempfile::tempdir().unwrap();
    let out = cache.path().join("proof");
    let request = data("window-post.json");
    let prove = ["prove", "--request", text(&request), "--out", text(&out)];
    generate("window-post");
    generate("winning-post");
    let report = |kind| {
        json(&[
            "params",
            "generate",
            "--kind",
            kind,
            "--sector-size",
            "2KiB",
        ])
    };
    let (window, winning) = (report("window-post"), report("winning-post"));
    let place = |from: &Value, to: &Value, length: usize| {
        for file in ["params", "vk"] {
            let bytes = std::fs::read(from[file].as_str().unwrap()).unwrap();
            let name = Path::new(to[file].as_str().unwrap()).file_name().unwrap();
            let length = bytes.len().min(length);
            std::fs::write(cache.path().join(name), &bytes[..length]).unwrap();
        }
    };
    for (from, length, message) in [
        (&winning, usize::MAX, "another circuit"),
        (&window, 5000, "params"),
        (&window, 0, "params"),
    ] {
        place(from, &window, length);
        fails(2, message, &cuzk_in(cache.path(), &prove));
        assert!(!out.exists());
    }
    place(&window, &window, usize::MAX);
    assert!(cuzk_in(cache.path(), &prove).status.success());
}

#[test]
fn prepared_parameters_prove_and_unusable_multiples_are_said() {
    let cache = tempfile::tempdir().unwrap();
    let out = cache.path().join("proof");
    let request = data("window-post.json");
    let run = |arguments: &[&str]| cuzk_in(cache.path(), arguments);
    let of = |command| {
        let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
        [&["params", command], &circuit[..]].concat()
    };
    fails(2, "cuzk params generate", &run(&of("prepare")));
    assert!(run(&of("generate")).status.success());
    let short = run(&[&of("prepare")[..], &["--limit", "1KB"]].concat());
    fails(2, "no room", &short);
    // There is no file that could be made anew.
    assert!(!String::from_utf8_lossy(&short.stderr).contains("anew"));
    let prove = ["prove", "--request", text(&request), "--out", text(&out)];
    let has_form = cuzk_kernels::testing::ifma().is_some();
    if has_form {
        let prepared = run(&[&of("prepare")[..], &["--json"]].concat());
        let report: Value = serde_json::from_slice(&prepared.stdout).unwrap();
        let path = Path::new(report["multiples"].as_str().unwrap());
        assert_eq!(
            report["file_bytes"].as_u64().unwrap(),
            path.metadata().unwrap().len()
        );
        assert!(run(&prove).status.success());
        std::fs::write(path, "damaged").unwrap();
    } else {
        fails(2, "no form", &run(&of("prepare")));
    }
    // Two proofs of one command: the file is named once.
    let other = cache.path().join("other");
    let second = ["--request", text(&request), "--out", text(&other)];
    let proved = run(&[&prove[..], &second].concat());
    assert!(proved.status.success() && out.exists() && other.exists());
    let said = String::from_utf8_lossy(&proved.stderr);
    let told = said.matches("this file of multiples is not used").count();
    assert_eq!(told, usize::from(has_form), "{said}");
    assert_eq!(said.contains("cuzk params prepare"), has_form);
}

#[test]
fn a_compiled_circuit_reads_back_and_a_damaged_one_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("window-post.pce");
    let built = json(&[
        "pce",
        "build",
        "--kind",
        "window-post",
        "--sector-size",
        "2KiB",
        "--out",
        text(&file),
    ]);
    assert_eq!(built["inputs"], 23);
    assert_eq!(built["aux"], 22_128);
    assert_eq!(built["rows"], 21_866);
    let read = json(&["pce", "inspect", text(&file)]);
    assert_eq!(read["fingerprint"], built["fingerprint"]);

    let bytes = std::fs::read(&file).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    for damaged in [&flipped[..], &bytes[..bytes.len() - 1], &bytes[..10], &[]] {
        std::fs::write(&file, damaged).unwrap();
        fails(
            2,
            "window-post.pce",
            &cuzk(&["pce", "inspect", text(&file)]),
        );
    }
    std::fs::write(&file, "a file of another kind\n".repeat(20)).unwrap();
    let output = cuzk(&["pce", "inspect", text(&file)]);
    fails(2, "name a file that `cuzk pce build` wrote", &output);
}

#[test]
fn a_circuit_without_a_place_is_compiled_into_the_parameter_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("not/there/yet");
    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    // The doctor finds the circuit where it looks for that of an engine.
    let is_compiled = || {
        let found = cuzk_in(&cache, &[&["doctor", "--json"], &circuit[..]].concat());
        let report: Value = serde_json::from_slice(&found.stdout).unwrap();
        !report.to_string().contains("not compiled here")
    };
    assert!(!is_compiled());
    let built = cuzk_in(&cache, &[&["pce", "build"], &circuit[..]].concat());
    assert!(built.status.success(), "{built:?}");
    assert!(is_compiled());
}

#[test]
fn synthesis_checks_every_constraint() {
    let request = data("winning-post.json");
    let synth = json(&[
        "synth",
        "--check",
        "--request",
        text(&request),
        "--partition",
        "0",
    ]);
    assert_eq!(synth["rows"], 90_750);
    assert_eq!(synth["satisfied"], true);
    assert_eq!(synth["first_bad_row"], Value::Null);
    let out_of_range = ["synth", "--request", text(&request), "--partition", "1"];
    fails(2, "--partition", &cuzk(&out_of_range));
}

#[test]
fn a_log_that_goes_to_a_file_has_no_colours() {
    let cache = tempfile::tempdir().unwrap();
    let request = data("window-post.json");
    let synth = ["synth", "--request", text(&request), "--partition", "0"];
    let output = cuzk_in(cache.path(), &synth);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("compiling the circuit"), "{stderr}");
    assert!(!stderr.contains('\x1b'), "{stderr}");
}

#[test]
fn a_sealed_sector_makes_a_request() {
    let directory = tempfile::tempdir().unwrap();
    let request = directory.path().join("request.json");
    let report = json(&[
        "vanilla",
        "--kind",
        "window-post",
        "--sector-size",
        "2KiB",
        "--out",
        text(&request),
    ]);
    assert_eq!(report["circuit"], "window-post-2KiB");
    let synth = json(&["synth", "--check", "--request", text(&request)]);
    assert_eq!(synth["satisfied"], true);
}

#[test]
fn a_sector_too_large_to_seal_makes_a_request() {
    let directory = tempfile::tempdir().unwrap();
    let request = directory.path().join("request.json");
    let report = json(&[
        "vanilla",
        "--kind",
        "winning-post",
        "--sector-size",
        "32GiB",
        "--out",
        text(&request),
    ]);
    assert_eq!(report["circuit"], "winning-post-32GiB");
    assert_eq!(report["sector"], "sparse");
    let synth = json(&["synth", "--check", "--request", text(&request)]);
    assert_eq!(synth["satisfied"], true);
}

#[test]
fn a_misspelt_key_is_named_with_what_was_meant() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("cuzk.toml");
    std::fs::write(
        &config,
        "[gpus]\ngpu_thread = 4\n\n[pipeline]\nsynthesis_lookahead = 0\n",
    )
    .unwrap();
    let output = cuzk(&["config", "check", text(&config)]);
    fails(2, "gpu_threads", &output);
    fails(2, "synthesis_lookahead", &output);
    fails(
        2,
        "gpu_threads",
        &cuzk(&["--config", text(&config), "demo"]),
    );

    std::fs::write(&config, "[gpus]\ngpu_threads = 4\n").unwrap();
    assert_eq!(
        json(&["config", "check", text(&config)])["gpus"]["gpu_threads"],
        4
    );
}

#[test]
fn the_interventions_are_measured_in_the_whole_engine() {
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("interventions.svg");
    let report = json(&[
        "bench",
        "interventions",
        "--in-flight",
        "1,2",
        "--gpu-threads",
        "1",
        "--runs",
        "1",
        "--svg",
        text(&svg),
    ]);
    assert!(report["machine"]["processor"].is_string(), "{report}");
    let rows = report["rows"].as_array().unwrap();
    // Each key alone: the other two are as in the first row.
    let keys = |row: &Value| ["dealloc", "gpu_threads", "throttle"].map(|key| row[key].clone());
    let changed = |row: &Value| {
        let changed = keys(row).into_iter().zip(keys(&rows[0]));
        changed.filter(|(own, off)| own != off).count()
    };
    assert_eq!(rows.len(), 2 * 6);
    assert_eq!(keys(&rows[0])[0], "unbounded");
    for row in &rows[..5] {
        assert!(changed(row) <= 1, "{row}");
    }
    for row in rows {
        for part in ["proof_s", "ratio", "b_g2_s", "device_s", "evaluate_s"] {
            assert!(row[part].as_f64().unwrap() > 0.0, "{row}");
        }
        // One round says nothing.
        assert!(row["faster"].is_null(), "{row}");
    }
    assert_eq!(rows[0]["ratio"], 1.0);
    let drawn = std::fs::read_to_string(&svg).unwrap();
    assert!(drawn.contains("all off") && drawn.contains("throttle = true"));

    let output = cuzk(&["bench", "interventions", "--in-flight", "0"]);
    fails(2, "from 1 to 100", &output);
    let output = cuzk(&[
        "bench",
        "interventions",
        "--svg",
        "x.svg",
        "--threads",
        "1,2",
    ]);
    fails(2, "--threads", &output);
}

#[test]
fn stages_are_measured_beside_a_peer() {
    let lines = |arguments: &[&str]| {
        let output = cuzk(&[&["--json", "bench"], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let lines = String::from_utf8(output.stdout).unwrap();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let peers = |lines: &[Value]| {
        for line in lines {
            for time in ["ours_s", "peer_s", "ratio"] {
                assert!(line[time].as_f64().unwrap() > 0.0, "{line}");
            }
            assert!(line["machine"]["processor"].is_string(), "{line}");
        }
        let peers = lines.iter().map(|line| line["peer"].as_str().unwrap());
        peers.map(str::to_owned).collect::<Vec<_>>()
    };
    let sums = ["blst", "bellperson", "blst", "bellperson"];
    for (stage, expected) in [
        ("ntt", &["bellperson"; 2][..]),
        ("msm-g1", &sums),
        ("msm-g2", &sums),
        ("sum-g1", &["blst"; 2]),
    ] {
        let lines = lines(&[stage, "--size", "6", "--runs", "1"]);
        assert_eq!(peers(&lines), expected, "{stage}");
    }
    generate("window-post");
    let window_post = ["--kind", "window-post", "--runs", "1"];
    let twice = [&["prove", "--threads", "1,2"], &window_post[..]].concat();
    let lines = lines(&twice);
    assert_eq!(peers(&lines), ["bellperson"; 2]);
    assert!(lines[1]["scaling"].as_f64().unwrap() > 0.0);

    let many = ["--kind", "window-post", "--sector-size", "32GiB"];
    let output = cuzk(&[&["bench", "interventions"], &many[..]].concat());
    fails(2, "use 2KiB", &output);
}

#[test]
fn tuning_prints_a_configuration_that_resolves() {
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("gpu-threads.svg");
    let tune = [
        "tune",
        "gpu-threads",
        "--kind",
        "window-post",
        "--rounds",
        "1",
    ];
    let report = json(&[&tune[..], &["--svg", text(&svg)]].concat());
    let threads: Vec<_> = (report["rows"].as_array().unwrap().iter())
        .map(|row| row["gpu_threads"].as_u64().unwrap())
        .collect();
    assert_eq!(threads.first(), Some(&1));
    assert_eq!(threads.last().copied(), report["cores"].as_u64());
    assert!(report["machine"]["huge_pages"].is_string(), "{report}");
    assert!(threads.contains(&report["gpu_threads"].as_u64().unwrap()));
    for row in report["rows"].as_array().unwrap() {
        assert!(row["combined"].as_f64().unwrap() > 0.0);
        assert!(row["bucket_bytes"].as_u64().unwrap() > 0);
    }
    let drawn = std::fs::read_to_string(&svg).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains("beside synthesis"));

    // The text for people is a valid configuration.
    let output = cuzk(&tune);
    let config = directory.path().join("cuzk.toml");
    std::fs::write(&config, &output.stdout).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("# machine: "), "{printed}");
    let resolved = json(&["config", "check", text(&config)]);
    assert!(threads.contains(&resolved["gpus"]["gpu_threads"].as_u64().unwrap()));
}
