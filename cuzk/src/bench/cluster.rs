//! The time that a cluster adds to a partition, from its offer to its verified result.
//!
//! The worker here returns a proof that was made before, at once. So the time is that of all
//! steps around a proof: the input, its message, its delivery, the result, the verification and
//! the end of the job. Proofs of the embedded engine are measured in turns with it, for
//! comparison.

use std::sync::Arc;
use std::time::Instant;

use cuzk_cluster::message::{Failure as NoProof, Work};
use cuzk_cluster::nats::{Node, Prover, Run};
use cuzk_cluster::subject::Circuit;
use cuzk_cluster::worker::{Ability, Capacity};
use cuzk_core::engine::{Decoder, devices};
use cuzk_core::{Engine, JobOptions};
use cuzk_filecoin::Statement;
use cuzk_server::cluster::Place;
use cuzk_server::cluster::identity::Identities;
use cuzk_server::cluster::settings::ClusterSettings;
use cuzk_tune::machine::Host;
use serde::Serialize;

use super::args::Bench;
use super::circuit::bundled_job;
use super::comparison::median;
use super::engine::engine_config;
use crate::commands::params::ensure_parameters;
use crate::commands::{Context, for_one_command};
use crate::failure::{Failure, failed};
use crate::output;

/// The jobs before the first that is measured: connections and consumers are made.
const WARM_UP: u32 = 3;

/// The most that the cluster is to add, in milliseconds.
const TARGET_MS: f64 = 10.0;

#[derive(Debug, Serialize)]
struct Report {
    stage: &'static str,
    kind: &'static str,
    partitions: usize,
    input_bytes: usize,
    machine: Host,
    runs: u32,
    /// The median of a job on the embedded engine, whose partitions are proved.
    embedded_s: f64,
    /// The median of a job through the cluster, whose proofs were made before.
    added_ms: f64,
    /// The longest of these times.
    added_max_ms: f64,
    target_ms: f64,
}

/// A worker that has the proofs already.
struct Ready {
    circuit: Circuit,
    proofs: Vec<Vec<u8>>,
}

impl Prover for Ready {
    fn abilities(&self) -> Vec<Ability> {
        let circuit = self.circuit.clone();
        let is_loaded = true;
        vec![Ability { circuit, is_loaded }]
    }

    fn capacity(&self) -> Capacity {
        let (common, urgent) = (self.proofs.len(), self.proofs.len());
        Capacity { common, urgent }
    }

    fn prove(&self, work: &Work, _: &[u8], _: &Run) -> Result<Vec<u8>, NoProof> {
        let partition = usize::try_from(work.partition).ok();
        let proof = partition.and_then(|partition| self.proofs.get(partition));
        proof
            .cloned()
            .ok_or_else(|| NoProof::new("there is no proof of this partition"))
    }
}

pub(super) fn run(context: &Context, args: &Bench, host: &Host) -> Result<(), Failure> {
    let mut cluster = context.config.cluster.clone();
    cluster.local = false;
    let process = std::process::id();
    cluster.name = format!("bench-{process}");
    let settings = ClusterSettings::of(&cluster).map_err(failed)?;
    let Some(settings) = settings else {
        let problem = "cluster: no server is configured; set [cluster] servers in --config FILE";
        return Err(Failure::input(problem));
    };
    ensure_parameters(context, args.circuit())?;
    let statement: Arc<dyn Statement> = Arc::from(bundled_job(args)?);
    let mut config = engine_config(context);
    config.jobs.journal = None;
    let pool = Arc::new(config.synthesis.pool().map_err(failed)?);
    let of_engine = devices(&config, &pool)?;
    let decoder: Decoder = Arc::new(|_| Err(cuzk_core::Error::Stopped));
    let embedded = Engine::start_on(config.clone(), Arc::clone(&pool), of_engine)?;
    let embedded = for_one_command(embedded);
    let proof = embedded
        .submit_job(Arc::clone(&statement), JobOptions::default())?
        .wait()?;
    let bytes = proof.as_bytes().len() / proof.partitions().max(1);
    let identities = Identities::new(&config.srs.param_cache);
    let circuit = identities.of(args.circuit()).map_err(failed)?;
    let ready = Ready {
        circuit,
        proofs: proof.as_bytes().chunks(bytes).map(<[u8]>::to_vec).collect(),
    };
    let name = format!("bench-worker-{process}").parse().map_err(failed)?;
    let (owner, _place) = Place::start_engine(&settings, config, pool, decoder)?;
    let owner = for_one_command(owner);
    let _node = Node::start(&settings.transport, name, Box::new(ready)).map_err(failed)?;
    let (mut embedded_s, mut added_s) = (Vec::new(), Vec::new());
    for _ in 0..WARM_UP {
        seconds(&owner, &statement)?;
    }
    for _ in 0..args.runs {
        embedded_s.push(seconds(&embedded, &statement)?);
        added_s.push(seconds(&owner, &statement)?);
    }
    let report = Report {
        stage: "cluster",
        kind: args.kind().name(),
        partitions: statement.partitions(),
        input_bytes: statement.partition_request(0).map_err(failed)?.len(),
        machine: host.clone(),
        runs: args.runs,
        embedded_s: median(embedded_s),
        added_max_ms: 1e3 * added_s.iter().copied().fold(0.0, f64::max),
        added_ms: 1e3 * median(added_s),
        target_ms: TARGET_MS,
    };
    output::print(context.json, &report, text)
}

/// Returns the seconds of a job from its submission to its proof.
fn seconds(engine: &Engine, statement: &Arc<dyn Statement>) -> Result<f64, Failure> {
    let started = Instant::now();
    let job = engine.submit_job(Arc::clone(statement), JobOptions::default())?;
    job.wait()?;
    Ok(started.elapsed().as_secs_f64())
}

fn text(report: &Report) -> String {
    format!(
        "{}\ncluster {}, {} partition(s), input of {} bytes, {} runs: the cluster adds {:.2} ms \
         (the longest {:.2} ms, target {} ms); the embedded engine takes {:.3} s",
        report.machine,
        report.kind,
        report.partitions,
        report.input_bytes,
        report.runs,
        report.added_ms,
        report.added_max_ms,
        report.target_ms,
        report.embedded_s,
    )
}
