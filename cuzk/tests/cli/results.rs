//! Results: the places where they are written, and the obstacles.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_bounded::{BoundedChild, BoundedCommand};

use super::*;

/// A folder with a request that is right and a request that is not.
struct Folder {
    folder: tempfile::TempDir,
    good: PathBuf,
    bad: PathBuf,
}

impl Folder {
    fn new() -> Self {
        generate("window-post");
        let folder = tempfile::tempdir().unwrap();
        let good = data("window-post.json");
        let bad = folder.path().join("bad.json");
        let mut request: Value = serde_json::from_slice(&std::fs::read(&good).unwrap()).unwrap();
        // Still base64, and as long as it was.
        let proof = request["vanilla_proofs"][0].as_str().unwrap();
        let (start, end) = (proof.len() / 2, proof.len() / 2 + 64);
        let altered = [&proof[..start], &"A".repeat(64), &proof[end..]].concat();
        request["vanilla_proofs"][0] = Value::from(altered);
        std::fs::write(&bad, request.to_string()).unwrap();
        Self { folder, good, bad }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command that proves each of these requests into the file beside it.
    fn prove(&self, each: &[(&Path, &str)], more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
        command.env("FIL_PROOFS_PARAMETER_CACHE", param_cache());
        command.current_dir(self.folder.path()).arg("prove");
        for (request, out) in each {
            command.arg("--request").arg(request).arg("--out").arg(out);
        }
        command.args(more);
        command
    }

    fn has_proof(&self, name: &str) -> bool {
        std::fs::read(self.at(name)).is_ok_and(|proof| proof.len() == 192)
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn reports(output: &Output) -> Vec<Value> {
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn what_cannot_be_written_is_said_before_any_work() {
    let folder = Folder::new();
    std::fs::create_dir(folder.at("folder")).unwrap();
    let good = &*folder.good;
    let reason = "the folder no does not exist; make it";
    for (out, timeline, message) in [
        ("no/p", "run.svg", format!("no/p: {reason}")),
        ("p", "no/run.svg", format!("no/run.svg: {reason}")),
        ("folder", "run.svg", "folder: ".to_owned()),
        ("/proc/p", "run.svg", "/proc/p: ".to_owned()),
        ("run.json", "./run.json", "are one file".to_owned()),
    ] {
        let mut prove = folder.prove(&[(good, out)], &["--timeline", timeline]);
        // Work would be an error about the parameters.
        prove.env("FIL_PROOFS_PARAMETER_CACHE", folder.folder.path());
        let output = prove.output_bounded().unwrap();
        fails(2, &message, &output);
        assert_eq!(stderr(&output).lines().count(), 1);
        assert!(!stderr(&output).contains("tmp"), "{}", stderr(&output));
    }
    for out in ["p", "./p", "folder/../p"] {
        let output = folder
            .prove(&[(good, "p"), (good, out)], &[])
            .output_bounded();
        fails(2, "are one file", &output.unwrap());
    }
    symlink(&folder.bad, folder.at("link")).unwrap();
    for (out, timeline) in [("bad.json", "t.svg"), ("link", "t.svg")] {
        let requests = [(good, "q"), (&*folder.bad, out)];
        let output = folder
            .prove(&requests, &["--timeline", timeline])
            .output_bounded();
        fails(2, "is a file that the command reads", &output.unwrap());
    }
    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    for command in [&["vanilla"][..], &["pce", "build"]] {
        let out = [command, &circuit, &["--out", "no/file"]].concat();
        fails(2, &format!("no/file: {reason}"), &cuzk(&out));
    }
    assert_eq!(std::fs::read_dir(folder.folder.path()).unwrap().count(), 3);
}

#[test]
fn a_drawing_that_fails_costs_no_result() {
    let folder = Folder::new();
    symlink("/dev/full", folder.at("full.svg")).unwrap();
    let output = (folder.prove(
        &[(&folder.good, "p")],
        &["--timeline", "full.svg", "--json"],
    ))
    .output_bounded()
    .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("full.svg"), "{}", stderr(&output));
    assert!(folder.has_proof("p"));
    assert_eq!(reports(&output).len(), 1);

    let full = folder.at("full.svg");
    let svg = ["--json", "--kind", "window-post", "--svg", text(&full)];
    let short = ["--runs", "1", "--in-flight", "1"];
    for command in [
        &[&["tune", "gpu-threads", "--rounds", "1"], &svg[..]].concat(),
        &[&["bench", "interventions"], &short[..], &svg].concat(),
    ] {
        let output = cuzk(command);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(reports(&output)[0]["rows"].is_array());
    }
}

#[test]
fn an_engine_that_does_not_start_is_the_end_of_each_request() {
    let folder = Folder::new();
    std::fs::create_dir(folder.at("journal")).unwrap();
    std::fs::write(folder.at("cuzk.toml"), "[jobs]\njournal = \"journal\"\n").unwrap();
    let requests = [
        (&*folder.good, "p"),
        (&folder.at("no"), "q"),
        (&*folder.bad, "r"),
    ];
    let config = ["--config", "cuzk.toml", "--json"];
    let output = folder.prove(&requests, &config).output_bounded().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let ends = reports(&output).into_iter();
    let ends: Vec<_> = ends.map(|report| report["request"].clone()).collect();
    let expected = [&folder.at("no"), &folder.good, &folder.bad];
    assert_eq!(ends, expected.map(|path| Value::from(text(path))));
}

fn wait_until(what: &str, child: &mut Child, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(child.try_wait().unwrap().is_none(), "{what}: it has ended");
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_proof_is_kept_when_its_own_job_ends_and_a_pipe_stays_one() {
    let folder = Folder::new();
    let pipe = folder.at("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let good = &*folder.good;
    let mut prove = folder.prove(&[(good, "pipe"), (good, "p")], &[]);
    let mut child = prove.stdout(Stdio::null()).spawn().unwrap();
    // Nobody reads the first one yet.
    wait_until("the second proof", &mut child, || folder.has_proof("p"));
    assert!(child.try_wait().unwrap().is_none());
    let mut first = Vec::new();
    File::open(&pipe).unwrap().read_to_end(&mut first).unwrap();
    assert!(child.wait_bounded().unwrap().success());
    assert_eq!(first.len(), 192);
    assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());
}

#[test]
fn links_and_devices_are_written_to_and_not_replaced() {
    let folder = Folder::new();
    symlink("target", folder.at("link")).unwrap();
    symlink("/dev/null", folder.at("null")).unwrap();
    let good = &*folder.good;
    let output = folder
        .prove(&[(good, "link"), (good, "null")], &[])
        .output_bounded();
    assert!(output.unwrap().status.success());
    assert!(folder.has_proof("target"));
    assert!(folder.at("link").is_symlink() && folder.at("null").is_symlink());

    // Other output does not mix with the result.
    let output = folder
        .prove(&[(good, "/dev/stdout")], &["--json"])
        .output_bounded();
    let output = output.unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout.len(), 192);
    assert!(stderr(&output).contains("\"verified\":true"));
    let mut prove = folder.prove(&[(good, "/dev/stdout")], &[]);
    let regular = File::create(folder.at("redirected")).unwrap();
    let prove = prove.stdout(regular).stderr(Stdio::null());
    assert!(prove.status().unwrap().success());
    assert!(folder.has_proof("redirected"));

    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    let build = [&["pce", "build"], &circuit[..], &["--out", "/dev/stdout"]].concat();
    let file = folder.at("circuit");
    std::fs::write(&file, cuzk(&build).stdout).unwrap();
    assert_eq!(json(&["pce", "inspect", text(&file)])["rows"], 21_866);
}

#[test]
fn what_is_wrong_with_a_request_costs_no_other_its_proof() {
    let folder = Folder::new();
    let (good, bad) = (&*folder.good, &*folder.bad);
    let winning = data("winning-post.json");
    let (empty, missing) = (folder.at("empty.json"), folder.at("missing.json"));
    std::fs::write(&empty, "").unwrap();
    // Only the parameters of the good ones.
    let cache = folder.at("cache");
    std::fs::create_dir(&cache).unwrap();
    let report = json(&[
        "params",
        "generate",
        "--kind",
        "window-post",
        "--sector-size",
        "2KiB",
    ]);
    for file in ["params", "vk"] {
        let from = Path::new(report[file].as_str().unwrap());
        symlink(from, cache.join(from.file_name().unwrap())).unwrap();
    }
    let each = [
        (good, "g1"),
        (bad, "b1"),
        (&*winning, "b2"),
        (&*empty, "b3"),
        (&*missing, "b4"),
        (good, "g2"),
    ];
    let mut prove = folder.prove(&each, &["--json"]);
    let output = prove
        .env("FIL_PROOFS_PARAMETER_CACHE", &cache)
        .output_bounded();
    let output = output.unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for (request, why) in [
        (bad, "vanilla_proofs[0]"),
        (&*winning, "cuzk params generate"),
        (&*empty, "empty"),
        (&*missing, "os error 2"),
    ] {
        let of = format!("error: {}: ", text(request));
        let line = said.lines().find(|line| line.starts_with(&of));
        assert!(line.is_some_and(|line| line.contains(why)), "{said}");
    }
    let errors = said.lines().filter(|line| line.starts_with("error: "));
    assert_eq!(errors.count(), 4, "{said}");
    // Each has one object, also without a proof.
    let (proved, failed): (Vec<_>, Vec<_>) = reports(&output)
        .into_iter()
        .partition(|report| report.get("error").is_none());
    let outs: Vec<_> = proved.iter().map(|report| &report["out"]).collect();
    assert_eq!(outs, ["g1", "g2"]);
    for (request, why) in [(bad, "vanilla_proofs[0]"), (&*missing, "os error 2")] {
        let of = |report: &&Value| report["request"] == text(request);
        let report = failed.iter().find(of).unwrap();
        assert!(report["error"].as_str().unwrap().contains(why), "{report}");
        assert_eq!(report["exit_code"], 2);
    }
    assert_eq!(failed.len(), 4);
    assert!(folder.has_proof("g1") && folder.has_proof("g2"));
    assert!(
        ["b1", "b2", "b3", "b4"]
            .iter()
            .all(|out| !folder.at(out).exists())
    );
}

#[test]
fn what_the_queue_has_no_room_for_waits_and_reports_say_of_which_request_they_are() {
    let folder = Folder::new();
    std::fs::write(folder.at("cuzk.toml"), "[jobs]\nqueued_partitions = 1\n").unwrap();
    let outs = ["a", "b", "c", "d"];
    let each = outs.map(|out| (&*folder.good, out));
    let mut prove = folder.prove(&each, &["--json", "--config", "cuzk.toml"]);
    for out in outs {
        prove.args(["--id", &format!("sector-{out}")]);
    }
    let output = prove.output_bounded().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let reports = reports(&output);
    assert_eq!(reports.len(), outs.len());
    for (report, out) in reports.iter().zip(outs) {
        assert_eq!(report["request"], text(&folder.good));
        assert_eq!(report["out"], out);
        assert_eq!(report["id"], format!("sector-{out}"));
        assert!(folder.has_proof(out));
    }
}

#[test]
fn any_name_of_a_file_is_taken() {
    let folder = Folder::new();
    let mut prove = folder.prove(&[(&folder.good, "p")], &[]);
    let timeline = OsStr::from_bytes(b"run-\xff.json");
    prove.arg("--timeline").arg(timeline);
    let output = prove.output_bounded().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(folder.folder.path().join(timeline).exists());
}

/// It comes from no file, so it has no name.
#[test]
fn a_demo_has_the_object_of_a_proof_without_a_request() {
    let demo = json(&["demo", "--kind", "window-post"]);
    assert_eq!(demo["kind"], "window-post");
    assert_eq!(demo["sector_size"], "2KiB");
    assert_eq!(demo["verified"], true);
    assert!(demo["timeline"].is_array() && demo["devices"].is_array());
    assert_eq!(demo.get("request").or(demo.get("out")), None);
}
