//! Commands under limits of the process. On each rung of a ladder a command does its work, or ends
//! with an error that names the limit. `cuzk prove` and commands without an engine have ladders of
//! threads and of the address space. A daemon, a worker and a proxy have ladders of threads and of
//! open files. A daemon and a worker are also under a limit of the address space that is too low for
//! them. A daemon that runs is left without threads for its calls.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cuzk_bounded::{BoundedChild, BoundedCommand, Killed};
use tempfile::TempDir;

/// The threads of the pools. Those of the engine are beside them.
const CONFIG: &str = "[srs]\nmultiples = []\n[synthesis]\nthreads = 2\npartition_workers = 1\n\
                      [gpus]\ndevices = \"cpu\"\ngpu_threads = 2\n";

/// Threads, the main one among them: none, few, and as many as are used.
const THREADS: [u32; 10] = [1, 2, 3, 4, 6, 9, 14, 20, 30, 200];

/// Threads of a process that goes on: too few for its runtime, too few for an engine, and enough.
const THREADS_OF_SERVICES: [u32; 9] = [1, 2, 3, 4, 5, 8, 12, 20, 200];

/// Open files of a process that goes on, from the first one beside the three of each process.
const FILES: std::ops::RangeInclusive<u32> = 4..=32;

/// The time after which a service that was to start or to end hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Address spaces in MiB: too little for anything but the version, too little for the threads,
/// and enough.
const ADDRESSES_MIB: [u32; 22] = [
    96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024, 1280, 1536, 1792, 2048,
    2560, 3072, 4096, 8192,
];

/// Address spaces of commands without an engine in MiB, of which the last ones may be enough.
const ADDRESSES_OF_COMMANDS_MIB: [u64; 7] = [96, 160, 256, 512, 768, 1024, 1536];

fn param_cache() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn request() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/sector-2kib/window-post.json")
}

/// A folder in which every user may write, and the parameters in their cache.
fn prepared() -> TempDir {
    let generated = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(["params", "generate", "--kind", "window-post"])
        .args(["--sector-size", "2KiB"])
        .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
        .output_bounded()
        .unwrap();
    assert!(generated.status.success(), "{generated:?}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cuzk.toml"), CONFIG).unwrap();
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).unwrap();
    folder
}

/// Has `limited`, a program with arguments that runs another, run the prover.
fn prove(limited: &[&str], folder: &Path, rung: u32) -> Output {
    let out = folder.join(format!("proof-{rung}"));
    let (name, arguments) = limited.split_first().unwrap();
    let output = Command::new(name)
        .args(arguments)
        .arg(env!("CARGO_BIN_EXE_cuzk"))
        .arg("prove")
        .arg("--config")
        .arg(folder.join("cuzk.toml"))
        .arg("--request")
        .arg(request())
        .arg("--out")
        .arg(&out)
        .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
        .current_dir(folder)
        .output_bounded()
        .unwrap();
    if is_done(&output, &rung.to_string()) {
        assert_eq!(std::fs::read(&out).unwrap().len(), 192, "{rung}");
    } else {
        assert!(!out.exists(), "{rung}");
    }
    output
}

/// Returns true if a command did its work. Else it must have ended with an error that has a code,
/// and neither with a panic nor by a signal.
fn is_done(output: &Output, place: &str) -> bool {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), None, "{place}: {told}");
    assert!(!told.contains("panicked"), "{place}: {told}");
    if !output.status.success() {
        let code = output.status.code();
        assert!(matches!(code, Some(1 | 2)), "{place}: {code:?}: {told}");
        let last = told.trim_end().lines().last().unwrap_or_default();
        assert!(last.contains("[CUZK-"), "{place}: {told}");
    }
    output.status.success()
}

/// Returns a number of a user that has no process. Only the system's first user becomes
/// another. The limit counts all threads of a user, so each ladder of threads has its own user.
fn another_user(folder: &Path, ladder: u32) -> Option<String> {
    assert!(ladder < 6);
    let id = (100_000 + 6 * std::process::id() + ladder).to_string();
    let as_other = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"];
    let may_run = Command::new(as_other[0])
        .args(&as_other[1..])
        .args([env!("CARGO_BIN_EXE_cuzk"), "version"])
        .current_dir(folder)
        .output_bounded();
    let may_read = Command::new(as_other[0])
        .args(&as_other[1..])
        .args(["cat", "--"])
        .args([request(), param_cache().join(".")])
        .output_bounded();
    // `cat` of a folder fails, and says that it is one if it may look at it.
    let looks = |output: &Output| {
        let told = String::from_utf8_lossy(&output.stderr);
        !output.stdout.is_empty() && !told.contains("denied")
    };
    let may = may_run.is_ok_and(|output| output.status.success());
    (may && may_read.is_ok_and(|output| looks(&output))).then_some(id)
}

/// Says that a test was skipped. The harness keeps back what `eprintln!` writes.
fn skipped(test: &str) {
    let line = format!("skipped, it needs to become another user: {test}\n");
    drop(std::io::stderr().write_all(line.as_bytes()));
}

#[test]
fn few_threads_are_an_error_and_no_panic() {
    let folder = prepared();
    let Some(id) = another_user(folder.path(), 0) else {
        return skipped("few_threads_are_an_error_and_no_panic");
    };
    let mut proved = Vec::new();
    for threads in THREADS {
        let limit = format!("--nproc={threads}");
        let limited = ["prlimit", &limit, "setpriv", "--reuid", &id, "--regid", &id];
        let limited = [&limited[..], &["--clear-groups"]].concat();
        let output = prove(&limited, folder.path(), threads);
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(told.contains("[CUZK-0012]"), "{threads}: {told}");
            assert!(told.contains("ulimit -u"), "{threads}: {told}");
        }
        proved.push(output.status.success());
    }
    assert!(!proved[0], "it proves on no thread but the main one");
    assert!(
        proved[THREADS.len() - 1],
        "it does not prove on {THREADS:?}"
    );
}

/// A command that goes on until a signal.
struct Service {
    arguments: Vec<String>,
    /// Returns true if it has started, from its folder and its log.
    has_started: fn(&Path, &str) -> bool,
}

/// Returns a daemon, a worker and a proxy, with their files in `folder`.
fn services(folder: &Path) -> [Service; 3] {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    std::fs::write(path("own.pem"), own.cert.pem()).unwrap();
    std::fs::write(path("own.key"), own.signing_key.serialize_pem()).unwrap();
    let socket = |name: &str| format!("unix://{}", path(name));
    let (serve, proxy) = (socket("serve.sock"), socket("proxy.sock"));
    let config = path("cuzk.toml");
    let service = |arguments: &[&str], has_started: fn(&Path, &str) -> bool| {
        let config = ["--config", &*config];
        let arguments = [arguments, &config[..]].concat();
        Service {
            arguments: arguments.into_iter().map(str::to_owned).collect(),
            has_started,
        }
    };
    // No program waits at the port of the worker's server and of the proxy's daemon.
    let (http, cluster, daemon) = ("127.0.0.1:0", "nats://127.0.0.1:9", "tcp://localhost:9");
    let (pem, key) = (path("own.pem"), path("own.key"));
    let to = ["--listen", &proxy, "--to", daemon];
    let files = ["--certificate", &pem, "--key", &key, "--ca", &pem];
    let of_proxy = [&["proxy"], &to[..], &files[..]].concat();
    [
        service(&["serve", "--listen", &serve, "--http", http], |_, log| {
            log.contains("serves clients on")
        }),
        service(&["worker", "--cluster", cluster], |_, log| {
            log.contains("tries again after a pause")
        }),
        service(&of_proxy, |folder, _| folder.join("proxy.sock").exists()),
    ]
}

fn terminate(child: &Child) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(sent.success());
}

/// Has `limited`, a program with arguments that becomes another, run the service until it has
/// started or ended. Returns true if it had started. Else its error has the code and the advice.
fn starts(service: &Service, limited: &[&str], folder: &Path, code: &str, advice: &str) -> bool {
    let log = folder.join("log");
    // Of an earlier proxy, if it was ended before it could remove it.
    std::fs::remove_file(folder.join("proxy.sock")).ok();
    let (name, arguments) = limited.split_first().unwrap();
    let mut child = Command::new(name)
        .args(arguments)
        .arg(env!("CARGO_BIN_EXE_cuzk"))
        .args(&service.arguments)
        .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
        .env("XDG_STATE_HOME", folder)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let told = || std::fs::read_to_string(&log).unwrap();
    let begun = Instant::now();
    let mut has_started = false;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if !has_started && (service.has_started)(folder, &told()) {
            has_started = true;
            terminate(&child);
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait_bounded().unwrap();
            panic!("{limited:?}: it does not end: {}", told());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (told, place) = (told(), format!("{limited:?} {:?}", service.arguments[0]));
    assert_eq!(status.signal(), None, "{place}: {told}");
    assert!(!told.contains("panicked"), "{place}: {told}");
    if !has_started {
        assert_eq!(status.code(), Some(1), "{place}: {told}");
        let last = told.trim_end().lines().last().unwrap_or_default();
        assert!(last.ends_with(&format!("[{code}]")), "{place}: {told}");
        assert!(last.contains(advice), "{place}: {told}");
    }
    has_started
}

/// Checks that a service with the least is an error, and with the most starts. Between them it depends
/// on the machine from where on it starts.
fn is_a_ladder(started: &[bool], service: &Service) {
    let place = format!("{:?}: {started:?}", service.arguments[0]);
    assert!(!started[0] && started[started.len() - 1], "{place}");
}

#[test]
fn services_with_few_threads_name_the_limit() {
    let folder = prepared();
    for (service, ladder) in services(folder.path()).iter().zip(1..) {
        let Some(id) = another_user(folder.path(), ladder) else {
            return skipped("services_with_few_threads_name_the_limit");
        };
        let started = THREADS_OF_SERVICES.map(|threads| {
            let limit = format!("--nproc={threads}");
            let limited = ["prlimit", &limit, "setpriv", "--reuid", &id, "--regid", &id];
            let limited = [&limited[..], &["--clear-groups"]].concat();
            starts(service, &limited, folder.path(), "CUZK-0012", "ulimit -u")
        });
        is_a_ladder(&started, service);
    }
}

/// Commands that have no engine. Rayon would start threads for what runs in no pool, and panics where
/// it gets none.
#[test]
fn commands_with_few_threads_are_an_error_and_no_panic() {
    let folder = prepared();
    let Some(id) = another_user(folder.path(), 4) else {
        return skipped("commands_with_few_threads_are_an_error_and_no_panic");
    };
    let made = prove(&["env"], folder.path(), 0);
    assert!(made.status.success(), "{made:?}");
    let (request, proof) = (request(), folder.path().join("proof-0"));
    let [request, proof] = [&request, &proof].map(|path| path.to_str().unwrap());
    for command in [
        &["verify", "--request", request, "--proof", proof][..],
        &["synth", "--request", request, "--check"],
        &["bench", "witness", "--kind", "window-post", "--runs", "1"],
    ] {
        let mut ended_well = false;
        for threads in [1, 2, 3, 4, 5, 6, 8, 12, 200] {
            let output = Command::new("prlimit")
                .arg(format!("--nproc={threads}"))
                .args(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
                .arg(env!("CARGO_BIN_EXE_cuzk"))
                .args(command)
                .arg("--config")
                .arg(folder.path().join("cuzk.toml"))
                .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
                .current_dir(folder.path())
                .output_bounded()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(!told.contains("panicked"), "{command:?} {threads}: {told}");
            ended_well = output.status.success();
            if !ended_well {
                assert_eq!(output.status.code(), Some(1), "{threads}: {told}");
                assert!(told.contains("[CUZK-0012]"), "{threads}: {told}");
            }
        }
        assert!(ended_well, "{command:?} does not end well on 200 threads");
    }
}

/// Sets the soft limit of the threads of a user of `id`, for the user's process `child`.
fn limit_threads(id: &str, child: &Child, threads: u32) {
    let set = Command::new("setpriv")
        .args(["--reuid", id, "--regid", id, "--clear-groups", "prlimit"])
        .args(["--pid", &child.id().to_string()])
        .arg(format!("--nproc={threads}:"))
        .output_bounded()
        .unwrap();
    assert!(set.status.success(), "{set:?}");
}

/// Each call has a thread of its own. The limit of a daemon that runs is lowered below the threads
/// that it has, and raised again.
#[test]
fn a_daemon_that_gets_no_thread_says_so_and_goes_on() {
    let folder = prepared();
    let Some(id) = another_user(folder.path(), 5) else {
        return skipped("a_daemon_that_gets_no_thread_says_so_and_goes_on");
    };
    let [daemon, ..] = services(folder.path());
    let log = folder.path().join("log");
    let child = Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_cuzk"))
        .args(&daemon.arguments)
        .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
        .env("XDG_STATE_HOME", folder.path())
        .current_dir(folder.path())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut child = Killed(child);
    let told = || std::fs::read_to_string(&log).unwrap();
    let begun = Instant::now();
    while !(daemon.has_started)(folder.path(), &told()) {
        assert!(begun.elapsed() < PATIENCE, "{}", told());
        std::thread::sleep(Duration::from_millis(5));
    }
    let address = format!("unix://{}", folder.path().join("serve.sock").display());
    let resume = || {
        let output = Command::new(env!("CARGO_BIN_EXE_cuzk"))
            .args(["drain", "--resume", "--address", &address])
            .output_bounded()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    limit_threads(&id, &child.0, 1);
    let (succeeds, error) = resume();
    assert!(!succeeds && error.contains("[CUZK-0012]"), "{error}");
    assert!(error.contains("ulimit -u"), "{error}");
    limit_threads(&id, &child.0, 200);
    let (succeeds, error) = resume();
    assert!(succeeds, "{error}");
    terminate(&child.0);
    assert!(child.0.wait_bounded().unwrap().success(), "{}", told());
    assert!(!told().contains("panicked"), "{}", told());
}

#[test]
fn services_with_few_open_files_name_the_limit() {
    let folder = prepared();
    for service in services(folder.path()) {
        let limits = FILES.map(|files| format!("--nofile={files}"));
        // The libraries of the program are files, too.
        let limits = limits.filter(|limit| loads(limit));
        let started = limits.map(|limit| {
            let limited = ["prlimit", limit.as_str()];
            starts(&service, &limited, folder.path(), "CUZK-0034", "ulimit -n")
        });
        is_a_ladder(&started.collect::<Vec<_>>(), &service);
    }
}

/// A client's runtime takes files before the client finds that nobody is there.
#[test]
fn a_client_with_few_open_files_names_the_limit() {
    let limits = FILES.map(|files| format!("--nofile={files}"));
    let told = limits.filter(|limit| loads(limit)).map(|limit| {
        let output = Command::new("prlimit")
            .args([&*limit, env!("CARGO_BIN_EXE_cuzk"), "status"])
            .args(["--address", "tcp://127.0.0.1:9"])
            .output_bounded()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{limit}: {told}");
        assert!(!told.contains("panicked"), "{limit}: {told}");
        told
    });
    let told: Vec<_> = told.collect();
    let (first, last) = (&told[0], &told[told.len() - 1]);
    assert!(
        first.contains("ulimit -n") && first.contains("[CUZK-0034]"),
        "{first}"
    );
    assert!(last.contains("nothing answers at"), "{last}");
}

/// Returns true if the system can load the program at all under the limit.
fn loads(limit: &str) -> bool {
    let version = Command::new("prlimit")
        .args([limit, env!("CARGO_BIN_EXE_cuzk"), "version"])
        .output_bounded()
        .unwrap();
    version.status.success()
}

/// Returns the number after `ulimit -v` in an error: a limit that is enough, in KiB.
fn named_limit_kib(output: &Output) -> u64 {
    let told = String::from_utf8_lossy(&output.stderr);
    let (_, number) = told
        .split_once("ulimit -v ")
        .unwrap_or_else(|| panic!("{told}"));
    let (number, _) = number.split_once('`').unwrap();
    number.parse().unwrap()
}

/// The allocator ends the process when the smallest allocation has no addresses. So the command
/// looks at the limit before it starts a thread.
#[test]
fn a_small_address_space_is_an_error_that_names_one_that_is_enough() {
    let folder = prepared();
    let (mut refused, mut proved) = (Vec::new(), Vec::new());
    for mib in ADDRESSES_MIB {
        let limit = format!("--as={}", u64::from(mib) << 20);
        if !loads(&limit) {
            assert!(proved.is_empty(), "{mib} MiB");
            continue;
        }
        let output = prove(&["prlimit", &limit], folder.path(), mib);
        if output.status.success() {
            proved.push(mib);
        } else {
            assert!(proved.is_empty(), "less than {mib} MiB was enough");
            refused.push(named_limit_kib(&output));
        }
    }
    assert!(proved.contains(&ADDRESSES_MIB[21]), "{proved:?}");
    assert!(!refused.is_empty(), "every limit was enough");
    let named = refused[refused.len() - 1];
    let limit = format!("--as={}", named << 10);
    let output = prove(&["prlimit", &limit], folder.path(), 0);
    assert!(output.status.success(), "{named} KiB: {output:?}");
}

/// Commands that have no engine look at the limit, too, before they start a pool.
#[test]
fn commands_in_a_small_address_space_name_one_that_is_enough() {
    let folder = prepared();
    let made = prove(&["env"], folder.path(), 0);
    assert!(made.status.success(), "{made:?}");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (request, proof) = (request().to_str().unwrap().to_owned(), path("proof-0"));
    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    let compiled = path("circuit");
    for command in [
        &["verify", "--request", &request, "--proof", &proof][..],
        &["synth", "--request", &request, "--check"],
        &[&["pce", "build", "--out", &compiled], &circuit[..]].concat(),
        // It makes the parameters anew, in a cache of its own.
        &[&["params", "generate"], &circuit[..]].concat(),
    ] {
        let run = |limit_bytes: u64| {
            let cache = match command[0] {
                "params" => folder.path().join(format!("parameters-{limit_bytes}")),
                _ => param_cache(),
            };
            let output = Command::new("prlimit")
                .arg(format!("--as={limit_bytes}"))
                .arg(env!("CARGO_BIN_EXE_cuzk"))
                .args(command)
                .args(["--config", &path("cuzk.toml")])
                .env("FIL_PROOFS_PARAMETER_CACHE", cache)
                .output_bounded()
                .unwrap();
            let is_done = is_done(&output, &format!("{command:?} {limit_bytes}"));
            (is_done, output)
        };
        let mut named_kib = None;
        for mib in ADDRESSES_OF_COMMANDS_MIB {
            let limit_bytes = mib << 20;
            if !loads(&format!("--as={limit_bytes}")) {
                continue;
            }
            let (is_done, output) = run(limit_bytes);
            if !is_done {
                named_kib = Some(named_limit_kib(&output));
            }
        }
        let named_kib = named_kib.unwrap_or_else(|| panic!("{command:?}: every limit was enough"));
        for limit_bytes in [named_kib << 10, 8192 << 20] {
            assert!(run(limit_bytes).0, "{command:?}: {limit_bytes}");
        }
    }
}

/// They are in a library, so a program that has them may not look.
#[test]
fn a_daemon_and_a_worker_look_at_the_address_space_before_they_start() {
    let folder = prepared();
    let config = folder.path().join("cuzk.toml");
    let socket = format!("unix://{}", folder.path().join("cuzk.sock").display());
    let limit = format!("--as={}", 512 << 20);
    for command in [
        &["serve", "--listen", &socket][..],
        // Nobody is there, and a worker waits for somebody.
        &["worker", "--cluster", "nats://127.0.0.1:9"],
    ] {
        let output = Command::new("timeout")
            .args(["60", "prlimit", &limit, env!("CARGO_BIN_EXE_cuzk")])
            .arg("--config")
            .arg(&config)
            .args(command)
            .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
            .env("XDG_STATE_HOME", folder.path())
            .output_bounded()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {told}");
        assert!(named_limit_kib(&output) > 512 << 10, "{told}");
        assert!(told.contains("[CUZK-0017]"), "{told}");
    }
}
