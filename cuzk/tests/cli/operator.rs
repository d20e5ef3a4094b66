//! The commands around the daemon: configurations, version, support bundle.

use std::fs;

use cuzk_bounded::BoundedCommand;

use super::doctor::Machine;
use super::*;

#[test]
fn config_check_looks_at_the_places_that_are_named() {
    let machine = Machine::new();
    let check = |config: &str| {
        machine.configure(config);
        cuzk(&["config", "check", text(&machine.at("cuzk.toml"))])
    };
    assert!(check("").status.success());
    let journal = |path: &Path| format!("[jobs]\njournal = {:?}\n", text(path));
    fails(
        2,
        "is a folder; name a file",
        &check(&journal(machine.folder.path())),
    );
    fails(
        2,
        "no does not exist; make it",
        &check(&journal(&machine.at("no/jobs"))),
    );
    assert!(check(&journal(&machine.at("jobs"))).status.success());
    assert!(!machine.at("jobs").exists() && !machine.at("jobs.lock").exists());
    fails(
        2,
        "only a shell expands the `~`",
        &check("[jobs]\njournal = \"~/jobs\"\n"),
    );
    fails(2, "at least 16MiB", &check("[memory]\ntotal_budget = 16\n"));
    let cores = std::thread::available_parallelism().unwrap().get();
    let too_many = (16 * cores).max(256) + 1;
    for key in ["[gpus]\ngpu_threads", "[synthesis]\nthreads"] {
        let config = format!("{key} = {too_many}\n");
        fails(2, "threads on", &check(&config));
    }
}

#[test]
fn configurations_are_made_compared_and_carried_over() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let made = at("made.toml");
    let init = ["config", "init", "--out", text(&made)];
    assert!(cuzk(&init).status.success());
    assert!(cuzk(&["config", "check", text(&made)]).status.success());
    fails(2, "is there already", &cuzk(&init));

    let changed = at("changed.toml");
    fs::write(&changed, "[gpus]\nfaults_max = 11\n").unwrap();
    let diff = |file: &Path| {
        let output = cuzk(&["config", "diff", text(file)]);
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(diff(&changed), "[gpus]\nfaults_max = 11  # default 3\n");
    fs::write(&changed, "").unwrap();
    assert!(diff(&changed).starts_with("# nothing differs"));

    let old = at("old.toml");
    fs::write(
        &old,
        "[daemon]\nlisten = \"unix:///run/a.sock\"\n[pipeline]\nslot_size = 3\n",
    )
    .unwrap();
    let new = at("new.toml");
    let import = ["config", "import", text(&old), "--out", text(&new)];
    let output = cuzk(&import);
    assert!(output.status.success());
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("left out: pipeline.slot_size: "), "{told}");
    let imported = fs::read_to_string(&new).unwrap();
    assert!(imported.contains("# * pipeline.slot_size: "), "{imported}");
    let checked = json(&["config", "check", text(&new)]);
    assert_eq!(checked["server"]["listen"][0], "unix:///run/a.sock");
    fs::write(&old, "[memory]\ntotal_budget = \"lots\"\n").unwrap();
    let bad = cuzk(&["config", "import", text(&old)]);
    assert_eq!(bad.status.code(), Some(2));
}

#[test]
fn the_version_says_how_it_was_built() {
    let short = String::from_utf8(cuzk(&["version"]).stdout).unwrap();
    assert_eq!(
        short.trim_end(),
        concat!("cuzk ", env!("CARGO_PKG_VERSION"))
    );
    let long = String::from_utf8(cuzk(&["version", "--verbose"]).stdout).unwrap();
    for line in ["features", "kernels", "gpu driver", "build", "processor"] {
        assert!(long.lines().any(|found| found.starts_with(line)), "{long}");
    }
    let report = json(&["version"]);
    let kernels = report["kernels"].as_array().unwrap();
    assert_eq!(kernels[0], cuzk_kernels::Isa::best().name());
    let commit = report["commit"].as_str();
    assert_eq!(commit, option_env!("CUZK_COMMIT"));
    assert!(long.contains(commit.unwrap_or("unknown")), "{long}");
    // A build that was told no commit takes that of the repository, if there is one.
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
        git.output_bounded().is_ok_and(|done| done.status.success())
    };
    if git(&["ls-files", "--error-unmatch", "Cargo.toml"]) {
        let commit = commit.unwrap();
        let is_told = std::env::var("CUZK_COMMIT").is_ok();
        let object = format!("{commit}^{{commit}}");
        assert!(is_told || git(&["cat-file", "-e", &object]), "{commit}");
    }
}

#[test]
fn a_bundle_lists_its_content_and_has_no_secret() {
    let machine = Machine::new();
    let log = machine.at("log");
    fs::write(
        &log,
        "INFO porep-1234-56 Bearer abcdef\nINFO miner_id=1234\n",
    )
    .unwrap();
    let out = machine.at("bundle.tar");
    let config = machine.at("cuzk.toml");
    let bundle = [
        "--config",
        text(&config),
        "support-bundle",
        "--log",
        text(&log),
    ];
    let listed = cuzk(&[&bundle[..], &["--list"]].concat());
    assert!(listed.status.success());
    assert!(!out.exists());
    let output = cuzk(&[&bundle[..], &["--out", text(&out)]].concat());
    assert!(output.status.success());
    let list = String::from_utf8(output.stdout).unwrap();
    // Nothing runs, and no page is served.
    assert!(
        list.contains("status.json") && list.contains("serves no HTTP"),
        "{list}"
    );
    let mut tar = Command::new("tar");
    tar.arg("xf").arg(&out).current_dir(machine.folder.path());
    assert!(tar.status().unwrap().success());
    let read = |name: &str| fs::read_to_string(machine.at("cuzk-support").join(name)).unwrap();
    let log = "INFO porep-MINER1-56 Bearer REDACTED\nINFO miner_id=MINER1";
    assert_eq!(read("log.txt"), log);
    assert!(read("configuration.toml").contains("cuzk.sock"));
    let doctor: Value = serde_json::from_str(&read("doctor.json")).unwrap();
    assert!(doctor["findings"].is_array());
}

/// A file's digest is another than the list's in each of these cases, and no file is damaged.
#[test]
fn parameters_that_were_made_here_are_not_called_damaged() {
    let cache = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = cuzk_in(cache.path(), arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let states = |more: &[&str]| {
        let report = run(&[&["params", "list", "--json"], more].concat());
        let report: Value = serde_json::from_str(&report).unwrap();
        let files = report["files"].as_array().unwrap().iter();
        let states = files.map(|file| file["state"].as_str().unwrap().to_owned());
        states.collect::<Vec<_>>()
    };
    let of_circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    let generate = [&["params", "generate"], &of_circuit[..]].concat();
    for (seed, state, explanation) in [
        ("0", "test-parameters", "insecure, and good for tests only"),
        ("7", "of-another-key", "made from another seed"),
    ] {
        run(&[&generate[..], &["--seed", seed]].concat());
        assert_eq!(states(&[]), [state; 2], "{seed}");
        assert_eq!(states(&["--check"]), [state; 2], "{seed}");
        let listed = run(&["params", "list"]);
        assert!(listed.contains(explanation), "{listed}");
        for file in fs::read_dir(cache.path()).unwrap() {
            let path = file.unwrap().path();
            // The circuit stays for the other seed.
            let last = path.extension().and_then(|last| last.to_str());
            if matches!(last, Some("params" | "vk")) {
                fs::remove_file(path).unwrap();
            }
        }
    }
    let srs = ["params", "generate-srs", "--proofs", "2"];
    // `params generate` has this word, and either command takes both.
    run(&[&srs[..], &["--i-know-these-are-insecure"]].concat());
    assert_eq!(states(&["--check"]), ["test-parameters"]);
}
