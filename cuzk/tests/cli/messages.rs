//! Messages, stable codes and exit codes, as a user meets them.

use cuzk_bounded::{BoundedChild, BoundedCommand};

use super::*;

pub(super) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An error ends with this code, and the exit code is that of the code's row in
/// `docs/troubleshooting.md`.
pub(super) fn has_code(code: &str, exit: i32, output: &Output) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(exit), "{said}");
    let code = format!(" [{code}]");
    assert!(said.lines().any(|line| line.ends_with(&code)), "{said}");
}

/// A folder with links to the parameters of a kind, and to its compiled circuit.
pub(super) fn linked_cache(kind: &str) -> tempfile::TempDir {
    generate(kind);
    let folder = tempfile::tempdir().unwrap();
    let circuit = ["--kind", kind, "--sector-size", "2KiB"];
    let report = json(&[&["params", "generate"], &circuit[..]].concat());
    let params = PathBuf::from(report["params"].as_str().unwrap());
    let vk = PathBuf::from(report["vk"].as_str().unwrap());
    for path in [&params, &vk, &params.with_extension("circuit")] {
        let link = folder.path().join(path.file_name().unwrap());
        std::os::unix::fs::symlink(path, link).unwrap();
    }
    folder
}

/// Returns the path of the parameters in such a cache.
fn params_in(cache: &Path) -> PathBuf {
    let entries = std::fs::read_dir(cache).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let is_params = |path: &PathBuf| path.extension().is_some_and(|last| last == "params");
    paths.find(is_params).unwrap()
}

struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        generate("window-post");
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a configuration and returns its path.
    fn config(&self, text: &str) -> PathBuf {
        std::fs::write(self.at("cuzk.toml"), text).unwrap();
        self.at("cuzk.toml")
    }

    /// Proves a WindowPoSt with a configuration.
    fn prove(&self, config: &str, out: &str, more: &[&str]) -> Output {
        let (config, request, out) = (self.config(config), data("window-post.json"), self.at(out));
        let prove = [
            "--config",
            text(&config),
            "prove",
            "--request",
            text(&request),
        ];
        cuzk(&[&prove[..], &["--out", text(&out)], more].concat())
    }
}

#[test]
fn each_failure_has_the_exit_code_of_its_code() {
    let scratch = Scratch::new();
    let request = data("window-post.json");
    let out = scratch.at("p");
    let prove = ["prove", "--request", text(&request), "--out", text(&out)];
    let empty = tempfile::tempdir().unwrap();
    has_code("CUZK-0007", 2, &cuzk_in(empty.path(), &prove));
    let synth = ["synth", "--request", text(&request), "--partition", "1"];
    has_code("CUZK-0001", 2, &cuzk(&synth));
    has_code("CUZK-0003", 2, &cuzk(&["synth", "--request", "nope"]));
    let unknown = scratch.config("[gpus]\ngpu_thread = 1\n");
    has_code("CUZK-0005", 2, &cuzk(&["config", "check", text(&unknown)]));
    let bad = scratch.at("bad.json");
    std::fs::write(&bad, "{\"proof_kind\":\"SEALED\"}").unwrap();
    has_code("CUZK-0006", 2, &cuzk(&["synth", "--request", text(&bad)]));

    let damaged = linked_cache("window-post");
    let path = params_in(damaged.path());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    has_code("CUZK-0008", 2, &cuzk_in(damaged.path(), &prove));
    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    let verify = [&["params", "verify"], &circuit[..]].concat();
    has_code("CUZK-0008", 2, &cuzk_in(damaged.path(), &verify));

    std::os::unix::fs::symlink("/dev/full", scratch.at("full")).unwrap();
    has_code("CUZK-0004", 1, &scratch.prove("", "full", &[]));
    std::fs::create_dir(scratch.at("journal")).unwrap();
    let journal = format!("[jobs]\njournal = {:?}\n", text(&scratch.at("journal")));
    has_code("CUZK-0021", 2, &scratch.prove(&journal, "p", &[]));
    let nowhere = scratch.at("no").join("jobs");
    let journal = format!("[jobs]\njournal = {:?}\n", text(&nowhere));
    let output = scratch.prove(&journal, "p", &[]);
    has_code("CUZK-0003", 2, &output);
    let told = format!("the folder {} does not exist", text(&scratch.at("no")));
    assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    let memory = "[memory]\ntotal_budget = \"17MiB\"\nsafety_margin = \"8MiB\"\n";
    let small = scratch.prove(memory, "p", &[]);
    has_code("CUZK-0010", 1, &small);
    assert!(
        stderr(&small).contains(" MiB of memory are needed"),
        "{}",
        stderr(&small)
    );

    let output = cuzk(&[&["--json"], &synth[..]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["code"], "CUZK-0001");
}

#[test]
fn arguments_that_are_nearly_right_are_answered_with_the_right_ones() {
    let circuit = |kind: &str, size: &str| {
        let arguments = ["params", "verify", "--kind", kind, "--sector-size", size];
        cuzk_in(Path::new("/nowhere"), &arguments)
    };
    let output = circuit("windowpost", "2KiB");
    fails(2, "did you mean window-post?", &output);
    for size in ["2kib", "2048"] {
        // The size was understood: the parameters are missing.
        has_code("CUZK-0007", 2, &circuit("window-post", size));
    }
    fails(2, "use one of 2KiB", &circuit("window-post", "2 KB"));
}

#[test]
fn verified_parameters_say_what_was_not_checked() {
    generate("window-post");
    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    let verify = [&["params", "verify"], &circuit[..]].concat();
    let report = json(&verify);
    assert_eq!(report["valid"], true);
    assert!(
        report["not_checked"]
            .as_str()
            .unwrap()
            .contains("the origin of the parameters")
    );
    let lines = String::from_utf8(cuzk(&verify).stdout).unwrap();
    assert!(lines.contains("not checked: "), "{lines}");
}

/// Two points of H change places. Each is a point of the group, so only the circuit shows it.
#[test]
fn swapped_points_are_found() {
    let damaged = linked_cache("window-post");
    let path = params_in(damaged.path());
    let mut bytes = std::fs::read(&path).unwrap();
    // The key has six points, a count and the points of IC; then comes H's count.
    let ic = u32::from_be_bytes(bytes[864..868].try_into().unwrap()) as usize;
    let h = 868 + ic * 96 + 4;
    let (first, second) = bytes[h..].split_at_mut(96);
    first.swap_with_slice(&mut second[..96]);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let verify = [
        "params",
        "verify",
        "--kind",
        "window-post",
        "--sector-size",
        "2KiB",
    ];
    let output = cuzk_in(damaged.path(), &verify);
    has_code("CUZK-0008", 2, &output);
    let said = stderr(&output);
    assert!(said.contains("are not those of the circuit"), "{said}");
    assert!(said.contains("fetch it again"), "{said}");

    // A proof fails, and the error names the parameters first.
    let request = data("window-post.json");
    let out = damaged.path().join("p");
    let prove = ["prove", "--request", text(&request), "--out", text(&out)];
    let output = cuzk_in(damaged.path(), &prove);
    has_code("CUZK-0015", 1, &output);
    let said = stderr(&output);
    assert!(said.contains("`cuzk params verify`"), "{said}");
    // The device's proof, and not the checks before and after.
    let again = said.matches("a partition has to be proved again");
    assert_eq!(again.count(), 1, "{said}");
}

#[test]
fn a_cache_that_is_a_file_is_told_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    std::fs::write(&cache, "").unwrap();
    let circuit = ["--kind", "window-post", "--sector-size", "2KiB"];
    let (request, out) = (data("window-post.json"), folder.path().join("p"));
    let fetch = [&["params", "fetch", "--from", "/"], &circuit[..]].concat();
    let prove = ["prove", "--request", text(&request), "--out", text(&out)];
    let srs = ["params", "generate-srs", "--i-know-this-is-insecure"];
    let socket = format!("unix://{}", folder.path().join("s").display());
    // Standard input has an end, and a worker has no server. So neither runs on.
    let serve = ["serve", "--while-stdin", "--listen", &socket];
    let synth = ["synth", "--request", text(&request)];
    let mut commands = vec![fetch, prove.to_vec(), vec!["params", "list"]];
    commands.extend([srs.to_vec(), serve.to_vec(), synth.to_vec()]);
    commands.extend([vec!["worker"], vec!["tune", "gpu-threads"]]);
    for command in [
        ["params", "generate"],
        ["params", "verify"],
        ["params", "prepare"],
        ["pce", "build"],
    ] {
        commands.push([&command, &circuit[..]].concat());
    }
    for command in commands {
        let output = cuzk_in(&cache, &command);
        has_code("CUZK-0003", 2, &output);
        fails(
            2,
            "cache is a file, and parameters are kept in a folder",
            &output,
        );
        assert!(
            !stderr(&output).contains("compiling"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_configuration_with_which_no_daemon_starts_does_not_pass_its_check() {
    let scratch = Scratch::new();
    let tokens = scratch.at("tokens");
    std::fs::write(&tokens, "").unwrap();
    let journal = scratch.at("no-journal");
    std::fs::write(&journal, "a request").unwrap();
    let pem = scratch.at("no.pem");
    std::fs::write(&pem, "no certificate").unwrap();
    let state = scratch.at("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("jobs.redb"), "a request").unwrap();
    for (config, problem) in [
        (
            "[server]\nlisten = [\"tcp://0.0.0.0:0\"]\n".to_owned(),
            "nothing says who may call",
        ),
        (
            format!(
                "[server]\ntls_certificate = {pem:?}\ntls_key = {pem:?}\ntokens = {tokens:?}\n"
            ),
            "no.pem",
        ),
        (format!("[jobs]\njournal = {journal:?}\n"), "no journal"),
        (
            format!("[server]\nlisten = [\"unix://{}\"]\n", journal.display()),
            "is not a socket",
        ),
        (
            "[server]\nlisten = [\"127.0.0.1:7\"]\nhttp = \"127.0.0.1:7\"\n".to_owned(),
            "server.http: tcp://127.0.0.1:7 is in server.listen, too",
        ),
        (
            "[server]\nrequest_memory = \"1PiB\"\n".to_owned(),
            "server.request_memory (1024TiB) leaves nothing",
        ),
        (
            format!("[server]\nstate_dir = {state:?}\n"),
            "jobs.redb: it is there, and no journal",
        ),
        (
            format!("[cluster]\nservers = [\"nats://a:4222\"]\ncredentials = {pem:?}\n"),
            "neither a JWT nor the NKEY seed",
        ),
        (
            format!("[cluster]\nservers = [\"nats://a:4222\"]\nserver_ca = {pem:?}\n"),
            "cluster.server_ca: ",
        ),
        ("[jobs]\njournal = \"/dev/null\"\n".to_owned(), "no journal"),
        (
            "[cluster]\nservers = [\"nats://a:4222\"]\ncredentials = \"~/a.nkey\"\n".to_owned(),
            "only a shell expands the `~`",
        ),
        (
            "[memory]\ntotal_budget = \"99999999999GiB\"\n".to_owned(),
            "expected at most 1048576TiB",
        ),
        (
            "[gpus]\n[gpus]\n".to_owned(),
            "line 2: duplicate key; correct this line",
        ),
    ] {
        let output = cuzk(&["config", "check", text(&scratch.config(&config))]);
        has_code("CUZK-0005", 2, &output);
        let said = stderr(&output);
        assert!(said.contains(problem), "{config}: {said}");
    }
    let protected = "[server]\nlisten = [\"tcp://0.0.0.0:0\"]\nplaintext_from = [\"10.0.0.0/8\"]\n";
    let output = cuzk(&["config", "check", text(&scratch.config(protected))]);
    assert!(output.status.success(), "{}", stderr(&output));
}

/// The files of a client's credentials are files that were named, and no wrong options.
#[test]
fn a_file_of_credentials_that_cannot_be_read_is_told_as_a_file() {
    for option in ["--ca", "--token-file"] {
        let output = cuzk(&["status", "--address", "tcp://127.0.0.1:1", option, "nope"]);
        has_code("CUZK-0003", 2, &output);
        fails(2, "nope: ", &output);
    }
    fails(
        2,
        "no such folder; make it first",
        &cuzk(&["manual", "nope"]),
    );
}

#[test]
fn swapped_requests_and_outputs_destroy_nothing() {
    let scratch = Scratch::new();
    let request = scratch.at("request.json");
    let bytes = std::fs::read(data("window-post.json")).unwrap();
    std::fs::write(&request, &bytes).unwrap();
    let proof = scratch.at("proof");
    std::fs::write(&proof, "a proof").unwrap();
    let swapped = ["prove", "--request", text(&proof), "--out", text(&request)];
    fails(2, "swap --request and --out", &cuzk(&swapped));
    assert_eq!(std::fs::read(&request).unwrap(), bytes);

    let mut permissions = std::fs::metadata(&proof).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&proof, permissions).unwrap();
    let right = ["prove", "--request", text(&request), "--out", text(&proof)];
    fails(2, "read-only", &cuzk(&right));
    assert_eq!(std::fs::read(&proof).unwrap(), b"a proof");
}

#[test]
fn a_dash_is_standard_output_and_a_mark_is_no_part_of_a_request() {
    let scratch = Scratch::new();
    let request = scratch.at("marked.json");
    let bytes = std::fs::read(data("window-post.json")).unwrap();
    std::fs::write(&request, [&b"\xef\xbb\xbf"[..], &bytes].concat()).unwrap();
    let mut prove = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    prove.current_dir(scratch.folder.path());
    prove.env("FIL_PROOFS_PARAMETER_CACHE", param_cache());
    let output = prove
        .args(["prove", "--request", text(&request), "--out", "-"])
        .output_bounded()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(output.stdout.len(), 192);
    assert!(!scratch.at("-").exists());
    // One line for the result: the table of stages is for --verbose.
    let said = stderr(&output);
    assert_eq!(said.matches("verified").count(), 1, "{said}");
    assert!(!said.contains("queue_wait"), "{said}");
    let is_told = said.contains("partition 1 of 1 is proved: ");
    assert!(is_told && said.contains("finish "), "{said}");
}

/// By default a daemon makes multiples for WinningPoSts, and compares digests.
#[test]
fn a_command_that_ends_with_its_proofs_works_on_nothing_else() {
    let cache = linked_cache("winning-post");
    let (request, out) = (data("winning-post.json"), cache.path().join("p"));
    let trace = cache.path().join("run.json");
    let prove = ["prove", "--request", text(&request), "--out", text(&out)];
    let output = cuzk_in(
        cache.path(),
        &[&prove[..], &["--timeline", text(&trace)]].concat(),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let trace: Value = serde_json::from_slice(&std::fs::read(&trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let stages: Vec<_> = events.filter_map(|event| event["name"].as_str()).collect();
    assert!(stages.contains(&"verify"), "{stages:?}");
    for stage in ["multiples", "digests"] {
        assert!(!stages.contains(&stage), "{stages:?}");
    }
}

/// The stage has the name of the metrics' label, and no key stands twice.
#[test]
fn a_line_of_json_names_its_stage_as_the_metrics_do() {
    let cache = linked_cache("window-post");
    let multiples = params_in(cache.path()).with_extension("multiples");
    std::fs::write(multiples, "").unwrap();
    let config = cache.path().join("cuzk.toml");
    std::fs::write(&config, "[logging]\nformat = \"json\"\n").unwrap();
    let (request, out) = (data("window-post.json"), cache.path().join("p"));
    let prove = ["prove", "--request", text(&request), "--out", text(&out)];
    let output = cuzk_in(
        cache.path(),
        &[&["--config", text(&config)], &prove[..]].concat(),
    );
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let line = said
        .lines()
        .find(|line| line.contains("this file of multiples is not used"));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    let span = serde_json::from_str::<Value>(line).unwrap()["span"].clone();
    assert_eq!(
        (span["name"].as_str(), span["stage"].as_str()),
        (Some("stage"), Some("params"))
    );
}

#[test]
fn verbose_has_a_line_for_each_stage() {
    let scratch = Scratch::new();
    let output = scratch.prove("", "p", &["--verbose"]);
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    for stage in ["decode", "witness", "device", "verify"] {
        assert!(lines.lines().any(|line| line.starts_with(stage)), "{lines}");
    }
    assert!(lines.contains("device 0 (CPU): "), "{lines}");
}

#[test]
fn a_name_with_control_characters_reaches_no_terminal() {
    let output = cuzk(&["synth", "--request", "no\u{1b}[2Jsuch\nfile"]);
    let said = stderr(&output);
    assert!(!said.contains('\u{1b}'), "{said}");
    assert!(said.contains("no\\u{1b}[2Jsuch\\nfile: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let output = cuzk(&["frob\u{202e}x"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("'frob\\u{202e}x'"), "{said}");
    has_code("CUZK-0003", 2, &cuzk(&["pce", "inspect", "nope"]));

    // A list has a line for the folder and one for each file, whatever its name.
    let cache = tempfile::tempdir().unwrap();
    let name = "a\nverified\u{1b}[2J.params";
    std::fs::write(cache.path().join(name), "").unwrap();
    let listed = cuzk_in(cache.path(), &["params", "list"]);
    let lines = String::from_utf8(listed.stdout).unwrap();
    assert!(lines.contains("a\\nverified\\u{1b}[2J.params"), "{lines}");
    assert_eq!(lines.lines().count(), 2, "{lines}");
}

#[test]
fn an_argument_that_is_refused_shows_no_password() {
    let fetch = ["params", "fetch", "--kind", "window-post", "--sector-size"];
    let source = "http://user:word@host/";
    let fetch = [&fetch[..], &["2KiB", "--from", source]].concat();
    let status = ["status", "--address", "tcp://user:word@host:1"];
    let cluster = ["serve", "--cluster", "nats://user:word@host:1"];
    for arguments in [&fetch[..], &status, &cluster, &["demo", source]] {
        let output = cuzk(&[&["--json"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        for told in [&output.stdout, &output.stderr] {
            let told = String::from_utf8_lossy(told);
            assert!(told.contains("://…@host"), "{told}");
            assert!(!told.contains("word@"), "{told}");
        }
    }
}

#[test]
fn a_damaged_journal_is_one_line_and_leaves_no_lock_file() {
    let scratch = Scratch::new();
    let journal = scratch.at("jobs");
    let config = format!("[jobs]\njournal = {:?}\n", text(&journal));
    assert!(scratch.prove(&config, "p", &["--id", "a"]).status.success());
    let whole = std::fs::read(&journal).unwrap();
    std::fs::remove_file(scratch.at("jobs.lock")).unwrap();
    std::fs::write(&journal, &whole[..whole.len() / 2]).unwrap();
    let output = scratch.prove(&config, "q", &["--id", "a"]);
    has_code("CUZK-0021", 2, &output);
    assert!(
        !stderr(&output).contains("panicked at"),
        "{}",
        stderr(&output)
    );
    assert!(!scratch.at("jobs.lock").exists());
    assert_eq!(std::fs::read(&journal).unwrap(), whole[..whole.len() / 2]);
}

#[test]
fn a_changed_proof_of_the_journal_is_made_again_with_a_warning() {
    let scratch = Scratch::new();
    let journal = scratch.at("jobs");
    let config = format!("[jobs]\njournal = {:?}\n", text(&journal));
    assert!(scratch.prove(&config, "p", &["--id", "a"]).status.success());
    let proof = std::fs::read(scratch.at("p")).unwrap();
    let mut bytes = std::fs::read(&journal).unwrap();
    let places: Vec<_> = (0..bytes.len() - proof.len())
        .filter(|&at| bytes[at..].starts_with(&proof))
        .collect();
    assert!(!places.is_empty(), "the proof is in the journal");
    for at in places {
        bytes[at + 7] ^= 1;
    }
    std::fs::write(&journal, bytes).unwrap();
    let output = scratch.prove(&config, "q", &["--id", "a"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("again"), "{}", stderr(&output));
    assert_ne!(std::fs::read(scratch.at("q")).unwrap(), proof);
}

#[test]
fn parameters_that_do_not_fit_are_told_once() {
    let scratch = Scratch::new();
    // Without multiples, with which a proof needs less memory.
    let cache = linked_cache("winning-post");
    let request = data("winning-post.json");
    let prove = |mib: u64, count: usize| {
        let config = scratch.config(&format!(
            "[memory]\ntotal_budget = \"{mib}MiB\"\nsafety_margin = \"1MiB\"\n\
             critical_reserve = \"0B\"\n"
        ));
        let outs: Vec<_> = (0..count).map(|at| scratch.at(&at.to_string())).collect();
        let each = outs.iter();
        let each = each.flat_map(|out| ["--request", text(&request), "--out", text(out)]);
        let arguments = ["--config", text(&config), "prove"].into_iter().chain(each);
        cuzk_in(cache.path(), &arguments.collect::<Vec<_>>())
    };
    // Enough to read the circuit, and not to prove.
    let small = stderr(&prove(66, 1));
    let needed = small.split(" MiB of memory are needed").next().unwrap();
    let needed: u64 = needed.rsplit(' ').next().unwrap().parse().unwrap();
    let output = prove(needed + 2, 4);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = stderr(&output).matches("do not fit into memory").count();
    assert_eq!(told, 1, "{}", stderr(&output));
}

#[test]
fn a_second_generator_says_that_it_waits() {
    let cache = linked_cache("window-post");
    let lock = format!("{}.lock", text(&params_in(cache.path())));
    let paths = std::fs::read_dir(cache.path()).unwrap();
    let paths: Vec<_> = paths.map(|entry| entry.unwrap().path()).collect();
    let lock = std::fs::File::create(lock).unwrap();
    lock.lock().unwrap();
    let is_circuit = |path: &Path| path.extension().is_some_and(|last| last == "circuit");
    for path in paths.iter().filter(|path| !is_circuit(path)) {
        std::fs::remove_file(path).unwrap();
    }
    let mut generate = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    generate.env("FIL_PROOFS_PARAMETER_CACHE", cache.path());
    generate.args(["params", "generate", "--kind", "window-post"]);
    generate.args(["--sector-size", "2KiB"]);
    let mut child = generate
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(said).map(Result::unwrap);
    assert!(lines.any(|line| line.contains("another process makes these")));
    drop(lock);
    for _ in lines {}
    assert!(child.wait_bounded().unwrap().success());
}
