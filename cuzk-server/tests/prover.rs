//! An engine as a prover of other machines' partitions, without a server between them.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cuzk_bounded::bounded;
use cuzk_cluster::message::{Input, Work};
use cuzk_cluster::nats::{Prover, Run};
use cuzk_cluster::subject::{Circuit, Fingerprint};
use cuzk_core::config::Devices;
use cuzk_core::engine::devices;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::{Config, Engine};
use cuzk_filecoin::verify::verify;
use cuzk_filecoin::{ProofKind, Statement, decode, decode_partition};
use cuzk_groth16::params::ParamCache;
use cuzk_server::cluster::identity::Identities;
use cuzk_server::cluster::prover::{EngineProver, PartitionEvent, Stage};
use cuzk_testing::{bundled_request, circuit_with_params, files, id};

/// A prover, its engine, and the events that it told.
struct Hands {
    prover: EngineProver,
    engine: Arc<Engine>,
    identities: Arc<Identities>,
    events: Arc<Mutex<Vec<PartitionEvent>>>,
}

impl Hands {
    fn start(param_cache: &Path) -> Self {
        let mut config = Config::default();
        config.srs.param_cache = param_cache.to_owned();
        config.srs.multiples = Vec::new();
        config.gpus.devices = Devices::Cpu;
        let pool = Arc::new(config.synthesis.pool().unwrap());
        let devices = devices(&config, &pool).unwrap();
        let decoder = |bytes: &[u8]| -> cuzk_core::Result<Arc<dyn Statement>> {
            Ok(Arc::from(decode_partition(bytes)?))
        };
        let engine = Engine::start_with(config, pool, devices, Arc::new(decoder));
        let engine = Arc::new(engine.unwrap());
        let identities = Arc::new(Identities::new(param_cache));
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&events);
        let on_event = Arc::new(move |event: &PartitionEvent| {
            told.lock().unwrap().push(event.clone());
        });
        let (engine_of_prover, known) = (Arc::clone(&engine), Arc::clone(&identities));
        Self {
            prover: EngineProver::new(engine_of_prover, known, on_event),
            engine,
            identities,
            events,
        }
    }

    /// Returns the message of the bundled request of a kind.
    fn work(&self, kind: ProofKind) -> (Work, Vec<u8>) {
        let input = statement(kind).partition_request(0).unwrap();
        let work = Work {
            owner: "daemon".parse().unwrap(),
            job: "job".to_owned(),
            partition: 0,
            circuit: self.identities.of(id(kind)).unwrap(),
            priority: Priority::Normal,
            attempt: 0,
            excluded: Vec::new(),
            input: Input::stored(&input),
        };
        (work, input)
    }

    fn run() -> Run {
        Run::new("daemon".parse().unwrap())
    }

    fn prove(&self, work: &Work, input: &[u8]) -> Result<Vec<u8>, String> {
        let proved = self.prover.prove(work, input, &Self::run());
        proved.map_err(|failure| failure.reason)
    }

    fn stages(&self) -> Vec<Stage> {
        let events = self.events.lock().unwrap();
        events.iter().map(|event| event.stage).collect()
    }
}

fn statement(kind: ProofKind) -> Box<dyn Statement> {
    decode(&bundled_request(kind)).unwrap()
}

/// The cache that tests share, with the parameters of a kind.
fn param_cache(kind: ProofKind) -> PathBuf {
    let folder = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    drop(circuit_with_params(kind, &folder));
    folder
}

#[test]
fn a_partition_is_proved_and_its_circuit_stays_loaded() {
    let kind = ProofKind::WindowPost;
    let cache = param_cache(kind);
    let hands = Hands::start(&cache);
    assert!(hands.prover.abilities().is_empty(), "no identity was made");
    let (work, input) = hands.work(kind);
    let is_loaded = || {
        let abilities = hands.prover.abilities();
        let mut abilities = abilities.into_iter();
        let ability = abilities.find(|ability| ability.circuit == work.circuit);
        ability.unwrap().is_loaded
    };
    assert!(!is_loaded());
    assert_eq!(hands.prover.capacity().common, 1);
    let proof = hands.prove(&work, &input).unwrap();
    let key = ParamCache::new(&cache).verifying_key(&files(kind)).unwrap();
    assert!(verify(&*statement(kind), &proof, &key).unwrap().is_valid());
    assert!(is_loaded());
    assert_eq!(hands.stages(), [Stage::Begun, Stage::Proved]);
}

#[test]
fn progress_is_noted_while_the_engine_works() {
    let hands = Hands::start(&param_cache(ProofKind::SnapDeals));
    let (work, input) = hands.work(ProofKind::SnapDeals);
    let run = Hands::run();
    hands.prover.prove(&work, &input, &run).unwrap();
    assert!(run.checkpoints() > 0);
}

#[test]
fn a_partition_that_is_not_needed_ends_without_a_proof() {
    let hands = Hands::start(&param_cache(ProofKind::SnapDeals));
    let (work, input) = hands.work(ProofKind::SnapDeals);
    let run = Hands::run();
    run.stop();
    let failure = hands.prover.prove(&work, &input, &run).unwrap_err();
    assert!(
        failure.reason.contains("does not need it"),
        "{}",
        failure.reason
    );
    assert_eq!(hands.stages(), [Stage::Begun, Stage::Stopped]);
    // The engine lets go of it, too.
    bounded(|| {
        while !hands.engine.is_idle() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn an_input_of_something_else_is_not_proved() {
    let kind = ProofKind::WindowPost;
    let hands = Hands::start(&param_cache(kind));
    let (work, input) = hands.work(kind);
    let other_number = Work {
        partition: 1,
        ..work.clone()
    };
    let other_name = Work {
        circuit: Circuit {
            name: "porep-2KiB".parse().unwrap(),
            ..work.circuit.clone()
        },
        ..work.clone()
    };
    let other_key = Work {
        circuit: Circuit {
            fingerprint: Fingerprint([7; 32]),
            ..work.circuit.clone()
        },
        ..work.clone()
    };
    let of_partition = "the input is partition 0 of window-post-2KiB";
    for (work, input, problem) in [
        (&other_number, &input[..], of_partition),
        (&other_name, &input, of_partition),
        (&other_key, &input, "no parameters of this fingerprint"),
        (&work, &b"{}"[..], "too few for a partition"),
        (&work, &input[..input.len() - 1], "partition: "),
    ] {
        let reason = hands.prove(work, input).unwrap_err();
        assert!(reason.contains(problem), "{reason}, not {problem}");
    }
    assert!(hands.engine.is_idle());
    assert!(
        !hands.prover.abilities().is_empty(),
        "the circuit does not rest"
    );
}

#[test]
fn a_circuit_with_bad_parameters_rests() {
    let folder = tempfile::tempdir().unwrap();
    let kind = ProofKind::WindowPost;
    let names = files(kind);
    for name in [names.params, names.vk] {
        std::fs::write(folder.path().join(name), "no parameters").unwrap();
    }
    let hands = Hands::start(folder.path());
    let (work, input) = hands.work(kind);
    assert_eq!(hands.prover.abilities().len(), 1);
    assert!(hands.prove(&work, &input).is_err());
    assert!(hands.prover.abilities().is_empty(), "it rests");
    assert_eq!(hands.stages(), [Stage::Begun, Stage::Failed]);
}
