//! A worker in a process of its own, and the double of a daemon.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use cuzk_bounded::{BoundedChild, BoundedCommand, bounded};
use cuzk_cluster::ledger::{self, End, Others};
use cuzk_cluster::message::{Input, WorkId};
use cuzk_cluster::nats::{Home, Limits, Offer, Owner, OwnerSetup, Settings};
use cuzk_core::scheduler::priority::Priority;
use cuzk_filecoin::verify::verify;
use cuzk_filecoin::{CircuitId, ProofKind, ProofRequest, SectorSize, Statement, decode};
use cuzk_groth16::params::{ParamCache, ParameterFiles};
use cuzk_server::cluster::identity::Identities;
use serde_json::Value;

/// Long enough for anything that ends at all, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Shared with the other tests that prove, and kept between runs.
pub(crate) fn param_cache() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters");
        for kind in ProofKind::ALL {
            let made = Command::new(env!("CARGO_BIN_EXE_cuzk"))
                .args(["params", "generate", "--sector-size", "2KiB"])
                .args(["--kind", kind.name()])
                .env("FIL_PROOFS_PARAMETER_CACHE", &folder)
                .output_bounded()
                .unwrap();
            assert!(made.status.success(), "{made:?}");
        }
        folder
    });
    made.clone()
}

pub(crate) fn statement(kind: ProofKind) -> Arc<dyn Statement> {
    let name = format!("../data/sector-2kib/{kind}.json");
    let json = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    Arc::from(decode(&ProofRequest::from_json(&json).unwrap()).unwrap())
}

/// Verifies a proof with the key of the parameter cache.
fn is_proof(statement: &dyn Statement, proof: &[u8]) -> bool {
    let id = statement.circuit();
    let files = ParameterFiles {
        params: id.params_file_name().unwrap(),
        vk: id.vk_file_name().unwrap(),
    };
    let key = ParamCache::new(param_cache())
        .verifying_key(&files)
        .unwrap();
    verify(statement, proof, &key).unwrap().is_valid()
}

/// A statement, with the bytes that workers get.
type Offered = (Arc<dyn Statement>, Vec<u8>);

/// The events that the daemon has seen.
#[derive(Default)]
struct Seen {
    offered: Mutex<HashMap<WorkId, Offered>>,
    ends: Mutex<HashMap<WorkId, End>>,
    at_home: Mutex<Vec<WorkId>>,
    changed: Condvar,
}

struct Recorder(Arc<Seen>);

impl Home for Recorder {
    fn input(&self, id: &WorkId) -> Option<Vec<u8>> {
        let offered = self.0.offered.lock().unwrap();
        offered.get(id).map(|(_, input)| input.clone())
    }

    fn verify(&self, id: &WorkId, proof: &[u8]) -> Option<bool> {
        let (statement, _) = self.0.offered.lock().unwrap().get(id).cloned()?;
        Some(is_proof(&*statement, proof))
    }

    fn taken(&self, _: &WorkId) {}

    fn returned(&self, _: &WorkId) {}

    fn prove(&self, id: &WorkId, _: Others) {
        self.0.at_home.lock().unwrap().push(*id);
        self.0.changed.notify_all();
    }

    fn stop(&self, _: &WorkId) {}

    fn ended(&self, id: &WorkId, end: End) {
        self.0.ends.lock().unwrap().insert(*id, end);
        self.0.changed.notify_all();
    }
}

/// A daemon that accepts jobs and proves nothing itself.
pub(crate) struct Daemon {
    pub(crate) owner: Owner,
    seen: Arc<Seen>,
    identities: Identities,
}

impl Daemon {
    pub(crate) fn start(settings: &Settings) -> Self {
        let seen = Arc::new(Seen::default());
        let home = Box::new(Recorder(Arc::clone(&seen)));
        let limits = Limits {
            work_bytes_max: 1 << 28,
            object_bytes_max: 1 << 28,
            ..Limits::default()
        };
        let setup = OwnerSetup {
            transport: settings.clone(),
            limits,
            name: "daemon".parse().unwrap(),
            ledger: ledger::Settings::default(),
            home,
        };
        let owner = Owner::start(setup).unwrap();
        owner.open();
        Self {
            owner,
            seen,
            identities: Identities::new(&param_cache()),
        }
    }

    /// Offers the only partition of the bundled request of a kind, with these bytes.
    pub(crate) fn offer_bytes(&self, kind: ProofKind, input: Vec<u8>) -> WorkId {
        let id = CircuitId {
            kind,
            sector_size: SectorSize::KiB2,
        };
        let offer = Offer {
            job: format!("job of {kind}"),
            partition: 0,
            circuit: self.identities.of(id).unwrap(),
            priority: Priority::Normal,
            input: Input::stored(&input),
            starts_at_home: false,
        };
        // The daemon knows the statement before a proof of it can come.
        let mut offered = self.seen.offered.lock().unwrap();
        let id = self.owner.offer(offer).unwrap();
        offered.insert(id, (statement(kind), input));
        id
    }

    pub(crate) fn offer(&self, kind: ProofKind) -> WorkId {
        self.offer_bytes(kind, statement(kind).partition_request(0).unwrap())
    }

    /// Waits until a partition is proved, and returns its prover.
    pub(crate) fn proved(&self, id: &WorkId) -> String {
        let ends = self.seen.ends.lock().unwrap();
        let is_open = |ends: &mut HashMap<WorkId, End>| !ends.contains_key(id);
        let waited = self
            .seen
            .changed
            .wait_timeout_while(ends, PATIENCE, is_open);
        let (ends, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "{id} has no end");
        match &ends[id] {
            End::Proved { by, .. } => format!("{by:?}"),
            failed @ End::Failed { .. } => panic!("{failed:?}"),
        }
    }
}

/// A worker, and the events that it prints.
pub(crate) struct Worker {
    process: Child,
    events: BufReader<std::process::ChildStdout>,
    log: PathBuf,
}

impl Worker {
    /// Starts a worker with this configuration and more arguments. Its files are in `folder`.
    pub(crate) fn start(folder: &Path, config: &str, arguments: &[&str]) -> Self {
        let config_path = folder.join("worker.toml");
        // Other tests share its parameters, and expect no multiples.
        let own = "[synthesis]\nthreads = 2\n[gpus]\ndevices = \"cpu\"\n[srs]\nmultiples = []\n";
        std::fs::write(&config_path, format!("{own}{config}")).unwrap();
        let log = folder.join("worker.log");
        let mut process = Command::new(env!("CARGO_BIN_EXE_cuzk"))
            .args(["worker", "--json", "--config"])
            .arg(config_path)
            .args(arguments)
            .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let events = BufReader::new(process.stdout.take().unwrap());
        Self {
            process,
            events,
            log,
        }
    }

    /// Waits for the next event of this stage, and returns it.
    pub(crate) fn event(&mut self, stage: &str) -> Value {
        loop {
            let mut line = String::new();
            bounded(|| self.events.read_line(&mut line)).unwrap();
            assert!(!line.is_empty(), "it ended without {stage}: {}", self.log());
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["stage"] == stage {
                return event;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end of the process, and returns its exit code.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.process.wait_bounded().unwrap().code()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the log has a text.
    pub(crate) fn logged(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.log().contains(text) {
            assert!(Instant::now() < until, "no {text:?}: {}", self.log());
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "no {text:?}: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait_bounded();
    }
}
