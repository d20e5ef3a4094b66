//! The commands around the daemon: doctor, configurations, version, support bundle.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A machine with parameters and a configuration that are good.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        generate("window-post");
        let folder = tempfile::tempdir().unwrap();
        let machine = Self { folder };
        machine.configure("");
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the configuration. Its listener is a socket in this folder.
    fn configure(&self, more: &str) {
        let socket = self.at("cuzk.sock");
        let listen = format!("listen = [\"unix://{}\"]\nhttp = \"\"", text(&socket));
        let config = format!("[server]\n{listen}\n{more}");
        fs::write(self.at("cuzk.toml"), config).unwrap();
    }

    fn doctor(&self, cache: &Path, more: &[&str]) -> (i32, Value) {
        let config = self.at("cuzk.toml");
        let doctor = ["--json", "--config", text(&config), "doctor"];
        let kind = ["--kind", "window-post", "--sector-size", "2KiB"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
        command.args([&doctor[..], &kind, more].concat());
        command.env("FIL_PROOFS_PARAMETER_CACHE", cache);
        // Programs of this folder come first.
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.folder.path().display()));
        let output = command.output().unwrap();
        let code = output.status.code().unwrap();
        (code, serde_json::from_slice(&output.stdout).unwrap())
    }
}

/// The levels of the findings about a thing.
fn levels(report: &Value, topic: &str) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let of_topic = findings.filter(|found| found["topic"] == topic);
    of_topic
        .map(|found| {
            let level = found["level"].as_str().unwrap();
            assert_eq!(found.get("advice").is_some(), level != "ok", "{found}");
            level.to_owned()
        })
        .collect()
}

#[test]
fn a_machine_that_proves_has_no_error_and_every_line_is_there() {
    let machine = Machine::new();
    let (_, report) = machine.doctor(&param_cache(), &[]);
    for topic in [
        "configuration",
        "parameters",
        "memory",
        "huge pages",
        "instructions",
        "open files",
        "threads",
        "disk",
        "clock",
        "gpu",
        "listener",
    ] {
        assert!(!levels(&report, topic).is_empty(), "{topic}: {report:#}");
    }
    assert_eq!(levels(&report, "configuration"), ["ok"]);
    // Test parameters are of no network.
    assert_eq!(levels(&report, "parameters"), ["warning"]);
    assert_eq!(levels(&report, "listener"), ["ok"]);
    assert_eq!(levels(&report, "clock"), ["ok"]);
    let needs = levels(&report, "memory");
    assert_eq!(needs.len(), 2, "the machine and the circuit: {report:#}");
    let levels = ["ok", "warning", "error"];
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .all(|found| levels.contains(&found["level"].as_str().unwrap()))
    );
}

#[test]
fn each_thing_that_is_broken_changes_its_own_line() {
    let machine = Machine::new();
    let empty = tempfile::tempdir().unwrap();
    let (code, report) = machine.doctor(empty.path(), &[]);
    assert_eq!(
        (code, &levels(&report, "parameters")[..]),
        (1, &["error".to_owned()][..])
    );
    assert_eq!(report["errors"], 1, "{report:#}");

    let file = machine.at("file");
    fs::write(&file, "").unwrap();
    let (code, report) = machine.doctor(&file, &[]);
    assert_eq!(code, 1);
    assert_eq!(levels(&report, "configuration"), ["ok", "error"]);

    machine.configure(&format!(
        "[jobs]\njournal = {:?}\n",
        text(machine.folder.path())
    ));
    let (_, report) = machine.doctor(&param_cache(), &[]);
    assert_eq!(levels(&report, "configuration"), ["ok", "error"]);
    machine.configure("[gpus]\nno_such_key = 1\n");
    let (code, report) = machine.doctor(&param_cache(), &[]);
    assert_eq!(
        (code, &levels(&report, "configuration")[..]),
        (1, &["error".to_owned()][..])
    );
    machine.configure("[memory]\ntotal_budget = \"1EiB\"\n");
    let (_, report) = machine.doctor(&param_cache(), &[]);
    assert_eq!(levels(&report, "memory")[0], "error");
    machine.configure("[memory]\ntotal_budget = \"17MiB\"\n");
    let (_, report) = machine.doctor(&param_cache(), &[]);
    assert_eq!(levels(&report, "memory")[1], "error");

    machine.configure("");
    fs::write(machine.at("cuzk.sock"), "").unwrap();
    let (_, report) = machine.doctor(&param_cache(), &[]);
    assert_eq!(levels(&report, "listener"), ["error"]);
}

#[test]
fn curio_and_the_driver_have_their_lines() {
    let machine = Machine::new();
    let curio = machine.at("curio.toml");
    let of_curio = |config: &str| {
        fs::write(&curio, config).unwrap();
        let (_, report) = machine.doctor(&param_cache(), &["--curio", text(&curio)]);
        levels(&report, "curio")
    };
    let socket = machine.at("cuzk.sock");
    let right = format!("[Cuzk]\nAddress = \"unix://{}\"\n", text(&socket));
    assert_eq!(of_curio(&right), ["ok", "ok", "ok"]);
    assert_eq!(
        of_curio("[Cuzk]\nAddress = \"10.0.0.1:9820\"\n")[0],
        "error"
    );

    let program = machine.at("nvidia-smi");
    let say = |script: &str| {
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        levels(&machine.doctor(&param_cache(), &[]).1, "gpu")
    };
    assert_eq!(say("echo broken; exit 9"), ["error"]);
    let gpu = "echo '0, A GPU, 16384, 9000, 9.0, 570.1'";
    // A build without CUDA says that it uses none; one with it, that others use the GPU.
    assert_eq!(say(gpu), ["warning"]);
}

#[test]
fn the_text_of_the_doctor_says_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    let doctor = ["doctor", "--kind", "window-post", "--sector-size", "2KiB"];
    let output = cuzk_in(empty.path(), &doctor);
    assert_eq!(output.status.code(), Some(1));
    let lines = String::from_utf8(output.stdout).unwrap();
    let at = lines
        .lines()
        .position(|line| line.starts_with("error    parameters"));
    let advice = lines.lines().nth(at.unwrap() + 1).unwrap();
    assert!(
        advice.contains("-> `cuzk params fetch --kind window-post"),
        "{lines}"
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.trim_end().ends_with("[CUZK-0032]"), "{said}");
}

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
    fails(2, "threads on", &check("[gpus]\ngpu_threads = 4096\n"));
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
        git.output().is_ok_and(|done| done.status.success())
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
