//! Parameters under the names of a network's, which an engine compares in the background.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use blstrs::Scalar;
use cuzk_core::circuits;
use cuzk_core::engine::serve_one_command;
use cuzk_core::timeline::Stage;
use cuzk_core::{Config, Engine};
use cuzk_fetch::{Digest, noted_digest};
use cuzk_filecoin::{CircuitId, Error, ProofKind, SectorSize, Statement, WitnessContext, Writer};
use cuzk_groth16::params::GenerateOptions;
use cuzk_pce::PackedWitness;
use tempfile::TempDir;

use crate::common::BoundedJob as _;
use crate::common::{submit, tiny, wait_until};

const ID: CircuitId = CircuitId {
    kind: ProofKind::WindowPost,
    sector_size: SectorSize::GiB32,
};

/// The tiny job of a circuit of a network.
struct OfNetwork(Arc<dyn Statement>);

impl Statement for OfNetwork {
    fn circuit(&self) -> CircuitId {
        ID
    }

    fn partitions(&self) -> usize {
        self.0.partitions()
    }

    fn writer(&self) -> Writer {
        self.0.writer()
    }

    fn witness_in(
        &self,
        partition: usize,
        context: WitnessContext<'_>,
    ) -> Result<PackedWitness<Scalar>, Error> {
        self.0.witness_in(partition, context)
    }

    fn public_inputs(&self, partition: usize) -> Result<Vec<Scalar>, Error> {
        self.0.public_inputs(partition)
    }

    fn partition_request(&self, partition: usize) -> Result<Vec<u8>, Error> {
        self.0.partition_request(partition)
    }
}

pub(crate) fn generate(folder: &Path, seed: u64) {
    let options = GenerateOptions {
        seed,
        ..GenerateOptions::default()
    };
    tiny::generate_as(ID, folder, options);
}

fn folder() -> (TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), 0);
    let mut config = Config::default();
    config.srs.param_cache = folder.path().to_owned();
    config.srs.multiples = Vec::new();
    (folder, config)
}

pub(crate) fn prove(engine: &Engine) {
    let job = OfNetwork(tiny::job(ID.kind, 1));
    submit(engine, Arc::new(job)).wait_bounded().unwrap();
}

pub(crate) fn state(engine: &Engine) -> &'static str {
    let assets = engine.status().assets;
    assert_eq!(assets.len(), 1);
    assets[0].digests
}

fn comparisons(engine: &Engine) -> usize {
    let spans = engine.timeline().spans();
    let compared = spans.iter().filter(|span| span.stage == Stage::Digests);
    compared.inspect(|span| assert_eq!(span.job, None)).count()
}

/// The list has other digests, because these parameters are generated.
#[test]
fn wrong_digests_are_told_once_and_stop_no_proof() {
    let (folder, config) = folder();
    let vk = circuits::parameter_files(ID).unwrap().vk;
    let digest = || Digest::of_bytes(&fs::read(folder.path().join(&vk)).unwrap());
    let engine = Engine::start(config).unwrap();
    prove(&engine);
    wait_until("they are compared", || state(&engine) == "wrong");
    assert_eq!(noted_digest(folder.path(), &vk), Some(digest()));
    prove(&engine);
    prove(&engine);
    wait_until("the span is there", || comparisons(&engine) == 1);

    // Others take their place, and are compared, too.
    let new = tempfile::tempdir().unwrap();
    generate(new.path(), 1);
    let files = circuits::parameter_files(ID).unwrap();
    for name in [&files.params, &files.vk] {
        let beside = folder.path().join("new");
        fs::copy(new.path().join(name), &beside).unwrap();
        fs::rename(beside, folder.path().join(name)).unwrap();
    }
    wait_until("the others are compared", || {
        prove(&engine);
        state(&engine) == "wrong" && noted_digest(folder.path(), &vk) == Some(digest())
    });
    engine.shutdown();
}

#[test]
fn no_digest_is_compared_where_that_is_off_or_the_engine_ends_with_a_command() {
    for is_off in [true, false] {
        let (folder, mut config) = folder();
        config.srs.check_digests = !is_off;
        let engine = Engine::start(config).unwrap();
        if !is_off {
            serve_one_command(&engine);
        }
        prove(&engine);
        assert_eq!(state(&engine), "not_compared");
        let timeline = engine.timeline().clone();
        engine.shutdown();
        let spans = timeline.spans();
        assert!(spans.iter().all(|span| span.stage != Stage::Digests));
        let vk = circuits::parameter_files(ID).unwrap().vk;
        assert_eq!(noted_digest(folder.path(), &vk), None);
    }
}
