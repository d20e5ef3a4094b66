//! Signals to the command line: what it leaves, and what it says.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use cuzk_bounded::{BoundedChild, BoundedCommand, BoundedJoin};
use serde_json::Value;

/// Proofs of one command: a few seconds of work.
const REQUESTS: usize = 30;

/// The time after which a command that was to end hangs.
const PATIENCE: Duration = Duration::from_secs(300);

fn param_cache() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn cuzk(cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    command.env("FIL_PROOFS_PARAMETER_CACHE", cache);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// For a WindowPoSt over the bundled sector.
fn request() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/sector-2kib/window-post.json")
}

/// Makes the parameters, unless another test has.
fn generate() {
    let generate = ["params", "generate", "--kind", "window-post"];
    let status = cuzk(&param_cache())
        .args(generate)
        .args(["--sector-size", "2KiB"])
        .output_bounded();
    assert!(status.unwrap().status.success());
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

/// Returns what a command wrote until its end. One that does not end is killed, and fails the test.
fn ended(child: Child) -> Output {
    ended_within(PATIENCE, child)
}

fn ended_within(patience: Duration, child: Child) -> Output {
    let id = child.id().to_string();
    let (ends, end) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        let is_late = end.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout);
        if is_late {
            Command::new("kill").args(["-KILL", &id]).status().unwrap();
        }
        is_late
    });
    let output = child.wait_with_output_bounded().unwrap();
    drop(ends);
    assert!(
        !watch.join_bounded().unwrap(),
        "it did not end: {}",
        stderr(&output)
    );
    output
}

#[test]
#[should_panic(expected = "it did not end")]
fn a_command_that_does_not_end_fails_the_test() {
    let mut sleeps = Command::new("sleep");
    sleeps
        .arg("600")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ended_within(Duration::from_millis(100), sleeps.spawn().unwrap());
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A folder in which many proofs are to be made under a journal.
struct Work {
    folder: tempfile::TempDir,
}

impl Work {
    fn new() -> Self {
        generate();
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("jobs.journal");
        let config = format!("[jobs]\njournal = {:?}\n", journal.to_str().unwrap());
        std::fs::write(folder.path().join("cuzk.toml"), config).unwrap();
        Self { folder }
    }

    fn out(&self, n: usize) -> PathBuf {
        self.folder.path().join(format!("proof-{n}"))
    }

    fn timeline(&self) -> PathBuf {
        self.folder.path().join("timeline.json")
    }

    fn prove(&self, ids: bool) -> Child {
        self.command(ids).spawn().unwrap()
    }

    fn command(&self, ids: bool) -> Command {
        let request = request();
        let mut command = cuzk(&param_cache());
        let config = self.folder.path().join("cuzk.toml");
        command.arg("--config").arg(config).arg("prove");
        command.arg("--timeline").arg(self.timeline());
        for n in 0..REQUESTS {
            command.arg("--request").arg(&request);
            command.arg("--out").arg(self.out(n));
            if ids {
                command.args(["--id", &format!("sector-{n}")]);
            }
        }
        command
    }

    /// Until the engine has its journal, before which signals are looked for.
    fn wait_until_begun(&self) {
        let journal = self.folder.path().join("jobs.journal");
        wait_until("it has begun", || journal.exists());
    }

    fn made(&self) -> usize {
        (0..REQUESTS).filter(|n| self.out(*n).exists()).count()
    }

    /// Every proof that is there is whole, and nothing half-written is beside them.
    fn check_files(&self) {
        for n in (0..REQUESTS).filter(|n| self.out(*n).exists()) {
            assert_eq!(self.out(n).metadata().unwrap().len(), 192);
        }
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let known = ["cuzk.toml", "jobs.journal", "proof-", "timeline.json"];
            assert!(known.iter().any(|known| name.starts_with(known)), "{name}");
        }
    }
}

/// Waits until a command looks for signals. Before that a signal ends it without a word.
fn wait_until_it_looks(child: &Child) {
    const TERM: u64 = 1 << (15 - 1);
    let status = format!("/proc/{}/status", child.id());
    let is_caught = |text: &str| {
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        u64::from_str_radix(mask.unwrap().trim(), 16).unwrap() & TERM != 0
    };
    wait_until("it looks for signals", || {
        // Another system has no such file.
        std::fs::read_to_string(&status).map_or(true, |text| is_caught(&text))
    });
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The objects on standard output.
fn reports(output: &Output) -> Vec<Value> {
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_request_has_its_object_whatever_a_signal_left_of_it() {
    let work = Work::new();
    let mut command = work.command(true);
    let child = command.arg("--json").spawn().unwrap();
    wait_until("a proof", || work.made() > 0);
    send("-TERM", &child);
    let output = ended(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("stopped by SIGTERM"), "{said}");
    let reports = reports(&output);
    assert_eq!(reports.len(), REQUESTS, "{said}");
    for (n, report) in reports.iter().enumerate() {
        let id = format!("sector-{n}");
        assert_eq!(report["id"], id, "in the requests' order");
        assert!(report["request"].as_str().unwrap().ends_with("post.json"));
        if work.out(n).exists() {
            assert_eq!(report["verified"], true, "{report}");
            assert!(!report["timeline"].as_array().unwrap().is_empty());
        } else {
            let error = report["error"].as_str().unwrap();
            assert!(error.starts_with(&format!("stopped by SIGTERM; {id}: ")));
            assert_eq!(report["exit_code"], 143, "{report}");
        }
    }
    assert!(work.made() < REQUESTS, "it was to be stopped half-way");
}

#[test]
fn what_is_stopped_goes_on_with_the_same_command() {
    let work = Work::new();
    let child = work.prove(true);
    // More are proved meanwhile, it depends on the machine how many.
    wait_until("a proof", || work.made() > 0);
    send("-TERM", &child);
    let output = ended(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("stopped by SIGTERM"), "{said}");
    assert!(said.contains("give the same command again"), "{said}");
    assert!(output.stdout.is_empty());
    let made = work.made();
    assert!(made > 0, "the second command is to find proofs");
    assert_eq!(said.matches(": proved, ").count(), made, "{said}");
    assert!(made < REQUESTS, "it was to be stopped half-way");
    work.check_files();
    let trace = std::fs::read_to_string(work.timeline()).unwrap();
    assert!(
        trace.contains("\"witness\""),
        "the timeline has the stages until then"
    );
    let kept: Vec<_> = (0..REQUESTS)
        .map(|n| std::fs::read(work.out(n)).ok())
        .collect();

    let output = ended(work.prove(true));
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(work.made(), REQUESTS);
    work.check_files();
    for (n, kept) in kept.into_iter().enumerate() {
        if let Some(kept) = kept {
            let now = std::fs::read(work.out(n)).unwrap();
            assert_eq!(now, kept, "proof {n} is not made twice");
        }
    }
}

#[test]
fn what_has_no_name_is_said_to_be_lost() {
    let work = Work::new();
    let child = work.prove(false);
    work.wait_until_begun();
    send("-INT", &child);
    let output = ended(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("stopped by SIGINT"), "{said}");
    assert!(said.contains("nothing of it is kept"), "{said}");
    work.check_files();
    assert!(work.timeline().exists());
}

/// A cache with parameters and no circuits.
fn cache_with_parameters() -> tempfile::TempDir {
    generate();
    let cache = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(param_cache()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("v28-proof-of-spacetime")
            && (name.ends_with("params") || name.ends_with("vk"))
        {
            std::fs::copy(&path, cache.path().join(name)).unwrap();
        }
    }
    cache
}

/// A cache in which the circuit's file gives nothing: no worker comes to its next chunk.
fn cache_that_gives_nothing() -> tempfile::TempDir {
    let cache = cache_with_parameters();
    for file in std::fs::read_dir(cache.path()).unwrap() {
        let pipe = file.unwrap().path().with_extension("circuit");
        let made = Command::new("mkfifo")
            .arg(&pipe)
            .stderr(Stdio::null())
            .status();
        made.unwrap();
    }
    cache
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let cache = cache_that_gives_nothing();
    let request = request();
    let out = cache.path().join("proof");
    for signals in [1, 2] {
        let mut command = cuzk(cache.path());
        command.arg("prove").arg("--request").arg(&request);
        let mut child = command.arg("--out").arg(&out).spawn().unwrap();
        // It comes to the file.
        thread::sleep(Duration::from_secs(1));
        send("-TERM", &child);
        // Two that come at once are one.
        let started = Instant::now();
        while signals == 2 && child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < PATIENCE, "a second signal ends it");
            send("-TERM", &child);
            thread::sleep(Duration::from_millis(50));
        }
        let output = ended(child);
        assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
        // It says so when it has waited for the engine; which a second one does not let it.
        assert_eq!(stderr(&output).contains("stopped by"), signals == 1);
        assert!(!out.exists());
    }
}

#[test]
fn a_demo_that_makes_its_parameters_answers_too() {
    stopped_while_it_makes_parameters(&["demo"]);
}

/// Commands that measure make the parameters that are missing, too.
#[test]
fn a_measurement_that_makes_its_parameters_answers_too() {
    stopped_while_it_makes_parameters(&["plan", "calibrate", "--out", "/dev/null"]);
}

/// Once the parameters are there, a signal ends a measurement at once.
#[test]
fn a_measurement_ends_at_once() {
    generate();
    let mut bench = cuzk(&param_cache());
    // This one has its engine in its own process.
    bench.args(["bench", "engine", "--kind", "window-post"]);
    let child = bench.args(["--runs", "1000"]).spawn().unwrap();
    let tasks = Path::new("/proc").join(child.id().to_string()).join("task");
    let is_engines = |name: &str| name.starts_with("cuzk-synth");
    wait_until("an engine runs", || {
        let tasks = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        let mut names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
        names.any(|name| name.is_ok_and(|name| is_engines(&name)))
    });
    send("-TERM", &child);
    assert_eq!(ended(child).status.code(), Some(143));
}

/// Sends a signal once half a gigabyte is on its way.
fn stopped_while_it_makes_parameters(arguments: &[&str]) {
    let cache = tempfile::tempdir().unwrap();
    let mut child = cuzk(cache.path()).args(arguments).spawn().unwrap();
    // Twenty seconds or so of work begin.
    wait_until("it makes parameters", || {
        let mut files = std::fs::read_dir(cache.path()).unwrap();
        let is_partial = |path: PathBuf| path.extension().is_some_and(|last| last == "partial");
        files.any(|file| file.is_ok_and(|file| is_partial(file.path())))
    });
    send("-TERM", &child);
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(60), "it ends");
        thread::sleep(Duration::from_millis(5));
    }
    let output = ended(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("stopped by SIGTERM"), "{said}");
    assert!(said.contains("parameters are not made"), "{said}");
    assert!(output.stdout.is_empty());
    // "Nothing is kept": the half of a gigabyte that was written is gone, too.
    let left = std::fs::read_dir(cache.path()).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    let is_partial = |name: &std::ffi::OsString| name.to_string_lossy().contains("partial");
    assert!(!left.iter().any(is_partial), "{left:?}");
}

/// A signal may come when the work is nearly done, so what is said is compared with what is left.
#[test]
fn a_demo_says_what_it_leaves_whenever_a_signal_comes() {
    for moment in ["circuit", "params", "vk"] {
        let cache = tempfile::tempdir().unwrap();
        let mut demo = cuzk(cache.path());
        let mut child = demo
            .args(["demo", "--kind", "window-post"])
            .spawn()
            .unwrap();
        let files = |extension: &str| {
            let entries = std::fs::read_dir(cache.path()).unwrap();
            let paths = entries.map(|entry| entry.unwrap().path());
            let is_it = |path: &PathBuf| path.extension().is_some_and(|last| last == extension);
            paths.filter(is_it).count()
        };
        wait_until(moment, || files(moment) > 0);
        assert_eq!(child.try_wait().unwrap(), None, "it proves after that");
        send("-TERM", &child);
        let output = ended(child);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(143), "{moment}: {said}");
        let is_made = files("params") + files("vk") == 2;
        assert!(is_made || moment != "vk", "{said}");
        let kept = format!("its test parameters are in {}", cache.path().display());
        assert_eq!(said.contains(&kept), is_made, "{moment}: {said}");
        let circuit = "are not made; only the compiled circuit is kept";
        assert_eq!(said.contains(circuit), !is_made, "{moment}: {said}");
        assert_eq!(files("partial"), 0, "{moment}");
    }
}

/// The file of multiples has up to 2 GiB.
#[test]
fn multiples_that_a_signal_stops_leave_nothing() {
    if cuzk_kernels::testing::ifma().is_none() {
        // Without these instructions there are no multiples.
        return;
    }
    let cache = cache_with_parameters();
    let mut prepare = cuzk(cache.path());
    prepare.args(["params", "prepare", "--kind", "window-post"]);
    let child = prepare.args(["--sector-size", "2KiB"]).spawn().unwrap();
    let files = |extension: &str| {
        let entries = std::fs::read_dir(cache.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|last| last == extension))
            .count()
    };
    // The circuit is compiled first, in another unfinished file.
    wait_until("it writes multiples", || {
        files("circuit") > 0 && files("partial") > 0
    });
    send("-INT", &child);
    let output = ended(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(files("partial"), 0, "{said}");
    let is_lost = said.contains("its multiples are not made, and nothing of them is kept");
    assert_eq!(is_lost, files("multiples") == 0, "{said}");
}

#[test]
fn a_demo_is_not_told_of_options_that_it_does_not_have() {
    let cache = cache_that_gives_nothing();
    let mut demo = cuzk(cache.path());
    let child = demo
        .args(["demo", "--kind", "window-post"])
        .spawn()
        .unwrap();
    // It comes to the file.
    thread::sleep(Duration::from_secs(1));
    send("-TERM", &child);
    let output = ended(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("nothing of it is kept"), "{said}");
    assert!(!said.contains("--id"), "{said}");
}

#[test]
fn a_request_that_nobody_writes_does_not_keep_a_signal_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("request.json");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut prove = cuzk(&param_cache());
    prove.arg("--json").arg("prove");
    let missing = folder.path().join("missing.json");
    let requests = [&request(), &missing, &pipe, &request()];
    for (n, request) in requests.into_iter().enumerate() {
        prove.arg("--request").arg(request);
        prove.arg("--out").arg(folder.path().join(n.to_string()));
        prove.arg("--id").arg(n.to_string());
    }
    let mut child = prove.spawn().unwrap();
    // It comes to the pipe.
    thread::sleep(Duration::from_secs(1));
    send("-TERM", &child);
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(5));
    }
    // Without effect where it has ended.
    child.kill().unwrap();
    let output = ended(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("request.json was not read"), "{said}");
    // The error of one was reported before.
    let each = reports(&output).into_iter();
    let each = each.map(|report| (report["id"].clone(), report["exit_code"].clone()));
    let each: Vec<_> = each.collect();
    let expected = [("1", 2), ("0", 143), ("2", 143), ("3", 143)];
    assert_eq!(each, expected.map(|(id, code)| (id.into(), code.into())));
}

/// A proof that nobody takes is as bad as an engine that does not end.
#[test]
fn a_pipe_that_nobody_reads_does_not_keep_a_signal_waiting() {
    let work = Work::new();
    let pipe = work.folder.path().join("proof-pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let request = request();
    let mut command = cuzk(&param_cache());
    command.arg("prove");
    for out in [&pipe, &work.out(0)] {
        command.arg("--request").arg(&request);
        command.arg("--out").arg(out);
    }
    let child = command.spawn().unwrap();
    wait_until("the other proof", || work.out(0).exists());
    // The one that nobody reads is made meanwhile, or is said to be lost.
    thread::sleep(Duration::from_millis(500));
    send("-TERM", &child);
    let output = ended(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("proof-0"), "{said}");
    assert!(said.contains("proved, but not written"), "{said}");
}

/// The sector of `cuzk vanilla` is a folder of replicas and trees.
#[test]
fn what_a_killed_sealing_left_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let vanilla = |size| {
        let mut command = cuzk(&param_cache());
        command.env("TMPDIR", folder.path());
        command.args(["vanilla", "--kind", "window-post", "--sector-size", size]);
        command.args(["--out", "/dev/null"]);
        command.spawn().unwrap()
    };
    let scratch = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.collect::<Vec<_>>()
    };
    // A quarter of a minute of work.
    let [mut killed, mut living] = [(); 2].map(|()| vanilla("8MiB"));
    wait_until("both seal", || scratch().len() == 2);
    killed.kill().unwrap();
    assert_eq!(killed.wait_bounded().unwrap().signal(), Some(9));
    assert_eq!(scratch().len(), 2);
    let sealed = ended(vanilla("2KiB"));
    assert!(sealed.status.success(), "{}", stderr(&sealed));
    assert_eq!(scratch().len(), 1, "one is in use");
    assert!(living.try_wait().unwrap().is_none());
    living.kill().unwrap();
    living.wait_bounded().unwrap();
}

/// The proofs library cannot be stopped in the midst of a sector.
#[test]
fn a_sealing_that_a_signal_ends_leaves_nothing() {
    for (signal, code, before) in [("-TERM", 143, None), ("-INT", 130, Some("before"))] {
        let [temporary, results] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let out = results.path().join("request.json");
        if let Some(before) = before {
            std::fs::write(&out, before).unwrap();
        }
        let mut vanilla = cuzk(&param_cache());
        vanilla.env("TMPDIR", temporary.path());
        vanilla.args(["vanilla", "--kind", "window-post", "--sector-size", "8MiB"]);
        let child = vanilla.arg("--out").arg(&out).spawn().unwrap();
        // A quarter of a minute of work.
        wait_until("it seals", || {
            let made = names_in(temporary.path());
            made.iter()
                .any(|name| temporary.path().join(name).join("replica").exists())
        });
        send(signal, &child);
        let output = ended(child);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(
            said.contains("window-post-8MiB: the request is not made"),
            "{said}"
        );
        assert!(
            said.contains("nothing of it is kept") == before.is_none(),
            "{said}"
        );
        assert!(said.contains("is as it was") == before.is_some(), "{said}");
        assert_eq!(names_in(temporary.path()), [""; 0], "{said}");
        assert_eq!(
            names_in(results.path()).len(),
            before.iter().count(),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(&out).ok().as_deref(), before);
        assert!(output.stdout.is_empty());
    }
}

/// This circuit takes minutes.
#[test]
fn a_circuit_that_a_signal_stops_is_not_there() {
    for (signal, code) in [("-TERM", 143), ("-INT", 130)] {
        let folder = tempfile::tempdir().unwrap();
        let mut build = cuzk(&param_cache());
        build.args(["pce", "build", "--kind", "porep", "--sector-size", "32GiB"]);
        build.arg("--out").arg(folder.path().join("circuit"));
        let child = build.spawn().unwrap();
        wait_until_it_looks(&child);
        send(signal, &child);
        let output = ended(child);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        let left = "porep-32GiB: the compiled circuit is not made, and nothing of it is kept";
        assert!(said.contains(left), "{said}");
        assert_eq!(names_in(folder.path()), [""; 0]);
        assert!(output.stdout.is_empty());
    }
}

/// A pipe without a writer, or without a reader, never ends by itself.
#[test]
fn a_result_that_nobody_takes_and_a_request_that_nobody_writes_are_left_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = Command::new("mkfifo").arg(at("pipe")).status();
    assert!(made.unwrap().success());
    let of_circuit = ["--kind", "winning-post", "--sector-size", "2KiB"];
    let (pipe, out) = (at("pipe"), at("out"));
    for (command, words) in [
        (
            [&["vanilla"], &of_circuit[..], &["--out", &pipe]].concat(),
            "the request is not whole in",
        ),
        (
            [&["pce", "build"], &of_circuit[..], &["--out", &pipe]].concat(),
            "the compiled circuit is not",
        ),
        (
            vec!["aggregate", "--request", &pipe, "--out", &out],
            "the aggregate is not made, and nothing of it is kept",
        ),
    ] {
        let child = cuzk(&param_cache()).args(&command).spawn().unwrap();
        wait_until_it_looks(&child);
        // It comes to the pipe.
        thread::sleep(Duration::from_secs(2));
        send("-INT", &child);
        let output = ended(child);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(
            said.contains("stopped by SIGINT; ") && said.contains(words),
            "{said}"
        );
    }
    assert_eq!(names_in(folder.path()), ["pipe"]);
}
