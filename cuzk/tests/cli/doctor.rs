//! `cuzk doctor`: each thing that it looks at is broken, and its line changes.
//!
//! Some things cannot be broken from outside. They are huge pages, control groups, the limit of
//! locked memory, a slow disk, a socket that may not be called, and GPUs. The unit tests of the
//! topics have them.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime};

use cuzk_bounded::BoundedCommand;
use cuzk_core::circuits::parameter_files;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_kernels::Isa;
use cuzk_testing::circuit_file;

use super::messages::linked_cache;
use super::*;

/// The script of a shell that runs its arguments.
const RUN: &str = "exec \"$0\" \"$@\"";

/// A machine with parameters and a configuration that are good.
pub(super) struct Machine {
    pub(super) folder: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl Machine {
    pub(super) fn new() -> Self {
        let machine = Self {
            folder: tempfile::tempdir().unwrap(),
            cache: linked_cache("window-post"),
        };
        machine.configure("");
        machine
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the configuration. Its listener is a socket in this folder.
    pub(super) fn configure(&self, more: &str) {
        let socket = self.at("cuzk.sock");
        let listen = format!("listen = [\"unix://{}\"]\nhttp = \"\"", text(&socket));
        self.configure_all(&format!("[server]\n{listen}\n{more}"));
    }

    fn configure_all(&self, config: &str) {
        fs::write(self.at("cuzk.toml"), config).unwrap();
    }

    /// Writes a program that comes before those of the system.
    fn program(&self, name: &str, script: &str) {
        let path = self.at(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn look(&self, more: &[&str]) -> Look {
        self.look_in(self.cache.path(), RUN, more)
    }

    /// Runs the doctor in a shell's script, with another cache.
    fn look_in(&self, cache: &Path, script: &str, more: &[&str]) -> Look {
        let config = self.at("cuzk.toml");
        let doctor = ["--json", "--config", text(&config), "doctor"];
        let kind = ["--kind", "window-post"];
        let size: &[_] = match more.contains(&"--sector-size") {
            true => &[],
            false => &["--sector-size", "2KiB"],
        };
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_cuzk")]);
        command.args([&doctor[..], &kind, size, more].concat());
        command.env("FIL_PROOFS_PARAMETER_CACHE", cache);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.folder.path().display()));
        let output = command.output_bounded().unwrap();
        Look {
            exit_code: output.status.code().unwrap(),
            report: serde_json::from_slice(&output.stdout).unwrap(),
        }
    }
}

/// Returns the file of parameters in a cache.
fn params_in(cache: &Path) -> PathBuf {
    let entries = fs::read_dir(cache).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let is_params = |path: &PathBuf| path.extension().is_some_and(|last| last == "params");
    paths.find(is_params).unwrap()
}

/// The findings of one run.
struct Look {
    exit_code: i32,
    report: Value,
}

impl Look {
    fn of_topic(&self, topic: &str) -> Vec<&Value> {
        let findings = self.report["findings"].as_array().unwrap().iter();
        findings.filter(|found| found["topic"] == topic).collect()
    }

    /// Returns the levels of the findings about a topic. Each but "ok" says what to do.
    fn levels(&self, topic: &str) -> Vec<&str> {
        let findings = self.of_topic(topic).into_iter();
        let levels = findings.map(|found| {
            let level = found["level"].as_str().unwrap();
            assert_eq!(found.get("advice").is_some(), level != "ok", "{found}");
            level
        });
        levels.collect()
    }
}

const TOPICS: [&str; 12] = [
    "configuration",
    "parameters",
    "memory",
    "huge pages",
    "instructions",
    "open files",
    "threads",
    "control group",
    "disk",
    "clock",
    "gpu",
    "listener",
];

#[test]
fn a_machine_that_proves_has_no_error_and_every_line_is_there() {
    let machine = Machine::new();
    let look = machine.look(&[]);
    for topic in TOPICS {
        assert!(!look.levels(topic).is_empty(), "{topic}: {:#}", look.report);
    }
    // Test parameters are of no network.
    for (topic, levels) in [
        ("configuration", ["ok"]),
        ("parameters", ["warning"]),
        ("listener", ["ok"]),
        ("clock", ["ok"]),
    ] {
        assert_eq!(look.levels(topic), levels, "{topic}");
    }
    // The machine and the circuit.
    assert_eq!(look.levels("memory").len(), 2, "{:#}", look.report);
}

/// The page for operators has a row for each topic, and no other row.
#[test]
fn the_page_has_a_row_for_each_topic() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/troubleshooting.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page
        .split_once("| line | error or warning |\n|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with("| "));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(", "));
    let mut named: Vec<_> = names.map(str::trim).collect();
    // These two are there only with a GPU, and with `--curio`.
    let mut topics = [&TOPICS[..], &["locked memory", "curio"]].concat();
    named.sort_unstable();
    topics.sort_unstable();
    assert_eq!(named, topics);
}

/// Breaks one thing, and looks. Then the thing is whole again.
type Break = fn(&Machine) -> Look;

fn configured(machine: &Machine, config: &str) -> Look {
    machine.configure(config);
    let look = machine.look(&[]);
    machine.configure("");
    look
}

/// Looks with another file of the circuit, which is made of a new one.
fn look_with_circuit(machine: &Machine, change: fn(&[u8]) -> Vec<u8>) -> Look {
    let cache = linked_cache("window-post");
    let path = params_in(cache.path()).with_extension("circuit");
    // A link, which must not be written through.
    fs::remove_file(&path).unwrap();
    let build = ["pce", "build", "--kind", "window-post", "--out"];
    let size = ["--sector-size", "2KiB"];
    let built = cuzk(&[&build[..], &[text(&path)], &size].concat());
    assert!(built.status.success(), "{built:?}");
    let good = fs::read(&path).unwrap();
    fs::write(&path, change(&good)).unwrap();
    machine.look_in(cache.path(), RUN, &[])
}

/// The things, their topics, and the levels of their lines when they are broken.
const BROKEN: &[(&str, &str, &[&str], Break)] = &[
    (
        "a key that does not exist",
        "configuration",
        &["error"],
        |machine| configured(machine, "[gpus]\nno_such_key = 1\n"),
    ),
    (
        "a journal that is a folder",
        "configuration",
        &["ok", "error"],
        |machine| {
            let folder = text(machine.folder.path());
            configured(machine, &format!("[jobs]\njournal = {folder:?}\n"))
        },
    ),
    (
        "a cache that is a file",
        "configuration",
        &["ok", "error"],
        |machine| {
            let file = machine.at("file");
            fs::write(&file, "").unwrap();
            machine.look_in(&file, RUN, &[])
        },
    ),
    ("no parameters", "parameters", &["error"], |machine| {
        let empty = tempfile::tempdir().unwrap();
        let look = machine.look_in(empty.path(), RUN, &[]);
        assert_eq!(look.report["errors"], 1, "{:#}", look.report);
        look
    }),
    (
        "half of the parameters",
        "parameters",
        &["error"],
        |machine| {
            let cache = linked_cache("window-post");
            let params = params_in(cache.path());
            let bytes = fs::read(&params).unwrap();
            fs::remove_file(&params).unwrap();
            fs::write(&params, &bytes[..bytes.len() / 2]).unwrap();
            machine.look_in(cache.path(), RUN, &[])
        },
    ),
    (
        "a budget beyond the machine",
        "memory",
        &["error", "ok"],
        |machine| configured(machine, "[memory]\ntotal_budget = \"1EiB\"\n"),
    ),
    (
        "a budget below a partition",
        "memory",
        &["ok", "error"],
        // Below what a partition takes with any instructions.
        |machine| {
            let memory = "[memory]\ntotal_budget = \"17MiB\"\nsafety_margin = \"8MiB\"\n";
            configured(machine, memory)
        },
    ),
    (
        "a circuit that is not compiled",
        "memory",
        &["ok", "warning"],
        |machine| {
            let cache = linked_cache("window-post");
            let circuit = params_in(cache.path()).with_extension("circuit");
            fs::remove_file(circuit).unwrap();
            machine.look_in(cache.path(), RUN, &[])
        },
    ),
    (
        "a damaged file of a circuit",
        "memory",
        &["ok", "warning"],
        |machine| look_with_circuit(machine, |good| good[..good.len() / 2].to_vec()),
    ),
    ("a small address space", "memory", &["error"], |machine| {
        let script = "ulimit -v 500000; exec \"$0\" \"$@\"";
        let look = machine.look_in(machine.cache.path(), script, &[]);
        let said = look.of_topic("memory")[0].to_string();
        assert!(said.contains("`ulimit -v "), "{said}");
        look
    }),
    ("few threads", "threads", &["error"], |machine| {
        let script = "exec prlimit --nproc=70 \"$0\" \"$@\"";
        machine.look_in(machine.cache.path(), script, &[])
    }),
    ("few open files", "open files", &["warning"], |machine| {
        let script = "ulimit -n 256; exec \"$0\" \"$@\"";
        machine.look_in(machine.cache.path(), script, &[])
    }),
    ("files of the future", "clock", &["error"], |machine| {
        let cache = linked_cache("window-post");
        let later = SystemTime::now() + Duration::from_secs(3600);
        File::open(cache.path())
            .unwrap()
            .set_modified(later)
            .unwrap();
        machine.look_in(cache.path(), RUN, &[])
    }),
    (
        "a driver that does not answer",
        "gpu",
        &["error"],
        |machine| {
            machine.program("nvidia-smi", "echo broken; exit 9");
            let look = machine.look(&[]);
            fs::remove_file(machine.at("nvidia-smi")).unwrap();
            look
        },
    ),
    (
        "a file in place of the socket",
        "listener",
        &["error"],
        |machine| {
            fs::write(machine.at("cuzk.sock"), "").unwrap();
            let look = machine.look(&[]);
            fs::remove_file(machine.at("cuzk.sock")).unwrap();
            look
        },
    ),
    (
        "an address of no machine",
        "listener",
        &["error"],
        |machine| {
            // An address for documentation.
            machine.configure_all("[server]\nlisten = [\"tcp://192.0.2.1:1\"]\nhttp = \"\"\n");
            let look = machine.look(&[]);
            machine.configure("");
            look
        },
    ),
];

#[test]
fn each_thing_that_is_broken_changes_its_own_line() {
    let machine = Machine::new();
    let good = machine.look(&[]);
    for (thing, topic, levels, broken) in BROKEN {
        let look = broken(&machine);
        assert_eq!(look.levels(topic), *levels, "{thing}: {:#}", look.report);
        assert_ne!(look.of_topic(topic), good.of_topic(topic), "{thing}");
        let is_error = levels.contains(&"error");
        if is_error {
            assert_eq!(look.exit_code, 1, "{thing}");
        }
    }
    // Nothing is left of it.
    let again = machine.look(&[]);
    for topic in ["configuration", "parameters", "clock", "listener", "gpu"] {
        assert_eq!(again.levels(topic), good.levels(topic), "{topic}");
    }
}

/// The memory of a partition follows from the header of the circuit's file. The rows of a file of the
/// version before say the same.
#[test]
fn the_need_of_memory_is_that_of_the_rows() {
    let machine = Machine::new();
    let announced = look_with_circuit(&machine, <[u8]>::to_vec);
    assert_eq!(announced.levels("memory"), ["ok", "ok"]);
    let counted = look_with_circuit(&machine, circuit_file::of_earlier_version);
    let needs = |look: &Look| look.of_topic("memory")[1].clone();
    assert_eq!(needs(&announced), needs(&counted));
    // The doctor believes a header. A proof counts the rows.
    let lie = look_with_circuit(&machine, circuit_file::that_lies);
    assert_eq!(lie.levels("memory"), ["ok", "ok"]);
}

/// The names are those of a network's parameters, and the key is not. It is read at each look,
/// so nobody has to hash the parameters before.
#[test]
fn test_parameters_under_the_names_of_a_network_are_an_error() {
    let machine = Machine::new();
    let files_of = |sector_size| {
        let kind = ProofKind::WindowPost;
        parameter_files(CircuitId { kind, sector_size }).unwrap()
    };
    let (small, large) = (files_of(SectorSize::KiB2), files_of(SectorSize::GiB32));
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [(&small.params, &large.params), (&small.vk, &large.vk)] {
        fs::copy(machine.cache.path().join(from), folder.path().join(to)).unwrap();
    }
    let is_told = || {
        let size = ["--sector-size", "32GiB"];
        let look = machine.look_in(folder.path(), RUN, &size);
        assert_eq!(look.levels("parameters"), ["error"], "{:#}", look.report);
        let [finding] = look.of_topic("parameters")[..] else {
            panic!("{:#}", look.report);
        };
        finding.to_string().contains("insecure test parameters")
    };
    assert!(is_told(), "never hashed");
    cuzk_in(folder.path(), &["params", "list", "--check"]);
    assert!(is_told(), "hashed, and of another digest");
}

#[test]
fn a_size_without_a_kind_is_of_all_kinds() {
    let empty = tempfile::tempdir().unwrap();
    let output = cuzk_in(empty.path(), &["--json", "doctor", "--sector-size", "2KiB"]);
    assert_eq!(output.status.code(), Some(1));
    let report = serde_json::from_slice(&output.stdout).unwrap();
    let look = Look {
        exit_code: 1,
        report,
    };
    assert_eq!(look.levels("parameters"), ["error"; 4]);
}

/// Each word of `[cpu] isa` has its line: all is well with the fastest instructions that there
/// are, and the machine's others are a warning. Those that it lacks are no configuration.
#[test]
fn each_choice_of_instructions_has_its_line() {
    let machine = Machine::new();
    let has = |isa: &str| Isa::all().iter().any(|one| one.name() == isa);
    for isa in ["ifma", "avx2", "scalar", "portable"] {
        let look = configured(&machine, &format!("[cpu]\nisa = \"{isa}\"\n"));
        let used = match has(isa) {
            true => isa,
            false => Isa::best().name(),
        };
        let [found] = look.of_topic("instructions")[..] else {
            panic!("{:#}", look.report);
        };
        let said = found["text"].as_str().unwrap();
        assert!(said.contains(&format!("use {used} (")), "{isa}: {said}");
        let level = match used {
            "ifma" => "ok",
            _ => "warning",
        };
        assert_eq!(look.levels("instructions"), [level], "{isa}");
        let advice = found["advice"].as_str().unwrap_or_default();
        let is_slower = used != Isa::best().name();
        assert_eq!(advice.contains("isa = \"auto\""), is_slower, "{advice}");
        let is_known = has(isa);
        let level = if is_known { "ok" } else { "error" };
        assert_eq!(look.levels("configuration"), [level], "{isa}");
        let configuration = look.of_topic("configuration")[0].to_string();
        assert_eq!(configuration.contains("this machine has no"), !is_known);
    }
}

#[test]
fn each_setting_of_curio_and_each_state_of_the_driver_has_its_line() {
    let machine = Machine::new();
    let curio = machine.at("curio.toml");
    let socket = machine.at("cuzk.sock");
    let right = format!("[Cuzk]\nAddress = \"unix://{}\"\n", text(&socket));
    let shared = "[Subsystems]\nEnableWinningPost = true\nEnablePoRepProof = true\n";
    for (config, levels) in [
        (right.clone(), &["ok", "ok", "ok"][..]),
        (
            "[Cuzk]\nAddress = \"10.0.0.1:9820\"\n".to_owned(),
            &["error", "ok", "ok"],
        ),
        (format!("{right}{shared}"), &["ok", "warning", "ok"]),
        (
            format!("{right}ProveTimeout = \"5m\"\n"),
            &["ok", "ok", "warning"],
        ),
        (String::new(), &["error"]),
        ("[Cuzk\n".to_owned(), &["error"]),
    ] {
        fs::write(&curio, &config).unwrap();
        let look = machine.look(&["--curio", text(&curio)]);
        assert_eq!(look.levels("curio"), levels, "{config}");
    }

    // A build without CUDA says that it uses none; one with it, that others use the GPU.
    machine.program("nvidia-smi", "echo '0, A GPU, 16384, 9000, 9.0, 570.1'");
    assert_eq!(machine.look(&[]).levels("gpu"), ["warning"]);
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
    // A long line goes on below itself.
    let mut below = lines.lines().skip(at.unwrap() + 1);
    let advice = below.find(|line| line.contains("-> ")).unwrap();
    let expected = "-> `cuzk params fetch --kind window-post";
    assert!(advice.trim_start().starts_with(expected), "{lines}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.trim_end().ends_with("[CUZK-0032]"), "{said}");
}
