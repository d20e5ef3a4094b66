//! Refusals, their time and their exit codes; the help and the version; the files that
//! refused commands leave.

use cuzk_bounded::BoundedCommand;

use super::*;

fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn insecure_parameters_of_real_sizes_need_a_word_before_any_work() {
    let cache = tempfile::tempdir().unwrap();
    let circuit = ["--kind", "winning-post", "--sector-size", "512MiB"];
    let generate = [&["params", "generate"], &circuit[..]].concat();
    let output = cuzk_in(cache.path(), &generate);
    fails(2, "--i-know-these-are-insecure", &output);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("making"));
    assert_eq!(files_in(cache.path()), 0, "nothing is compiled");
}

#[test]
fn a_bench_makes_no_parameters_but_the_smallest() {
    let cache = tempfile::tempdir().unwrap();
    let circuit = ["--kind", "winning-post", "--sector-size", "8MiB"];
    let output = cuzk_in(cache.path(), &[&["bench", "prove"], &circuit[..]].concat());
    let advice = "cuzk params generate --kind winning-post --sector-size 8MiB";
    fails(2, advice, &output);
    fails(2, text(cache.path()), &output);
    assert_eq!(files_in(cache.path()), 0);
}

#[test]
fn parameters_that_are_there_are_not_said_to_be_made_from_a_seed() {
    let cache = tempfile::tempdir().unwrap();
    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    let generate = |more: &[&str]| {
        let generate = [&["params", "generate"], &circuit[..], more].concat();
        cuzk_in(cache.path(), &generate)
    };
    let run = |more: &[&str]| {
        let output = generate(more);
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let report =
        |seed: &[&str]| serde_json::from_str::<Value>(&run(&[seed, &["--json"]].concat())).unwrap();
    let made = report(&["--seed", "7"]);
    assert_eq!((&made["made"], &made["seed"]), (&true.into(), &7.into()));
    let there = report(&[]);
    assert_eq!(there["made"], false);
    assert!(there.get("seed").is_none());
    assert_eq!(there["params_bytes"], made["params_bytes"]);
    assert!(run(&[]).contains("already there"));
    // A seed that is asked for is the seed of the parameters, or nothing is done.
    assert_eq!(report(&["--seed", "7"])["seed"], 7);
    fails(2, "not from seed 5", &generate(&["--seed", "5"]));

    // Only the key was lost: it is that of the parameters.
    let key = Path::new(made["vk"].as_str().unwrap());
    let bytes = std::fs::read(key).unwrap();
    std::fs::remove_file(key).unwrap();
    fails(2, "not from seed 5", &generate(&["--seed", "5"]));
    std::fs::remove_file(key).unwrap();
    let restored = report(&[]);
    assert_eq!(restored["made"], false);
    assert!(restored.get("seed").is_none());
    assert_eq!(std::fs::read(key).unwrap(), bytes);

    // Files of the right names are not enough.
    std::fs::write(key, &bytes[1..]).unwrap();
    fails(2, text(key), &generate(&[]));
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_fails_because_nobody_hears_it() {
    let cache = tempfile::tempdir().unwrap();
    let request = data("window-post.json");
    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    let full = || std::fs::File::options().write(true).open("/dev/full");
    for (command, code) in [
        // An error, a message of the log, and a warning.
        (&["verify", "--request", "nope", "--proof", "x"][..], 2),
        (&["synth", "--request", text(&request)], 0),
        (&[&["params", "generate"], &circuit[..]].concat(), 0),
    ] {
        let mut cuzk = Command::new(env!("CARGO_BIN_EXE_cuzk"));
        cuzk.args(command)
            .env("FIL_PROOFS_PARAMETER_CACHE", cache.path())
            .stderr(full().unwrap());
        let status = cuzk.output_bounded().unwrap().status;
        assert_eq!(status.code(), Some(code), "{command:?}");
    }
}

#[test]
fn one_configuration_is_checked_however_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cuzk.toml");
    std::fs::write(&file, "[gpus]\nfaults_max = 11\n").unwrap();
    let faults = |arguments: &[&str]| json(arguments)["gpus"]["faults_max"].clone();
    assert_eq!(faults(&["config", "check", text(&file)]), 11);
    assert_eq!(faults(&["--config", text(&file), "config", "check"]), 11);
    assert_ne!(faults(&["config", "check"]), 11);
    let both = ["--config", "nope", "config", "check", text(&file)];
    fails(2, "--config nope", &cuzk(&both));
    fails(2, "nope", &cuzk(&["--config", "nope", "config", "check"]));
}

#[test]
fn only_interventions_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("ntt.svg");
    let ntt = ["bench", "ntt", "--size", "6", "--runs", "1"];
    let output = cuzk(&[&ntt[..], &["--svg", text(&svg)]].concat());
    fails(2, "--svg", &output);
    assert!(!svg.exists());
}

#[test]
fn the_long_version_tells_whether_it_proves_on_gpus() {
    let version = |option| String::from_utf8(cuzk(&[option]).stdout).unwrap();
    let short = format!("cuzk {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(version("-V").trim_end(), short);
    let long = version("--version");
    let features = long.strip_prefix(&short).unwrap().trim();
    let expected = if cfg!(feature = "cuda") {
        "features: cuda"
    } else {
        "features: none"
    };
    assert!(features.starts_with(expected), "{long}");
}

#[test]
fn shells_are_told_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = cuzk(&["completions", shell]);
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("i-know-these-are-insecure"), "{shell}");
    }
    fails(2, "bash", &cuzk(&["completions", "cmd"]));
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    assert!(cuzk(&["manual", text(folder.path())]).status.success());
    for (page, words) in [
        ("cuzk.1", "vanilla proof"),
        ("cuzk-params-fetch.1", "sector"),
    ] {
        let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(page.contains(words), "{page}");
    }
    let nowhere = folder.path().join("nowhere");
    fails(2, "nowhere", &cuzk(&["manual", text(&nowhere)]));
}

/// The one object that a command that failed printed with `--json`.
fn failure(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_fails_has_an_object_in_the_place_of_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let request = data("window-post.json");
    let config = folder.path().join("cuzk.toml");
    std::fs::write(&config, "[gpus]\ngpu_thread = 4\n").unwrap();
    let out = folder.path().join("no/file");
    for (command, why) in [
        (&["frobnicate"][..], "unrecognized subcommand"),
        (&["synth", "--partition", "-1"], "unexpected argument"),
        (&["config", "check", text(&config)], "gpu_threads"),
        (&["--config", text(&config), "demo"], "gpu_threads"),
        (&["completions", "--config", "nope", "cmd"], "bash"),
        (&["pce", "inspect", "nope"], "nope: "),
        (&["verify", "--request", "nope", "--proof", "x"], "nope: "),
        (
            &["synth", "--request", text(&request), "--partition", "1"],
            "--partition",
        ),
        (
            &["prove", "--request", text(&request), "--out", text(&out)],
            "no/file: ",
        ),
    ] {
        let output = cuzk(&[&["--json"], command].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let report = failure(&output);
        let error = report["error"].as_str().unwrap();
        assert!(error.contains(why), "{error}");
        assert!(!error.starts_with("error: "), "{error}");
        assert_eq!(report["exit_code"], 2);
        // People are told, too.
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with(&format!("error: {error}")), "{said}");
    }
    // Help is no failure.
    let help = cuzk(&["--json", "--help"]);
    assert!(help.status.success() && help.stdout.starts_with(b"Proves Filecoin storage"));
}

#[test]
fn a_result_that_says_what_is_wrong_is_the_only_object() {
    let folder = tempfile::tempdir().unwrap();
    generate("window-post");
    let proof = folder.path().join("proof");
    std::fs::write(&proof, "no proof").unwrap();
    let request = data("window-post.json");
    let verify = ["verify", "--request", text(&request), "--proof"];
    let output = cuzk(&[&["--json"], &verify[..], &[text(&proof)]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(failure(&output)["valid"], false);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_an_end_is_refused() {
    generate("window-post");
    let request = data("window-post.json");
    let zero = "/dev/zero";
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cuzk.toml");
    // So few threads have addresses on a machine of any size.
    let few = "[synthesis]\nthreads = 2\n[gpus]\ngpu_threads = 2\n";
    std::fs::write(&config, few).unwrap();
    for command in [
        &["prove", "--request", zero, "--out", "/dev/null"][..],
        &["verify", "--request", text(&request), "--proof", zero],
        &["synth", "--request", zero],
        &["config", "check", zero],
        &["pce", "inspect", zero],
    ] {
        let mut limited = Command::new("sh");
        // So that it fails where it would take all memory there is.
        limited.args(["-c", "ulimit -v 6000000; exec \"$0\" \"$@\""]);
        limited.arg(env!("CARGO_BIN_EXE_cuzk")).args(command);
        if command[0] != "config" {
            limited.args(["--config", text(&config)]);
        }
        let output = limited.env("FIL_PROOFS_PARAMETER_CACHE", param_cache());
        let output = output.output_bounded().unwrap();
        fails(2, zero, &output);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("memory"), "{said}");
    }
}

#[test]
fn missing_parameters_are_told_before_a_circuit_is_compiled() {
    let cache = tempfile::tempdir().unwrap();
    for command in ["verify", "prepare"] {
        let circuit = ["--kind", "winning-post", "--sector-size", "32GiB"];
        let output = cuzk_in(cache.path(), &[&["params", command], &circuit[..]].concat());
        fails(2, text(cache.path()), &output);
        assert_eq!(files_in(cache.path()), 0, "{command}");
    }
}

#[test]
fn numbers_out_of_range_are_told_with_what_is_expected() {
    let prepare = ["params", "prepare", "--kind", "window-post"];
    let prepare = [&prepare[..], &["--sector-size", "2KiB", "--limit"]].concat();
    for limit in ["abc", "0", "99999999999999999999", "-1GiB", "1QiB"] {
        let limit = format!("--limit={limit}");
        let output = cuzk(&[&prepare[..prepare.len() - 1], &[&limit]].concat());
        fails(2, "expected a size such as 2GiB", &output);
    }
    let ntt = ["bench", "ntt", "--size", "6", "--runs", "1"];
    for option in ["--threads", "--gpu-threads"] {
        for number in ["4097", "18446744073709551616", "x", "1,5000"] {
            let output = cuzk(&[&ntt[..], &[option, number]].concat());
            fails(2, "expected a number from 0 to 4096", &output);
        }
    }
}

#[test]
fn what_a_killed_writer_left_goes_when_the_next_one_begins() {
    let cache = tempfile::tempdir().unwrap();
    let start = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let at = |letters: &str| {
        let name = format!(".cuzk-{}-{letters}.partial", start.trim());
        cache.path().join(name)
    };
    for letters in ["killed", "living", "seven77"] {
        std::fs::write(at(letters), "half a file").unwrap();
    }
    let living = std::fs::File::open(at("living")).unwrap();
    living.lock().unwrap();
    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    let generate = [&["params", "generate"], &circuit[..]].concat();
    let generated = cuzk_in(cache.path(), &generate);
    assert!(generated.status.success());
    assert!(!at("killed").exists());
    assert!(at("living").exists() && at("seven77").exists());
}
