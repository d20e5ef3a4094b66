//! The commands that call a daemon, against one that proves nothing.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

#[path = "calls/fake.rs"]
mod fake;

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cuzk_bounded::{BoundedCommand, BoundedJoin};
use cuzk_server::wire::MESSAGE_BYTES_MAX;
use cuzk_server::wire::v1::await_proof_response::Status as End;
use serde_json::{Value, json};
use tonic::Code;

use self::fake::{Fake, REPORT};

fn bundled(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/sector-2kib");
    folder.join(name).with_extension("json")
}

fn run(address: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(arguments)
        .env("CUZK_ADDRESS", address)
        .output_bounded()
        .unwrap()
}

/// Runs a command that must succeed, and returns what it printed.
fn text(fake: &Fake, arguments: &[&str]) -> String {
    let output = run(&fake.address(), arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command with `--json`, and returns its objects.
fn objects(fake: &Fake, arguments: &[&str]) -> Vec<Value> {
    let printed = text(fake, &[arguments, &["--json"]].concat());
    let lines = printed.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// Checks that a command fails with `code`, and says `message` as text and as an object.
fn fails(address: &str, arguments: &[&str], code: i32, message: &str) {
    let output = run(address, &[arguments, &["--json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    if !arguments.contains(&"/dev/stdout") {
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(object["exit_code"], code);
        assert!(object["error"].as_str().unwrap().contains(message));
    }
}

/// The arguments of a submission of a bundled request.
fn submission<'a>(request: &'a Path, out: &'a Path) -> Vec<&'a str> {
    let (request, out) = (request.to_str().unwrap(), out.to_str().unwrap());
    vec!["submit", "--request", request, "--out", out]
}

#[test]
fn a_submission_waits_and_writes_the_proof() {
    let fake = Fake::start(true);
    let (request, out) = (bundled("porep"), fake.path("proof"));
    let arguments = submission(&request, &out);
    let reports = objects(&fake, &arguments);
    assert_eq!(std::fs::read(&out).unwrap(), [7; 192]);
    let [report] = &reports[..] else {
        unreachable!("{reports:?}")
    };
    assert_eq!(report["job_id"], "porep-1001-618704-job");
    assert_eq!(report["proof_bytes"], 192);
    assert_eq!(report["total_ms"], 7);
    assert_eq!(report["out"], out.to_str().unwrap());
    assert!(text(&fake, &arguments).contains("192 bytes in 7 ms"));

    let named = [&arguments[..], &["--id", "mine", "--priority", "low"]].concat();
    text(&fake, &named);
    fake.script(|script| {
        let [first, second, third] = &script.requests[..] else {
            unreachable!("{} requests", script.requests.len())
        };
        assert_eq!(first, second);
        assert_eq!((third.request_id.as_str(), third.priority), ("mine", 1));
        assert_eq!(first.vanilla_proof, third.vanilla_proof);
    });
}

/// There is no terminal, so the log has a line when partitions are done. It has each line once.
#[test]
fn a_wait_says_how_many_partitions_are_done() {
    let fake = Fake::start(true);
    let (request, out) = (bundled("porep"), fake.path("proof"));
    let submission = [&submission(&request, &out)[..], &["--id", "porep-1-2"]].concat();
    let out = out.to_str().unwrap();
    for arguments in [submission, vec!["await", "porep-1-2", "--out", out]] {
        fake.script(|script| {
            script.calls.clear();
            script.reports_before_an_end = 2;
        });
        let output = run(&fake.address(), &arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let told = said.matches("porep-1-2: 1 of 2 partitions done").count();
        assert_eq!(told, 1, "{said}");
    }
}

#[test]
fn a_submission_without_a_wait_prints_the_job_alone() {
    let fake = Fake::start(true);
    let request = bundled("window-post");
    let arguments = [
        "submit",
        "--no-wait",
        "--request",
        request.to_str().unwrap(),
    ];
    let id = "window-post-1001-0-[618704]-job";
    assert_eq!(text(&fake, &arguments), format!("{id}\n"));
    let accepted = json!({"job_id": id, "queue_position": 3});
    assert_eq!(objects(&fake, &arguments), [accepted]);
    let address = fake.address();
    fails(&address, &arguments[..3], 2, "--request");
    fails(&address, &["submit", "--request", arguments[3]], 2, "--out");
}

#[test]
fn a_call_that_is_refused_for_now_is_repeated() {
    let fake = Fake::start(true);
    let (request, out) = (bundled("winning-post"), fake.path("proof"));
    fake.then_refuse(Code::Unavailable);
    fake.then_refuse(Code::ResourceExhausted);
    fake.then(End::Timeout, "");
    let output = run(&fake.address(), &submission(&request, &out));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(fake.script(|script| script.requests.len()), 4);
    // The reason of each call that is made again is said.
    let told = said.matches("calling again, for 300 s at most: ").count();
    assert_eq!(told, 2, "{said}");
    assert!(
        said.contains("cannot do it now, so call again later"),
        "{said}"
    );

    fake.then_refuse(Code::Unavailable);
    let once = [&submission(&request, &out)[..], &["--retry-s", "0"]].concat();
    fails(
        &fake.address(),
        &once,
        1,
        "call again with the same request",
    );
    assert_eq!(fake.script(|script| script.requests.len()), 5);
}

#[test]
fn a_call_outlives_the_restart_of_its_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let address = format!("unix://{}", socket.display());
    let (request, out) = (bundled("winning-post"), folder.path().join("proof"));
    let listener = UnixListener::bind(&socket).unwrap();
    let restarted = thread::spawn(move || {
        drop(listener.accept().unwrap());
        drop(listener);
        std::fs::remove_file(&socket).unwrap();
        // Some calls find no daemon at all.
        thread::sleep(Duration::from_millis(500));
        Fake::start_in(folder, true)
    });
    let output = run(&address, &submission(&request, &out));
    let fake = restarted.join_bounded().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(std::fs::read(&out).unwrap(), [7; 192]);
    assert_eq!(fake.script(|script| script.requests.len()), 1);
}

#[test]
fn a_job_without_a_proof_is_a_failure() {
    let fake = Fake::start(true);
    let (request, out) = (bundled("winning-post"), fake.path("proof"));
    let address = fake.address();
    for (end, code, message) in [
        (End::Failed, 1, "the-job failed: no parameters"),
        (End::Cancelled, 1, "the-job was cancelled"),
        (End::Unknown, 2, "knows no job \"the-job\""),
    ] {
        fake.then(end, "no parameters");
        fails(&address, &submission(&request, &out), code, message);
    }
    for (refusal, code, message) in [
        (Code::InvalidArgument, 2, "said the daemon"),
        (Code::Unauthenticated, 1, "--token-file"),
        (Code::Internal, 1, "said the daemon"),
    ] {
        fake.then_refuse(refusal);
        fails(&address, &submission(&request, &out), code, message);
    }
    assert!(!out.exists());
}

/// As of a non-interactive PoRep of 32 GiB. gRPC would end the call as if the connection was lost,
/// and the command would repeat it.
#[test]
fn a_request_too_large_for_a_message_is_refused_before_a_daemon_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let [request, out] = ["c1.json", "proof"].map(|name| folder.path().join(name));
    let bundled: Value = serde_json::from_slice(&std::fs::read(bundled("porep")).unwrap()).unwrap();
    let output = STANDARD.decode(bundled["vanilla_proof"].as_str().unwrap());
    let mut output = output.unwrap();
    output.resize(MESSAGE_BYTES_MAX + 1, b' ');
    std::fs::write(&request, output).unwrap();
    let address = format!("unix://{}", folder.path().join("nobody").display());
    for message in [
        "c1.json: vanilla_proof: ",
        "256 MiB; prove it on this machine with `cuzk prove`",
    ] {
        fails(&address, &submission(&request, &out), 2, message);
    }
    assert!(!out.exists());
}

#[test]
fn a_job_is_awaited() {
    let fake = Fake::start(true);
    let out = fake.path("proof");
    let arguments = ["await", "a-job", "--out", out.to_str().unwrap()];
    assert_eq!(objects(&fake, &arguments)[0]["job_id"], "a-job");
    assert_eq!(std::fs::read(&out).unwrap().len(), 192);
    fake.then(End::Timeout, "");
    let limited = [&arguments[..], &["--timeout-s", "9"]].concat();
    fails(&fake.address(), &limited, 1, "has not ended; it goes on");
    let calls = fake.script(|script| script.calls.clone());
    assert_eq!(calls, ["await a-job false", "await a-job true"]);
    let stdout = ["await", "a-job", "--out", "/dev/stdout"];
    assert_eq!(run(&fake.address(), &stdout).stdout, [7; 192]);
}

#[test]
fn the_state_is_shown() {
    let fake = Fake::start(true);
    let shown = text(&fake, &["status"]);
    for part in ["up 1 min 1 s", "proved 9", "porep-c2", "porep-1-2", "hot"] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let report: Value = serde_json::from_str(REPORT).unwrap();
    assert_eq!(objects(&fake, &["status"]), std::slice::from_ref(&report));
    assert_eq!(
        objects(&fake, &["top", "--count", "2"]),
        [report.clone(), report]
    );
    let shown = text(&fake, &["top", "--count", "1"]);
    assert!(shown.contains("1 of 2") && shown.contains("#d"), "{shown}");
}

#[test]
fn another_daemon_has_a_state_too_and_no_more() {
    let fake = Fake::start(false);
    let status = &objects(&fake, &["status"])[0];
    assert_eq!(status["total_proofs_completed"], 9);
    assert_eq!(status["queues"][0]["pending"], 4);
    assert_eq!(status["loaded_srs"][0]["tier"], "hot");
    assert!(text(&fake, &["top", "--count", "1"]).contains("proved 9"));
    for command in ["drain", "reload"] {
        fails(&fake.address(), &[command], 1, "it is another daemon");
    }
}

#[test]
fn jobs_and_circuits_are_steered() {
    let fake = Fake::start(true);
    let ends = objects(&fake, &["cancel", "a", "ended"]);
    assert_eq!(ends[0], json!({"job_id": "a", "was_running": true}));
    assert_eq!(ends[1], json!({"job_id": "ended", "was_running": false}));
    assert!(text(&fake, &["cancel", "ended"]).starts_with("ended: not cancelled"));
    fails(
        &fake.address(),
        &["cancel", "nobody"],
        2,
        "knows no job \"nobody\"",
    );
    let output = run(
        &fake.address(),
        &["cancel", "nobody", "a", "no-one", "--json"],
    );
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let ends: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(ends[1], json!({"job_id": "a", "was_running": true}));
    for (end, id) in [(&ends[0], "nobody"), (&ends[2], "no-one")] {
        assert_eq!(
            (&end["id"], &end["code"]),
            (&json!(id), &json!("CUZK-0001"))
        );
    }
    let loaded = objects(&fake, &["preload", "porep-32g", "snap-32g"]);
    assert_eq!(loaded[1]["circuit_id"], "snap-32g");
    assert_eq!(loaded[1]["load_time_ms"], 8);
    let freed = text(&fake, &["evict", "porep-32g"]);
    assert_eq!(freed, "porep-32g: 1.0 KiB freed\n");
    let problem = "call again later: circuit snap-deals-32GiB: multiples of";
    fails(&fake.address(), &["evict", "snap-32g"], 1, problem);
    fails(&fake.address(), &["preload", "nothing"], 2, "circuit_id");
}

#[test]
fn a_daemon_is_drained_and_reloaded() {
    let fake = Fake::start(true);
    fake.script(|script| script.running.extend([5, 1, 0]));
    let drained = &objects(&fake, &["drain"])[0];
    assert_eq!(drained, &json!({"jobs_running": 5, "jobs_kept": 2}));
    assert!(text(&fake, &["drain", "--wait"]).contains("jobs that run on: 0,"));
    assert_eq!(
        objects(&fake, &["drain", "--resume"])[0]["was_draining"],
        true
    );
    let calls = fake.script(|script| script.calls.clone());
    assert_eq!(calls, ["drain", "drain", "drain", "resume"]);
    let shown = text(&fake, &["reload"]);
    assert_eq!(
        shown,
        "in effect: logging.level\nneed a restart: server.listen\n"
    );
    let reloaded = &objects(&fake, &["reload"])[0];
    assert_eq!(reloaded["need_restart"], json!(["server.listen"]));
}

#[test]
fn a_daemon_that_is_not_there_and_a_bad_address_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let gone = format!("unix://{}/socket", folder.path().display());
    let (request, out) = (bundled("winning-post"), folder.path().join("proof"));
    let submit = submission(&request, &out);
    for command in [&["status"][..], &["cancel", "a"], &["reload"], &submit] {
        fails(&gone, command, 1, "start it with `cuzk serve`");
        fails(&gone, command, 1, &gone);
    }
    for bad in [
        "",
        "prover",
        "http://prover:1",
        "unix://socket",
        "prover:99999",
    ] {
        fails(bad, &["status"], 2, "unix:///PATH");
    }
}

#[test]
fn bad_input_is_told_before_a_daemon_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("bad.json"), r#"{"proof_kind": 7}"#).unwrap();
    std::fs::write(at("empty"), "# no token\n").unwrap();
    let nowhere = "unix:///nowhere/socket";
    fails(
        nowhere,
        &submission(&at("bad.json"), &at("proof")),
        2,
        "proof_kind",
    );
    fails(nowhere, &submission(&at("none"), &at("proof")), 2, "none");
    fails(
        nowhere,
        &submission(&bundled("porep"), &at("no/proof")),
        2,
        "proof",
    );
    let same = submission(Path::new("x"), Path::new("x"));
    fails(nowhere, &same, 2, "x");
    let empty = at("empty");
    let token = ["status", "--token-file", empty.to_str().unwrap()];
    fails(nowhere, &token, 2, "no token in it");
    fails(
        "tcp://192.0.2.1:1",
        &["status", "--ca", token[2]],
        2,
        "no certificate in it",
    );
    fails(nowhere, &["status", "--certificate", "x"], 2, "--key");
}
