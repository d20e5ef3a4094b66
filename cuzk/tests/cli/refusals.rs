//! What is refused, when, and with which exit code; and what commands say of themselves.

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
    let run = |seed: &str, more: &[&str]| {
        let generate = [&["params", "generate", "--seed", seed], &circuit[..], more].concat();
        let output = cuzk_in(cache.path(), &generate);
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let report = |seed: &str| serde_json::from_str::<Value>(&run(seed, &["--json"])).unwrap();
    let made = report("7");
    assert_eq!((&made["made"], &made["seed"]), (&true.into(), &7.into()));
    let there = report("5");
    assert_eq!(there["made"], false);
    assert!(there.get("seed").is_none());
    assert_eq!(there["params_bytes"], made["params_bytes"]);
    assert!(run("5", &[]).contains("already there"));

    // Only the key was lost: it is that of the parameters.
    let key = Path::new(made["vk"].as_str().unwrap());
    let bytes = std::fs::read(key).unwrap();
    std::fs::remove_file(key).unwrap();
    let restored = report("5");
    assert_eq!(restored["made"], false);
    assert!(restored.get("seed").is_none());
    assert_eq!(std::fs::read(key).unwrap(), bytes);

    // Files of the right names are not enough.
    std::fs::write(key, &bytes[1..]).unwrap();
    let generate = [&["params", "generate"], &circuit[..]].concat();
    fails(2, text(key), &cuzk_in(cache.path(), &generate));
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
        let status = cuzk.output().unwrap().status;
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
