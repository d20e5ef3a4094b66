//! Each stage of `cuzk bench` once, as small as it can be. It prints the machine, and then a line
//! for each comparison.
//!
//! No figure is judged here. The invariant: a stage that the help names is in one of the tables.

use cuzk_bounded::{BoundedChild, BoundedCommand};

use super::*;

/// As in the engine beside both peers, and then with fresh memory.
const MSM_G1: [&str; 4] = [
    "msm-g1 2^6, ",
    "msm-g1 2^6, ",
    "msm-g1-plain 2^6, ",
    "msm-g1-plain 2^6, ",
];
const MSM_G2: [&str; 4] = [
    "msm-g2 2^6, ",
    "msm-g2 2^6, ",
    "msm-g2-plain 2^6, ",
    "msm-g2-plain 2^6, ",
];

/// Stages that take seconds, with the beginnings of their lines.
const QUICK: [(&str, &[&str]); 10] = [
    ("pce", &["pce window-post 2KiB, "]),
    ("witness", &["witness window-post 2KiB, "]),
    (
        "eval",
        &["eval window-post 2KiB, ", "eval-abc window-post 2KiB, "],
    ),
    ("ntt", &["ntt 2^6, ", "ntt-plain 2^6, "]),
    ("msm-g1", &MSM_G1),
    ("msm-g2", &MSM_G2),
    ("sum-g1", &["sum-g1 ", "sum-g1-plain "]),
    ("aggregate", &["aggregate 64 proofs, "]),
    ("params", &["params window-post 2KiB, "]),
    ("prove", &["prove window-post 2KiB, "]),
];

/// Stages that have tests of their own here.
const ENGINES: [&str; 2] = ["engine", "server"];

/// Stages that need a GPU. A test of `bench::device` runs them on the double of one.
const DEVICES: [&str; 3] = ["device", "device-shape", "device-load"];

/// `the_interventions_are_measured_in_the_whole_engine` runs the first one. A test of the program
/// `cluster` runs the second one, with a nats-server.
const ELSEWHERE: [&str; 2] = ["interventions", "cluster"];

/// Runs a stage. Its first line must name the machine, and its other lines must begin as
/// `expected`. A line that begins with a space belongs to the one before it.
fn prints(stage: &[&str], expected: &[&str]) {
    let once = ["--size", "6", "--runs", "1"];
    let output = cuzk(&[&["bench"], stage, &once[..]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stage:?}: {stderr}");
    // Hundreds of jobs would have lines of their own.
    assert!(!stderr.contains("the job "), "{stage:?}: {stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with(' '));
    let machine = lines.next().unwrap_or_default();
    let named = machine.starts_with("machine: ") && machine.contains("core(s); instructions ");
    assert!(named, "{stage:?}: {text}");
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), expected.len(), "{stage:?}: {text}");
    for (line, beginning) in lines.iter().zip(expected) {
        assert!(line.starts_with(beginning), "{stage:?}: {text}");
    }
}

#[test]
fn a_kernel_is_measured_without_its_peer() {
    for stage in ["ntt", "msm-g1", "msm-g2", "sum-g1"] {
        let output = cuzk(&[
            "bench", stage, "--alone", "--size", "6", "--runs", "1", "--json",
        ]);
        let text = String::from_utf8(output.stdout).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!(line["stage"], stage, "{text}");
        assert!(line["ours_s"].as_f64().unwrap() > 0.0, "{text}");
        assert_eq!(line.get("peer"), None, "{text}");
    }
    let output = cuzk(&["bench", "prove", "--alone"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("--alone: only ntt"), "{stderr}");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
}

#[test]
fn each_stage_of_the_help_is_tried() {
    let output = cuzk(&["bench", "--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, stages) = help.split_once("Possible values:").unwrap();
    let (stages, _) = stages.split_once("Options:").unwrap();
    let named = stages.lines().filter_map(|line| {
        let (name, _) = line.trim().strip_prefix("- ")?.split_once(':')?;
        Some(name)
    });
    let mut named: Vec<_> = named.collect();
    let quick = QUICK.map(|(stage, _)| stage);
    let mut tried = [&quick[..], &ENGINES, &DEVICES, &ELSEWHERE].concat();
    named.sort_unstable();
    tried.sort_unstable();
    assert_eq!(tried, named);
}

/// The page for operators has each stage in a row of its table, once.
#[test]
fn the_page_has_each_stage() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/command-line.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, table) = page
        .split_once("| stage | measures |\n|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with("| "));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(", "));
    let mut named: Vec<_> = names.map(|name| name.trim().trim_matches('`')).collect();
    let quick = QUICK.map(|(stage, _)| stage);
    let mut stages = [&quick[..], &ENGINES, &DEVICES, &ELSEWHERE].concat();
    named.sort_unstable();
    stages.sort_unstable();
    assert_eq!(named, stages);
}

#[test]
fn quick_stages_print_the_machine_and_their_lines() {
    generate("window-post");
    for (stage, expected) in QUICK {
        prints(&[stage], expected);
    }
}

#[test]
fn the_stage_of_the_engine_prints_the_machine_and_its_lines() {
    let expected = [
        "urgent proof winning-post beside ",
        "urgent start winning-post beside ",
        "throughput window-post ",
        "overhead window-post ",
        "device window-post ",
    ];
    prints(&["engine"], &expected);
}

#[test]
fn the_stage_of_the_server_prints_the_machine_and_its_lines() {
    // The step `added` of .ci/nightly has a PoRep, too.
    let stage = ["server", "--kind", "winning-post"];
    prints(&stage, &["server winning-post, "]);
    for refused in [
        &["server", "--kind", "snap-deals"][..],
        &["server", "--kind", "porep", "--flood"],
    ] {
        let output = cuzk(&[&["bench"], refused].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains("measures winning-post and porep"),
            "{stderr}"
        );
        assert_eq!(output.status.code(), Some(2), "{stderr}");
    }
}

#[test]
fn a_flood_of_the_server_prints_the_machine_and_its_lines() {
    let expected = ["server winning-post under a flood, 1 runs each, "];
    prints(&["server", "--flood"], &expected);
}

/// Returns the processes whose parent is `parent`, unless they have ended.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<String> {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = folders.filter_map(|folder| folder.file_name().into_string().ok());
    let is_child = |number: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat"));
        let stat = stat.unwrap_or_default();
        // The name may have spaces. The state and the parent's number follow it.
        let fields = stat.rsplit(") ").next().unwrap_or_default();
        let mut fields = fields.split(' ');
        fields.next() != Some("Z") && fields.next() == Some(parent.to_string().as_str())
    };
    numbers.filter(is_child).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_bench_of_the_server_leaves_no_daemon_and_no_files() {
    use std::process::Stdio;
    let scratch = tempfile::tempdir().unwrap();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    bench.args(["bench", "server", "--runs", "1000"]);
    bench.env("FIL_PROOFS_PARAMETER_CACHE", param_cache());
    bench.env("TMPDIR", scratch.path());
    bench.stdout(Stdio::null()).stderr(Stdio::null());
    let mut killed = bench.spawn().unwrap();
    let wait_until = |what: &str, condition: &dyn Fn() -> bool| {
        let started = std::time::Instant::now();
        while !condition() {
            assert!(started.elapsed().as_secs() < 300, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let has_socket = || {
        let folders = std::fs::read_dir(scratch.path()).unwrap().flatten();
        folders
            .map(|folder| folder.path())
            .any(|path| path.join("daemon/cuzk.sock").exists())
    };
    wait_until("the daemon serves", &has_socket);
    assert_eq!(killed.try_wait().unwrap(), None, "it measures for minutes");
    let daemon = children(killed.id());
    assert_eq!(daemon.len(), 1, "{daemon:?}");
    killed.kill().unwrap();
    killed.wait_bounded().unwrap();
    let stat = format!("/proc/{}/stat", daemon[0]);
    let has_ended = || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    wait_until("the daemon ends", &has_ended);
    // The next command with a temporary folder removes what was left.
    let mut next = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    next.args(["vanilla", "--kind", "window-post", "--sector-size", "2KiB"]);
    next.args(["--out", "/dev/null"])
        .env("TMPDIR", scratch.path());
    assert!(next.output_bounded().unwrap().status.success());
    let left = std::fs::read_dir(scratch.path()).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn stages_of_a_device_say_that_they_need_a_gpu() {
    for stage in DEVICES {
        let output = Command::new(env!("CARGO_BIN_EXE_cuzk"))
            .args(["bench", stage, "--size", "6", "--runs", "1"])
            .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
            // A machine that has GPUs shows none.
            .env("CUDA_VISIBLE_DEVICES", "")
            .output_bounded()
            .unwrap();
        fails(1, "GPU", &output);
    }
}
