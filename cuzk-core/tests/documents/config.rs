//! Configuration files: every shipped file resolves, every kind of bad input is
//! told with its line and key, and what is printed reads back the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cuzk_core::config::{
    Address, BG2, Cluster, Config, ConfigError, Cpu, Devices, Gpus, Host, Jobs, LogFormat,
    LogLevel, Logging, Memory, Pipeline, ProblemKind, REQUEST_MEMORY_MIN_BYTES, SECTIONS, Server,
    Srs, Synthesis, TOTAL_BUDGET_MIN_BYTES,
};

use cuzk_core::scheduler::priority::Patience;
use cuzk_filecoin::ProofKind;
use cuzk_groth16::CircuitForm;
use cuzk_kernels::Isa;
use cuzk_memory::{Dealloc, ThrottleManner};
use proptest::prelude::*;

/// A machine with two GPUs, whatever this one is.
fn host() -> Host {
    Host {
        cores: 16,
        memory_bytes: Some(128 << 30),
        cuda: true,
        param_cache: None,
        state_dir: Some("/state/cuzk".into()),
        name: Some("prover.example.com".to_owned()),
    }
}

fn host_without_cuda() -> Host {
    Host {
        cuda: false,
        ..host()
    }
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, "test.toml", &host())
}

/// Every problem of a text, as people read it.
fn problems_on(text: &str, host: &Host) -> Vec<String> {
    match Config::parse(text, "test.toml", host) {
        Err(ConfigError::Invalid { problems, .. }) => {
            problems.iter().map(ToString::to_string).collect()
        }
        Err(other) => panic!("{text}: {other}"),
        Ok(config) => panic!("{text}: resolved to {config:?}"),
    }
}

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../configs")
        .join(name)
}

fn shipped_on(name: &str, host: &Host) -> Config {
    let text = fs::read_to_string(shipped(name)).unwrap();
    Config::parse(&text, name, host).unwrap()
}

#[test]
fn an_empty_file_is_the_default() {
    for text in ["", "\n# nothing\n", "[gpus]\n", "[memory]\n[srs]\n"] {
        assert_eq!(
            parse(text).unwrap(),
            Config::default_for(&host()),
            "{text:?}"
        );
    }
}

#[test]
fn the_default_uses_the_whole_machine() {
    let config = Config::default_for(&host());
    assert_eq!(config.synthesis.threads, 16);
    assert_eq!(config.gpus.gpu_threads, 16);
    assert_eq!(config.gpus.devices, Devices::Auto);
    assert_eq!(config.memory.total_budget_bytes, 128 << 30);
    assert!(config.memory.safety_margin_bytes < config.memory.total_budget_bytes);
    assert_eq!(
        Config::default_for(&host_without_cuda()).gpus.devices,
        Devices::Cpu
    );
    let unknown = Host {
        memory_bytes: None,
        ..host()
    };
    assert!(Config::default_for(&unknown).memory.total_budget_bytes <= 4 << 30);
}

#[test]
fn the_default_file_is_the_built_in_default() {
    for host in [host(), host_without_cuda()] {
        assert_eq!(
            shipped_on("default.toml", &host),
            Config::default_for(&host)
        );
    }
    assert_eq!(
        Config::load(&shipped("default.toml")).unwrap(),
        Config::default()
    );
}

#[test]
fn the_cpu_file_uses_no_gpu() {
    for host in [host(), host_without_cuda()] {
        let config = shipped_on("cpu-only.toml", &host);
        assert_eq!(config.gpus.devices, Devices::Cpu);
        assert_eq!(config.synthesis.threads, 16);
    }
    assert_eq!(
        Config::load(&shipped("cpu-only.toml"))
            .unwrap()
            .gpus
            .devices,
        Devices::Cpu
    );
}

#[test]
fn the_gpu_files_name_their_devices() {
    let one = shipped_on("one-gpu.toml", &host());
    assert_eq!(one.gpus.devices, Devices::Ordinals(vec![0]));
    assert_eq!(one.gpus.gpu_workers_per_device, 2);
    let many = shipped_on("many-gpu.toml", &host());
    assert_eq!(many.gpus.devices, Devices::Ordinals(vec![0, 1, 2, 3]));
    assert_eq!(many.memory.total_budget_bytes, 512 << 30);
    for name in ["one-gpu.toml", "many-gpu.toml"] {
        let text = fs::read_to_string(shipped(name)).unwrap();
        let problems = problems_on(&text, &host_without_cuda());
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("CPU only"), "{problems:?}");
    }
}

/// Each preset resolves with a GPU backend and without one, and changes something.
#[test]
fn every_preset_resolves_on_every_build() {
    let folder = fs::read_dir(shipped("presets")).unwrap();
    let mut names: Vec<_> = folder
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 6, "{names:?}");
    for name in names {
        let path = format!("presets/{name}");
        let config = shipped_on(&path, &host());
        assert_eq!(config.gpus.devices == Devices::Cpu, name.starts_with("cpu"));
        assert_ne!(config, Config::default_for(&host()), "{name}");
        let alone = shipped_on(&path, &host_without_cuda());
        assert_eq!(alone.gpus.devices, Devices::Cpu, "{name}");
        let documented = fs::read_to_string(shipped("../docs/configuration.md")).unwrap();
        assert!(
            documented.contains(&format!("configs/presets/{name}")),
            "{name}"
        );
    }
}

#[test]
fn the_phases_differ_in_their_interventions_only() {
    for host in [host(), host_without_cuda()] {
        let nine = shipped_on("phase-9.toml", &host);
        let eleven = shipped_on("phase-11.toml", &host);
        assert_eq!(nine.synthesis.circuit, CircuitForm::Plain);
        assert_eq!(nine.synthesis.partition_workers, 10);
        assert_eq!(nine.gpus.gpu_workers_per_device, 2);
        assert_eq!(nine.memory.dealloc, Dealloc::Unbounded);
        assert_eq!(nine.gpus.gpu_threads, 16);
        assert_eq!(nine.pipeline.max_batch, 1);
        assert!(!nine.pipeline.throttle);
        let mut with_interventions = nine;
        with_interventions.memory.dealloc = Dealloc::Serial;
        with_interventions.gpus.gpu_threads = 32;
        with_interventions.pipeline.throttle = true;
        with_interventions.pipeline.throttle_manner = ThrottleManner::Yield;
        assert_eq!(eleven, with_interventions);
    }
}

/// A key that a shipped file does not show is a key that nobody finds.
#[test]
fn the_default_file_shows_every_key() {
    let text = fs::read_to_string(shipped("default.toml")).unwrap();
    for (section, keys) in SECTIONS {
        assert!(text.contains(&format!("\n[{section}]\n")), "{section}");
        for (key, _) in *keys {
            let shown = text.lines().any(|line| {
                line.trim_start_matches("# ")
                    .starts_with(&format!("{key} = "))
            });
            assert!(shown, "{section}.{key}");
        }
    }
}

#[test]
fn the_list_of_keys_is_the_list_of_fields() {
    let printed: toml::Table = Config::default_for(&host()).to_toml().parse().unwrap();
    let fields: Vec<_> = printed
        .iter()
        .flat_map(|(section, keys)| {
            keys.as_table()
                .unwrap()
                .keys()
                .map(move |key| format!("{section}.{key}"))
        })
        .collect();
    let mut listed: Vec<_> = SECTIONS
        .iter()
        .flat_map(|(section, keys)| keys.iter().map(move |(key, _)| format!("{section}.{key}")))
        .collect();
    listed.sort();
    let mut fields_sorted = fields;
    fields_sorted.sort();
    assert_eq!(fields_sorted, listed);
}

#[test]
fn the_cache_of_the_file_wins_over_the_environment_over_the_default() {
    let with_variable = Host {
        param_cache: Some("/from/env".into()),
        ..host()
    };
    let cache = |text, host: &Host| Config::parse(text, "test", host).unwrap().srs.param_cache;
    let text = "[srs]\nparam_cache = \"/from/file\"\n";
    assert_eq!(cache(text, &with_variable), Path::new("/from/file"));
    assert_eq!(cache("", &with_variable), Path::new("/from/env"));
    assert_eq!(
        cache("", &host()),
        Path::new("/var/tmp/filecoin-proof-parameters")
    );
}

const GOOD_VALUES: &str = r#"
        [srs]
        param_cache = "cache"
        multiples = ["window-post", "winning-post", "window-post"]
        check_digests = false
        sources = ["cuzk://prover:9821", "cuzk://prover:9821"]
        [synthesis]
        threads = 0
        partition_workers = 3
        circuit = "plain"
        [gpus]
        devices = [2, 0]
        gpu_threads = 32
        gpu_workers_per_device = 1
        faults_max = 5
        stall_s = 30
        rest_s = 40
        b_g2 = "device"
        memory_limit = "16GB"
        [memory]
        total_budget = "1.5GiB"
        safety_margin = 1048576
        critical_reserve = "64MiB"
        dealloc = "serial"
        [cpu]
        isa = "portable"
        [pipeline]
        synthesis_lookahead = 4
        finish_workers = 2
        max_batch = 3
        throttle = true
        throttle_manner = "yield"
        [jobs]
        queued_partitions = 20
        results_kept = 7
        results_kept_s = 60
        normal_patience_s = 600
        low_patience_s = 6000
        journal = "jobs.redb"
        [server]
        listen = ["unix:/run/cuzk.sock", "[::1]:1", "unix:///run/cuzk.sock"]
        http = "0.0.0.0:80"
        socket_mode = "666"
        socket_group = "storage"
        tls_certificate = "server.pem"
        tls_key = "key.pem"
        client_ca = "ca.pem"
        tokens = "tokens.txt"
        plaintext_from = ["10.1.2.3/16", "fd00::1"]
        request_memory = "1GiB"
        drain_s = 5
        state_dir = "state"
        serve_params = true
        [cluster]
        servers = ["nats://a:4222", "tls://[::1]:1", "nats://a:4222"]
        name = "prover_7"
        local = false
        credentials = "prover.creds"
        server_ca = "nats-ca.pem"
        client_certificate = "prover.pem"
        client_key = "prover-key.pem"
        work_bytes_max = "1GiB"
        object_bytes_max = 1000
        age_max_s = 60
        replicas = 3
        [logging]
        level = "debug"
        format = "json"
    "#;

fn tcp(host: &str, port: u16) -> Address {
    let host = host.to_owned();
    Address::Tcp { host, port }
}

fn good_server() -> Server {
    Server {
        listen: vec![Address::Unix("/run/cuzk.sock".into()), tcp("::1", 1)],
        http: Some(tcp("0.0.0.0", 80)),
        socket_mode: 0o666,
        socket_group: Some("storage".to_owned()),
        tls_certificate: Some("server.pem".into()),
        tls_key: Some("key.pem".into()),
        client_ca: Some("ca.pem".into()),
        tokens: Some("tokens.txt".into()),
        plaintext_from: vec![
            "10.1.0.0/16".parse().unwrap(),
            "fd00::1/128".parse().unwrap(),
        ],
        request_memory_bytes: 1 << 30,
        drain: Duration::from_secs(5),
        state_dir: Some("state".into()),
        serve_params: true,
    }
}

fn good_cluster() -> Cluster {
    Cluster {
        servers: vec![
            "nats://a:4222".parse().unwrap(),
            "tls://[::1]:1".parse().unwrap(),
        ],
        name: "prover_7".to_owned(),
        local: false,
        credentials: Some("prover.creds".into()),
        server_ca: Some("nats-ca.pem".into()),
        client_certificate: Some("prover.pem".into()),
        client_key: Some("prover-key.pem".into()),
        work_bytes_max: 1 << 30,
        object_bytes_max: 1000,
        age_max: Duration::from_secs(60),
        replicas: 3,
    }
}

#[test]
fn a_machine_is_in_no_cluster_and_has_the_name_of_its_host() {
    let cluster = parse("").unwrap().cluster;
    assert!(cluster.servers.is_empty() && cluster.local);
    assert_eq!(cluster.name, "prover");
    let empty = parse("[cluster]\nname = \"\"\nwork_bytes_max = \"auto\"\n");
    assert_eq!(empty.unwrap().cluster, cluster);
}

#[test]
fn good_values_resolve() {
    let expected = Config {
        srs: Srs {
            param_cache: "cache".into(),
            multiples: vec![ProofKind::WindowPost, ProofKind::WinningPost],
            check_digests: false,
            sources: vec!["cuzk://prover:9821".parse().unwrap()],
        },
        synthesis: Synthesis {
            threads: 16,
            partition_workers: 3,
            circuit: CircuitForm::Plain,
        },
        gpus: Gpus {
            devices: Devices::Ordinals(vec![2, 0]),
            gpu_threads: 32,
            gpu_workers_per_device: 1,
            faults_max: 5,
            stall: Duration::from_secs(30),
            rest: Duration::from_secs(40),
            b_g2: BG2::Device,
            memory_limit_bytes: Some(16_000_000_000),
        },
        memory: Memory {
            total_budget_bytes: 3 << 29,
            safety_margin_bytes: 1 << 20,
            critical_reserve_bytes: 64 << 20,
            dealloc: Dealloc::Serial,
        },
        cpu: Cpu { isa: Isa::PORTABLE },
        pipeline: Pipeline {
            synthesis_lookahead: 4,
            finish_workers: 2,
            max_batch: 3,
            throttle: true,
            throttle_manner: ThrottleManner::Yield,
        },
        jobs: Jobs {
            queued_partitions: 20,
            results_kept: 7,
            results_kept_for: Duration::from_secs(60),
            patience: Patience {
                normal: Duration::from_secs(600),
                low: Duration::from_secs(6000),
            },
            journal: Some("jobs.redb".into()),
        },
        server: good_server(),
        cluster: good_cluster(),
        logging: Logging {
            level: LogLevel::Debug,
            format: LogFormat::Json,
        },
    };
    assert_eq!(parse(GOOD_VALUES).unwrap(), expected);
}

#[test]
fn a_daemon_listens_on_loopback_by_itself() {
    let server = parse("").unwrap().server;
    assert_eq!(server.listen, [tcp("127.0.0.1", 9820)]);
    assert_eq!(server.http, Some(tcp("127.0.0.1", 9821)));
    assert_eq!(server.state_dir.unwrap(), Path::new("/state/cuzk"));
    let nowhere = parse("[server]\nlisten = []\nhttp = \"\"\n")
        .unwrap()
        .server;
    assert_eq!((nowhere.listen, nowhere.http), (Vec::new(), None));
}

#[test]
fn the_memory_of_requests_is_an_eighth_between_its_bounds() {
    let bytes = |budget: &str| {
        let text = format!("[memory]\ntotal_budget = {budget}\nsafety_margin = 1\n");
        parse(&text).unwrap().server.request_memory_bytes
    };
    assert_eq!(bytes("\"16MiB\""), REQUEST_MEMORY_MIN_BYTES);
    assert_eq!(bytes("17179869185"), 2 << 30);
    assert_eq!(bytes("\"1TiB\""), 4 << 30);
}

#[test]
fn the_engine_does_without_the_memory_of_requests() {
    let memory = "[memory]\ntotal_budget = \"2GiB\"\nsafety_margin = \"512MiB\"\n";
    let text =
        format!("{memory}critical_reserve = \"1GiB\"\n[server]\nrequest_memory = \"512MiB\"\n");
    let config = parse(&text).unwrap();
    let engines = config.beside_requests().unwrap();
    assert_eq!(engines.memory.usable_bytes(), 1 << 30);
    assert_eq!(engines.memory.total_budget_bytes, 2 << 30);
    assert_eq!(engines.memory.critical_reserve_bytes, 512 << 20);
    let all = text.replace("\"512MiB\"\n", "\"1536MiB\"\n");
    let all = all.replace("safety_margin = \"1536MiB\"", "safety_margin = \"512MiB\"");
    let error = parse(&all).unwrap().beside_requests().unwrap_err();
    assert!(
        error.to_string().starts_with("server.request_memory"),
        "{error}"
    );
}

#[test]
fn sizes_have_units() {
    let budget = |size: &str| {
        parse(&format!("[memory]\ntotal_budget = {size}\n"))
            .unwrap()
            .memory
            .total_budget_bytes
    };
    assert_eq!(budget("\"16GiB\""), 16 << 30);
    assert_eq!(budget("\"16 gib\""), 16 << 30);
    assert_eq!(budget("\"16GB\""), 16_000_000_000);
    assert_eq!(budget("\"auto\""), 128 << 30);
    assert_eq!(budget("16777216"), TOTAL_BUDGET_MIN_BYTES);
    assert_eq!(budget("\"9007199254740993B\""), 9_007_199_254_740_993);
}

#[test]
fn nothing_is_reserved_in_every_spelling_of_nothing() {
    for size in ["0", "\"0B\"", "\"0GiB\"", "\"0 MB\""] {
        let config = parse(&format!("[memory]\ncritical_reserve = {size}\n")).unwrap();
        assert_eq!(config.memory.critical_reserve_bytes, 0, "{size}");
    }
    assert!(parse("[memory]\ncritical_reserve = \"0\"\n").is_err());
}

/// A text, and what each line of its report contains.
type BadInput = (&'static str, &'static [&'static str]);

const BAD_INPUT: &[BadInput] = &[
    // Misspelt and misplaced.
    (
        "[gpu]\n",
        &["line 1: gpu: unknown section; did you mean [gpus]?"],
    ),
    (
        "[zzz]\n",
        &["line 1: zzz: unknown section; the sections are [srs], [synthesis], [gpus]"],
    ),
    (
        "\n[gpus]\ngpu_thread = 3\n",
        &["line 3: [gpus] gpu_thread: unknown key; did you mean `gpu_threads`?"],
    ),
    (
        "[synthesis]\ngpu_threads = 3\n",
        &["line 2: [synthesis] gpu_threads: unknown key; it belongs in [gpus]"],
    ),
    (
        "gpu_threads = 3\n",
        &["line 1: gpu_threads: unknown key; it belongs in [gpus]"],
    ),
    (
        "[srs]\nsafty_margin = 3\n",
        &["line 2: [srs] safty_margin: unknown key; did you mean `safety_margin` in [memory]?"],
    ),
    (
        "[srs]\nqqqq = 3\n",
        &["line 2: [srs] qqqq: unknown key; [srs] has `param_cache`"],
    ),
    (
        "qqqq = 3\n",
        &["line 1: qqqq: unknown key; every key belongs in one of the sections"],
    ),
    (
        "synthesis.threds = 3\n",
        &["line 1: [synthesis] threds: unknown key; did you mean `threads`?"],
    ),
    // Sizes.
    (
        "[memory]\ntotal_budget = \"lots\"\n",
        &["line 2: [memory] total_budget: expected a size"],
    ),
    ("[memory]\ntotal_budget = \"16\"\n", &["got \"16\""]),
    (
        "[memory]\ntotal_budget = \"16 Gigs\"\n",
        &["got \"16 Gigs\""],
    ),
    ("[memory]\ntotal_budget = \"-1GiB\"\n", &["got \"-1GiB\""]),
    ("[memory]\ntotal_budget = \"\"\n", &["got \"\""]),
    (
        "[memory]\ntotal_budget = \"99999999999EiB\"\n",
        &["expected at most 1048576TiB"],
    ),
    (
        "[memory]\ntotal_budget = \"1e400GiB\"\n",
        &["got \"1e400GiB\""],
    ),
    (
        "[memory]\ntotal_budget = 1.5\n",
        &["expected a size such as \"16GiB\", a number of bytes, or \"auto\", got float"],
    ),
    ("[memory]\nsafety_margin = \"Auto\"\n", &["got \"Auto\""]),
    // Zeros.
    (
        "[synthesis]\npartition_workers = 0\n",
        &["line 2: [synthesis] partition_workers: expected a whole number, at least 1, got 0"],
    ),
    (
        "[gpus]\ngpu_workers_per_device = 0\n",
        &["[gpus] gpu_workers_per_device: expected"],
    ),
    (
        "[gpus]\nb_g2 = \"gpu\"\nmemory_limit = 0\n",
        &[
            "line 2: [gpus] b_g2: expected one of \"cpu\", \"device\", \"auto\", got \"gpu\"",
            "line 3: [gpus] memory_limit: expected a size",
        ],
    ),
    (
        "[srs]\nmultiples = [\"winning-post\", \"winningpost\", \"\"]\n",
        &[
            "line 2: [srs] multiples: expected a list of kinds of \"porep\"",
            "[srs] multiples: expected a list of kinds",
        ],
    ),
    (
        "[srs]\nmultiples = \"winning-post\"\n",
        &["line 2: [srs] multiples: expected a list of kinds of"],
    ),
    (
        "[gpus]\nb_g2 = true\nmemory_limit = \"16 gigs\"\n",
        &[
            "[gpus] b_g2: expected one of \"cpu\", \"device\", \"auto\", got boolean",
            "[gpus] memory_limit: expected a size such as \"16GiB\"",
        ],
    ),
    (
        "[memory]\ntotal_budget = \"1GiB\"\nsafety_margin = \"512MiB\"\ncritical_reserve = \"512MiB\"\n",
        &["[memory] critical_reserve: expected less than total_budget without safety_margin"],
    ),
    (
        "[gpus]\nstall_s = 0\n[jobs]\nresults_kept_s = 999999999999\nlow_patience_s = -1\n",
        &[
            "[gpus] stall_s: expected",
            "[jobs] results_kept_s: expected at most",
            "[jobs] low_patience_s: expected",
        ],
    ),
    (
        "[pipeline]\nsynthesis_lookahead = 0\n",
        &["[pipeline] synthesis_lookahead: expected"],
    ),
    (
        "[pipeline]\nmax_batch = 0\n",
        &["[pipeline] max_batch: expected"],
    ),
    (
        "[memory]\ntotal_budget = 0\n",
        &["[memory] total_budget: expected"],
    ),
    (
        "[memory]\ntotal_budget = \"0GiB\"\n",
        &["[memory] total_budget: expected"],
    ),
    (
        "[memory]\nsafety_margin = \"0B\"\n",
        &["[memory] safety_margin: expected"],
    ),
    // Wrong types.
    (
        "[synthesis]\nthreads = \"8\"\n",
        &["line 2: [synthesis] threads: expected a whole number (0 for all cores), got string"],
    ),
    ("[synthesis]\nthreads = 2.0\n", &["got float"]),
    (
        "[synthesis]\nthreads = 99999999999999999999999\n",
        &["got integer of more than 64 bits"],
    ),
    (
        "[gpus]\ndevices = [\"a\"]\ngpu_threads = [1]\n",
        &[
            "or a list of device ordinals such as [0, 1], got array of something else",
            "got array",
        ],
    ),
    (
        "[pipeline]\nthrottle = 1\n",
        &["expected true or false, got integer"],
    ),
    (
        "[srs]\nparam_cache = 7\n",
        &["expected a path in quotes, got integer"],
    ),
    (
        "[srs]\nparam_cache = \"\"\n",
        &["expected a path in quotes, got an empty text"],
    ),
    ("srs = 3\n", &["srs: expected a section"]),
    ("[[srs]]\n", &["srs: expected a section"]),
    (
        "[srs.param_cache]\n",
        &["[srs] param_cache: expected a path in quotes, got table"],
    ),
    (
        "[logging]\nlevel = \"verbose\"\n",
        &["line 2: [logging] level: expected one of \"off\""],
    ),
    (
        "[cpu]\nisa = \"sse\"\n",
        &[
            "line 2: [cpu] isa: expected one of \"auto\", \"ifma\", \"avx2\", \"scalar\", \"portable\", got \"sse\"",
        ],
    ),
    (
        "[synthesis]\ncircuit = \"dense\"\n",
        &["line 2: [synthesis] circuit: expected one of \"compiled\", \"plain\", got \"dense\""],
    ),
    (
        "[pipeline]\nthrottle_manner = \"spin\"\n",
        &["line 2: [pipeline] throttle_manner: expected one of \"sleep\", \"yield\", got \"spin\""],
    ),
    (
        "[memory]\ndealloc = \"never\"\n",
        &["line 2: [memory] dealloc: expected one of \"recycle\""],
    ),
    (
        "[logging]\nformat = \"xml\"\n",
        &["expected \"text\" or \"json\", got \"xml\""],
    ),
    // Out of range.
    (
        "[synthesis]\nthreads = -1\n",
        &["line 2: [synthesis] threads: expected a whole number (0 for all cores), got -1"],
    ),
    (
        "[synthesis]\nthreads = 4097\n",
        &["expected at most 4096, got 4097"],
    ),
    (
        "[synthesis]\nthreads = 257\n[gpus]\ngpu_threads = 4096\n",
        &[
            "line 2: [synthesis] threads: expected at most 256 threads on 16 core(s), got 257",
            "line 4: [gpus] gpu_threads: expected at most 256 threads on 16 core(s), got 4096",
        ],
    ),
    (
        "[synthesis]\nthreads = 99999999999999999999\n",
        &["line 2: [synthesis] threads"],
    ),
    ("[memory]\ntotal_budget = -5\n", &["got -5"]),
    (
        "[memory]\ntotal_budget = \"1GiB\"\nsafety_margin = \"1GiB\"\n",
        &["line 3: [memory] safety_margin: expected less than total_budget"],
    ),
    (
        "[memory]\nsafety_margin = \"200GiB\"\n",
        &["line 2: [memory] safety_margin: expected less than total_budget"],
    ),
    (
        "[memory]\ntotal_budget = 1\n",
        &["line 2: [memory] total_budget: expected"],
    ),
    (
        "[memory]\ntotal_budget = 16\n",
        &["line 2: [memory] total_budget: expected at least 16MiB, got 16B"],
    ),
    // A path that only a shell understands.
    (
        "[srs]\nparam_cache = \"~/params\"\nsources = [\"~\"]\n[jobs]\njournal = \"~curio/jobs\"\n\
         [server]\nstate_dir = \"~\"\n",
        &[
            "line 2: [srs] param_cache: only a shell expands the `~` of \"~/params\"; write the",
            "line 3: [srs] sources: only a shell expands the `~` of \"~\"",
            "line 5: [jobs] journal: only a shell expands the `~` of \"~curio/jobs\"",
            "line 7: [server] state_dir: only a shell expands the `~` of \"~\"",
        ],
    ),
    // Devices.
    (
        "[gpus]\ndevices = \"gpu\"\n",
        &["line 2: [gpus] devices: expected \"cpu\", \"auto\" or a list"],
    ),
    ("[gpus]\ndevices = 0\n", &["got integer"]),
    ("[gpus]\ndevices = [0, \"1\"]\n", &["got array"]),
    ("[gpus]\ndevices = []\n", &["write \"cpu\" to use no GPU"]),
    (
        "[gpus]\ndevices = [1, 1]\n",
        &["device 1 stands in the list twice"],
    ),
    ("[gpus]\ndevices = [-1]\n", &["got -1"]),
    (
        "[gpus]\ndevices = [5000000000]\n",
        &["expected at most 4096"],
    ),
    // The daemon.
    (
        "[server]\nlisten = [\"localhost\", \"unix:a\"]\nhttp = \"unix:///a\"\n",
        &[
            "line 2: [server] listen: \"localhost\" is not an address: the port is missing; write",
            "line 2: [server] listen: \"unix:a\" is not an address: the path",
            "line 3: [server] http: expected \"HOST:PORT\", or \"\" for no HTTP, got \"unix:///a\"",
        ],
    ),
    (
        "[server]\nlisten = \"tcp://127.0.0.1:1\"\nhttp = \"9821\"\n",
        &["expected a list of addresses", "the port is missing"],
    ),
    (
        "[server]\nsocket_mode = \"0o660\"\nplaintext_from = [\"10.0.0.0/8\", \"lan\"]\n",
        &[
            "line 2: [server] socket_mode: expected octal permissions in quotes such as \"0660\"",
            "line 3: [server] plaintext_from: expected a list of networks such as \"10.0.0.0/8\"",
        ],
    ),
    ("[server]\nsocket_mode = \"1777\"\n", &["got \"1777\""]),
    ("[server]\nsocket_mode = \"+660\"\n", &["got \"+660\""]),
    (
        "[server]\ntls_certificate = \"a\"\nclient_ca = \"b\"\n",
        &["line 2: [server] tls_certificate: it has no effect without `tls_key`; set both"],
    ),
    (
        "[server]\ntls_key = \"a\"\ntokens = \"b\"\n",
        &[
            "line 2: [server] tls_key: it has no effect without `tls_certificate`",
            "line 3: [server] tokens: it has no effect without `tls_certificate`",
        ],
    ),
    (
        "[server]\nrequest_memory = \"256MiB\"\n",
        &["line 2: [server] request_memory: expected at least 320MiB, got 256MiB"],
    ),
    // The cluster.
    (
        "[cluster]\nservers = [\"a:4222\", \"nats://u:p@a:1\"]\nname = \"a.b\"\nreplicas = 6\n",
        &[
            "line 2: [cluster] servers: \"a:4222\" is not the address of a server: the scheme is",
            "line 2: [cluster] servers: \"nats://…@a:1\" is not the address of a server: it has a",
            "line 3: [cluster] name: expected a name of 1 to 64 letters, digits, \"-\" and \"_\"",
            "line 4: [cluster] replicas: expected at most 5, got 6",
        ],
    ),
    (
        "[cluster]\nclient_certificate = \"a\"\nlocal = 1\nage_max_s = 0\nobject_bytes_max = 0\n",
        &[
            "line 2: [cluster] client_certificate: it has no effect without `client_key`",
            "line 3: [cluster] local: expected true or false",
            "line 4: [cluster] age_max_s: expected a whole number of seconds",
            "line 5: [cluster] object_bytes_max: expected a size",
        ],
    ),
    // Not TOML.
    ("[srs\n", &["line 1: "]),
    ("[srs]\nparam_cache = /tmp\n", &["line 2: "]),
    ("[srs]\n[srs]\n", &["line 2: duplicate key"]),
    (
        "[pipeline]\nthrottle = true\nthrottle = true\n",
        &["line 3: duplicate key"],
    ),
    // All of it at once, in the file's order.
    (
        "[gpus]\ngpu_thread = 1\ngpu_workers_per_device = 0\n\n[memory]\ntotal_budget = \"16 Gigs\"\n\
             safety_margin = true\n[loging]\nlevel = \"info\"\n[synthesis]\nthreads = \"x\"\n",
        &[
            "line 2: [gpus] gpu_thread",
            "line 3: [gpus] gpu_workers_per_device",
            "line 6: [memory] total_budget",
            "line 7: [memory] safety_margin",
            "line 8: loging: unknown section; did you mean [logging]?",
            "line 11: [synthesis] threads",
        ],
    ),
];

#[test]
fn bad_input_is_told_with_line_and_key() {
    for (text, expected) in BAD_INPUT {
        let problems = problems_on(text, &host());
        assert_eq!(problems.len(), expected.len(), "{text:?}: {problems:#?}");
        for (problem, expected) in problems.iter().zip(*expected) {
            assert!(
                problem.contains(expected),
                "{text:?}: {problem:?}, not {expected:?}"
            );
        }
    }
}

/// The log of a service would keep it.
#[test]
fn a_problem_shows_no_password() {
    let text = "[srs]\nsources = [\"http://user:secret@host/\"]\n\
                [server]\nlisten = [\"tcp://user:secret@host:1\"]\n\
                [cluster]\nservers = [\"nats://user:secret@host:1\"]\n";
    let problems = problems_on(text, &host());
    assert_eq!(problems.len(), 3, "{problems:?}");
    for problem in problems {
        assert!(problem.contains("://…@host"), "{problem}");
        assert!(!problem.contains("secret"), "{problem}");
    }
}

#[test]
fn ordinals_without_cuda_are_refused() {
    let problems = problems_on("[gpus]\ndevices = [0]\n", &host_without_cuda());
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("line 2: [gpus] devices: this build proves on the CPU only"));
    let error = Config::parse("[gpus]\ndevices = [0]\n", "x", &host_without_cuda()).unwrap_err();
    let ConfigError::Invalid { problems, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(problems[0].kind, ProblemKind::NoCuda);
}

#[test]
fn bad_files_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml");
    let error = Config::load(&missing).unwrap_err();
    assert!(matches!(error, ConfigError::Read { .. }), "{error}");
    assert!(error.to_string().contains("missing.toml"));

    let error = Config::load(folder.path()).unwrap_err();
    assert!(matches!(error, ConfigError::Read { .. }), "{error}");

    let binary = folder.path().join("binary.toml");
    fs::write(&binary, b"[srs]\n\n\xff\xfe\n").unwrap();
    let error = Config::load(&binary).unwrap_err();
    assert!(
        matches!(error, ConfigError::NotUtf8 { line: 3, .. }),
        "{error}"
    );

    let wrong = folder.path().join("wrong.toml");
    fs::write(&wrong, "[srs]\nnope = 1\n[gpus]\ngpu_threads = -1\n").unwrap();
    let text = Config::load(&wrong).unwrap_err().to_string();
    assert!(text.contains("wrong.toml"), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
}

fn any_devices() -> impl Strategy<Value = Devices> {
    prop_oneof![
        Just(Devices::Cpu),
        Just(Devices::Auto),
        proptest::collection::btree_set(0u32..=4096, 1..8)
            .prop_map(|set| Devices::Ordinals(set.into_iter().rev().collect())),
    ]
}

fn any_memory() -> impl Strategy<Value = Memory> {
    (TOTAL_BUDGET_MIN_BYTES..=1 << 60, 1u64..1 << 60, 0u32..50).prop_map(
        |(total, margin, zeros)| {
            let total_budget_bytes = ((total >> zeros) << zeros).max(TOTAL_BUDGET_MIN_BYTES);
            let safety_margin_bytes = 1 + margin % (total_budget_bytes - 1);
            Memory {
                total_budget_bytes,
                safety_margin_bytes,
                critical_reserve_bytes: (total_budget_bytes - safety_margin_bytes) / 3,
                dealloc: Dealloc::ALL[zeros as usize % Dealloc::ALL.len()],
            }
        },
    )
}

fn any_address() -> impl Strategy<Value = Address> {
    prop_oneof![
        "/[a-z/]{0,30}[a-zß]".prop_map(|path| Address::Unix(path.into())),
        ("[a-z0-9.-]{1,20}", any::<u16>()).prop_map(|(host, port)| Address::Tcp { host, port }),
        (any::<std::net::Ipv6Addr>(), any::<u16>()).prop_map(|(host, port)| Address::Tcp {
            host: host.to_string(),
            port
        }),
    ]
}

prop_compose! {
    fn any_server()(
        listen in proptest::collection::hash_set(any_address(), 0..4),
        http in proptest::option::of("[a-z0-9.-]{1,20}"),
        socket_mode in 1u32..=0o777,
        tls: bool,
        paths in proptest::collection::vec(proptest::option::of("[ -}ä]{1,20}"), 4),
        networks in proptest::collection::hash_set((any::<u32>(), 0u8..=32), 0..3),
        request_memory_bytes in REQUEST_MEMORY_MIN_BYTES..1 << 40,
        drain_s in 1u64..=1 << 20,
        state_dir in "[a-z/]{1,20}",
    ) -> Server {
        let path = |index: usize| paths[index].clone().map(PathBuf::from).filter(|_| tls);
        let network = |(address, prefix): &(u32, u8)| {
            ipnet::IpNet::new(std::net::Ipv4Addr::from(*address).into(), *prefix).unwrap().trunc()
        };
        let networks: std::collections::HashSet<_> = networks.iter().map(network).collect();
        Server {
            listen: listen.into_iter().collect(),
            http: http.map(|host| tcp(&host, 80)),
            socket_mode,
            socket_group: paths[3].clone(),
            tls_certificate: tls.then(|| "certificate".into()),
            tls_key: tls.then(|| "key".into()),
            client_ca: path(0),
            tokens: path(1),
            plaintext_from: networks.into_iter().collect(),
            request_memory_bytes,
            drain: Duration::from_secs(drain_s),
            state_dir: Some(state_dir.into()),
            serve_params: tls,
        }
    }
}

prop_compose! {
    fn any_cluster()(
        hosts in proptest::collection::hash_set("[a-z0-9.-]{1,20}", 0..4),
        name in "[A-Za-z0-9_-]{1,64}",
        tls: bool,
        path in proptest::option::of("[ -}ä]{1,20}"),
        sizes in proptest::collection::vec(1u64..=1 << 60, 2),
        age_s in 1u64..=1 << 28,
        replicas in 1usize..=5,
    ) -> Cluster {
        let server = |host: &String| format!("{}://{host}:4222", if tls { "tls" } else { "nats" });
        Cluster {
            servers: hosts.iter().map(|host| server(host).parse().unwrap()).collect(),
            name,
            local: tls,
            credentials: path.clone().map(PathBuf::from),
            server_ca: path.clone().map(PathBuf::from),
            client_certificate: path.clone().map(PathBuf::from),
            client_key: path.map(PathBuf::from),
            work_bytes_max: sizes[0],
            object_bytes_max: sizes[1],
            age_max: Duration::from_secs(age_s),
            replicas,
        }
    }
}

/// A source of each sort.
const SOURCES: [&str; 3] = [
    "/srv/parameters",
    "https://example.com/p",
    "ipfs://127.0.0.1:8080",
];

prop_compose! {
    fn any_config()(
        param_cache in "[ -}äß]{1,30}",
        counts in proptest::collection::vec(1usize..=4096, 8),
        seconds in proptest::collection::vec(1u64..=1 << 28, 5),
        devices in any_devices(),
        memory in any_memory(),
        server in any_server(),
        cluster in any_cluster(),
        throttle: bool,
        level in 0usize..LogLevel::ALL.len(),
        format in 0usize..LogFormat::ALL.len(),
    ) -> Config {
        Config {
            srs: Srs {
                param_cache: param_cache.into(),
                multiples: ProofKind::ALL[counts[1] % 5..].to_vec(),
                check_digests: throttle,
                sources: SOURCES[counts[0] % 4..].iter().map(|text| text.parse().unwrap()).collect(),
            },
            synthesis: Synthesis {
                threads: counts[0],
                partition_workers: counts[1],
                circuit: CircuitForm::ALL[counts[2] % CircuitForm::ALL.len()],
            },
            gpus: Gpus {
                devices,
                gpu_threads: counts[2],
                gpu_workers_per_device: counts[3],
                faults_max: u32::try_from(counts[5]).unwrap(),
                stall: Duration::from_secs(seconds[0]),
                rest: Duration::from_secs(seconds[4]),
                b_g2: BG2::ALL[counts[0] % BG2::ALL.len()],
                memory_limit_bytes: throttle.then_some(seconds[1]),
            },
            cpu: Cpu { isa: Isa::all()[counts[0] % Isa::all().len()] },
            memory,
            pipeline: Pipeline {
                synthesis_lookahead: counts[4],
                finish_workers: counts[0],
                max_batch: counts[1],
                throttle,
                throttle_manner: ThrottleManner::ALL[counts[3] % ThrottleManner::ALL.len()],
            },
            jobs: Jobs {
                queued_partitions: counts[6],
                results_kept: counts[7],
                results_kept_for: Duration::from_secs(seconds[1]),
                patience: Patience {
                    normal: Duration::from_secs(seconds[2]),
                    low: Duration::from_secs(seconds[3]),
                },
                journal: throttle.then(|| "jobs.redb".into()),
            },
            server,
            cluster,
            logging: Logging { level: LogLevel::ALL[level], format: LogFormat::ALL[format] },
        }
    }
}

proptest! {
    #[test]
    fn printed_configurations_read_back(config in any_config()) {
        let text = config.to_toml();
        // A machine that can have as many threads.
        let host = Host { cores: 256, ..host() };
        prop_assert_eq!(Config::parse(&text, "printed", &host).unwrap(), config, "{}", text);
    }

    #[test]
    fn no_text_panics(text in "[\\[\\]a-z_=\"0-9. \n,{}-]{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_value_panics(
        section in 0usize..SECTIONS.len(),
        key in 0usize..12,
        value in "(true|-?[0-9]{1,19}|[0-9]\\.[0-9]e[0-9]{1,3}|\"[0-9]{0,30}[a-zA-Z ]{0,5}\"|\\[-?[0-9]{1,12}\\]|\\{\\})",
    ) {
        let (section, keys) = SECTIONS[section];
        let (key, _) = keys[key % keys.len()];
        let text = format!("[{section}]\n{key} = {value}\n");
        if let Err(error) = parse(&text) {
            prop_assert!(error.to_string().contains("line 2"), "{}", error);
        }
    }
}
