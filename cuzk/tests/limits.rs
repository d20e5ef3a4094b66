//! `cuzk prove` under a limit of its process's threads, and under one of its address space. On
//! each rung of a ladder it proves, or ends with an error. A daemon and a worker under a limit of
//! the address space that is too low for them.

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
use std::process::{Command, Output};

use tempfile::TempDir;

/// The threads of the pools. Those of the engine are beside them.
const CONFIG: &str = "[srs]\nmultiples = []\n[synthesis]\nthreads = 2\npartition_workers = 1\n\
                      [gpus]\ndevices = \"cpu\"\ngpu_threads = 2\n";

/// Threads, the main one among them: none, few, and as many as are used.
const THREADS: [u32; 10] = [1, 2, 3, 4, 6, 9, 14, 20, 30, 200];

/// Address spaces in MiB: too little for anything but the version, too little for the threads,
/// and enough.
const ADDRESSES_MIB: [u32; 22] = [
    96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024, 1280, 1536, 1792, 2048,
    2560, 3072, 4096, 8192,
];

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
        .output()
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
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), None, "{rung}: {told}");
    assert!(!told.contains("panicked"), "{rung}: {told}");
    if output.status.success() {
        assert_eq!(std::fs::read(&out).unwrap().len(), 192, "{rung}");
    } else {
        let code = output.status.code();
        assert!(matches!(code, Some(1 | 2)), "{rung}: {code:?}: {told}");
        let last = told.trim_end().lines().last().unwrap_or_default();
        assert!(last.contains("[CUZK-"), "{rung}: {told}");
        assert!(!out.exists(), "{rung}");
    }
    output
}

/// Returns a number of a user that has no process. Only the system's first user becomes
/// another. The limit counts all threads of a user, so each of the three tests has its own user.
fn another_user(folder: &Path, test: u32) -> Option<String> {
    assert!(test < 3);
    let id = (100_000 + 3 * std::process::id() + test).to_string();
    let as_other = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"];
    let may_run = Command::new(as_other[0])
        .args(&as_other[1..])
        .args([env!("CARGO_BIN_EXE_cuzk"), "version"])
        .current_dir(folder)
        .output();
    let may_read = Command::new(as_other[0])
        .args(&as_other[1..])
        .args(["cat", "--"])
        .args([request(), param_cache().join(".")])
        .output();
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

/// So few threads are not enough for its runtime, or for its engine.
#[test]
fn a_daemon_with_few_threads_names_the_limit() {
    let folder = prepared();
    let Some(id) = another_user(folder.path(), 1) else {
        return skipped("a_daemon_with_few_threads_names_the_limit");
    };
    for threads in 1..=4 {
        let output = Command::new("prlimit")
            .arg(format!("--nproc={threads}"))
            .args(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
            .args([env!("CARGO_BIN_EXE_cuzk"), "serve", "--config"])
            .arg(folder.path().join("cuzk.toml"))
            .arg("--listen")
            .arg(format!("unix://{}/{threads}", folder.path().display()))
            .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
            .env("XDG_STATE_HOME", folder.path())
            .current_dir(folder.path())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!told.contains("panicked"), "{threads}: {told}");
        assert!(told.contains("[CUZK-0012]"), "{threads}: {told}");
        assert!(told.contains("ulimit -u"), "{threads}: {told}");
        assert_eq!(output.status.code(), Some(1), "{threads}: {told}");
    }
}

/// Commands that have no engine. Rayon would start threads for what runs in no pool, and panics where
/// it gets none.
#[test]
fn commands_with_few_threads_are_an_error_and_no_panic() {
    let folder = prepared();
    let Some(id) = another_user(folder.path(), 2) else {
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
                .output()
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

/// Returns true if the system can load the program at all in so many bytes.
fn loads(limit: &str) -> bool {
    let version = Command::new("prlimit")
        .args([limit, env!("CARGO_BIN_EXE_cuzk"), "version"])
        .output()
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
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {told}");
        assert!(named_limit_kib(&output) > 512 << 10, "{told}");
        assert!(told.contains("[CUZK-0017]"), "{told}");
    }
}
