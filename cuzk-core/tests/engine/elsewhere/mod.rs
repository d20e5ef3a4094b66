//! Partitions that are proved elsewhere: the engine's side of it, with a place that does what
//! a test says.

mod ends;
mod journal;
mod memory;

use std::path::Path;
use std::sync::{Arc, Mutex};

use cuzk_core::engine::{
    Decoder, Elsewhere, GiveBack, PartitionId, QueuedPartition, Remote, RemoteProof,
};
use cuzk_core::job::JobHandle;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::Stage;
use cuzk_core::{Config, Engine, Error, Result};
use cuzk_filecoin::ProofKind;

use crate::common::BoundedJob as _;
use crate::common::device::{Deed, Opened, Scripted, engine_on, pool};
use crate::common::tiny::{self, TinyJob};
use crate::common::{submit, urgent, wait_until};

const KIND: ProofKind = ProofKind::SnapDeals;
const PROOF_BYTES: usize = 192;

/// A call that the place got.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Queued(PartitionId),
    Begun(PartitionId),
    Ended(PartitionId),
}

/// A place that notes what it is told.
#[derive(Default)]
struct Noted {
    is_left_to_others: bool,
    /// The place does not have these, so this machine has to prove them.
    dropped: Mutex<Vec<PartitionId>>,
    told: Mutex<Vec<Told>>,
}

impl Noted {
    fn all(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    fn count(&self, told: &Told) -> usize {
        self.all().iter().filter(|known| *known == told).count()
    }

    fn note(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }
}

impl Elsewhere for Noted {
    fn is_left_to_others(&self, priority: Priority) -> bool {
        self.is_left_to_others && priority != Priority::Critical
    }

    fn has(&self, partition: PartitionId) -> bool {
        !self.dropped.lock().unwrap().contains(&partition)
    }

    fn queued(&self, partition: QueuedPartition) {
        self.note(Told::Queued(partition.id));
    }

    fn begun(&self, partition: PartitionId) {
        self.note(Told::Begun(partition));
    }

    fn ended(&self, partition: PartitionId) {
        self.note(Told::Ended(partition));
    }
}

/// An engine with a place elsewhere.
struct Shared {
    engine: Engine,
    remote: Remote,
    place: Arc<Noted>,
    device: Opened,
    config: Config,
}

fn no_decoder() -> Decoder {
    Arc::new(|_| Err(Error::Stopped))
}

impl Shared {
    /// Starts an engine on a device that does `deed`. If `is_left_to_others` is true, it
    /// begins nothing by itself but critical work.
    fn start(folder: &Path, is_left_to_others: bool, deed: Deed) -> Self {
        let config = tiny::config(folder);
        Self::start_with(config, is_left_to_others, deed, no_decoder())
    }

    fn start_with(
        mut config: Config,
        is_left_to_others: bool,
        deed: Deed,
        decoder: Decoder,
    ) -> Self {
        config.gpus.gpu_workers_per_device = 1;
        let device = Opened(Scripted::new(&config, move |_| deed));
        Self::start_on(device, config, is_left_to_others, decoder)
    }

    fn start_on(device: Opened, config: Config, is_left_to_others: bool, decoder: Decoder) -> Self {
        let place = Arc::new(Noted {
            is_left_to_others,
            ..Noted::default()
        });
        let mut given = None;
        let attach = |remote: Remote| -> Result<Arc<dyn Elsewhere>> {
            given = Some(remote);
            Ok(Arc::<Noted>::clone(&place))
        };
        let devices = vec![device.device()];
        let pool = pool(&config);
        let engine = Remote::start_engine(config.clone(), pool, devices, decoder, attach).unwrap();
        Self {
            engine,
            remote: given.unwrap(),
            place,
            device,
            config,
        }
    }

    /// Returns the proofs that another machine makes of a job of so many partitions.
    fn proofs(&self, kind: ProofKind, partitions: usize) -> Vec<Vec<u8>> {
        let mut config = self.config.clone();
        config.jobs.journal = None;
        let other = engine_on(&config, &[&Scripted::good(&config)]);
        let proof = submit(&other, tiny::job(kind, partitions))
            .wait_bounded()
            .unwrap();
        let proofs = proof.as_bytes().chunks(PROOF_BYTES);
        proofs.map(<[u8]>::to_vec).collect()
    }

    fn verify(&self, id: PartitionId, proof: &[u8]) -> Result<RemoteProof> {
        self.remote.verify(id, proof)
    }

    /// Verifies a proof of others, and gives it to the engine.
    fn prove(&self, id: PartitionId, proof: &[u8]) {
        let proof = self.verify(id, proof).unwrap();
        self.remote
            .proved(id, proof, "node-7", std::time::Duration::ZERO);
    }
}

fn of(job: &JobHandle, partition: usize) -> PartitionId {
    PartitionId {
        job: job.number(),
        partition,
    }
}

#[test]
fn proofs_of_others_end_a_job_and_nothing_is_proved_here() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), true, Deed::Prove);
    let job = submit(&shared.engine, tiny::job(KIND, 3));
    let proofs = shared.proofs(KIND, 3);
    let ids = [2, 0, 1].map(|partition| of(&job, partition));
    for id in ids {
        assert!(shared.place.all().contains(&Told::Queued(id)));
        assert_eq!(shared.remote.statement(id).unwrap().partitions(), 3);
        assert!(job.poll().is_none());
        shared.prove(id, &proofs[id.partition]);
        assert!(shared.remote.statement(id).is_none(), "it is over");
        assert_eq!(shared.place.count(&Told::Ended(id)), 1, "before the job");
    }
    assert_eq!(job.wait_bounded().unwrap().as_bytes(), proofs.concat());
    assert_eq!(shared.device.started(), 0);
    let spans = shared.engine.timeline().of_job(job.number());
    let elsewhere = spans.iter().filter(|span| span.stage == Stage::Elsewhere);
    let lanes: Vec<_> = elsewhere.map(|span| span.lane.name()).collect();
    assert_eq!(lanes, ["node-7"; 3]);
    assert!(
        !shared
            .place
            .all()
            .iter()
            .any(|told| matches!(told, Told::Begun(_)))
    );
}

#[test]
fn a_false_proof_is_no_end_and_the_partition_goes_on_here() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), true, Deed::Prove);
    let job = submit(&shared.engine, tiny::job(KIND, 2));
    let proofs = shared.proofs(KIND, 2);
    let (first, second) = (of(&job, 0), of(&job, 1));
    let zeros = vec![0; PROOF_BYTES];
    for bad in [&proofs[1], &zeros, &vec![1; 3], &Vec::new()] {
        let error = shared.verify(first, bad).unwrap_err();
        assert!(
            matches!(error, Error::Rejected { partition: 0, .. }),
            "{error}"
        );
    }
    shared.prove(second, &proofs[1]);
    shared.remote.give_back(first, GiveBack::Free);
    assert_eq!(job.wait_bounded().unwrap().partitions(), 2);
    assert_eq!(shared.device.started(), 1);
    assert!(shared.place.all().contains(&Told::Begun(first)));
}

#[test]
fn the_first_verified_proof_counts_and_later_ones_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), true, Deed::Prove);
    let job = submit(&shared.engine, tiny::job(KIND, 1));
    let (first, second) = (shared.proofs(KIND, 1), shared.proofs(KIND, 1));
    assert_ne!(first, second, "each has randomness of its own");
    let id = of(&job, 0);
    let late = shared.verify(id, &second[0]).unwrap();
    shared.prove(id, &first[0]);
    let none = std::time::Duration::ZERO;
    shared.remote.proved(id, late, "late", none);
    assert_eq!(job.wait_bounded().unwrap().as_bytes(), first[0]);
    let after = shared.verify(id, &second[0]).unwrap_err();
    assert!(matches!(after, Error::Stopped), "{after}");
    let unknown = PartitionId { job: 99, ..id };
    assert!(shared.verify(unknown, &first[0]).is_err());
    shared.remote.give_back(unknown, GiveBack::Failed);
    shared.remote.begun(PartitionId {
        partition: 99,
        ..id
    });
}

#[test]
fn a_partition_that_others_begin_has_no_turn_until_it_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), false, Deed::Stall);
    // They fill the way to the device, so the last job has to wait for its turn.
    let ahead: Vec<_> = (0..20)
        .map(|_| submit(&shared.engine, tiny::job(KIND, 1)))
        .collect();
    let job = submit(&shared.engine, tiny::job(KIND, 1));
    let id = of(&job, 0);
    assert_eq!(shared.place.count(&Told::Begun(id)), 0);
    shared.remote.begun(id);
    shared.device.gate.open();
    ahead
        .iter()
        .for_each(|job| drop(job.wait_bounded().unwrap()));
    let status = shared.engine.status();
    assert_eq!(status.partitions_running, 0);
    let waits_for = status.jobs[0].waits_for.clone().unwrap();
    assert!(waits_for.contains("other machines"), "{waits_for}");
    assert_eq!(status.jobs[0].parts[0].stage, Some("elsewhere"));
    assert!(shared.engine.is_idle(), "there is nothing to do here");
    shared.remote.give_back(id, GiveBack::Free);
    job.wait_bounded().unwrap();
    assert_eq!(shared.place.count(&Told::Begun(id)), 1);
}

#[test]
fn critical_work_begins_here_although_it_is_left_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), true, Deed::Stall);
    let critical = urgent(Priority::Critical);
    let job = tiny::job(ProofKind::WinningPost, 1);
    let job = shared.engine.submit_job(job, critical).unwrap();
    let id = of(&job, 0);
    wait_until("it begins here", || {
        shared.place.count(&Told::Begun(id)) > 0 && shared.device.started() == 1
    });
    // It is on the device, which does not answer. The proof of others is the end.
    let proofs = shared.proofs(ProofKind::WinningPost, 1);
    shared.prove(id, &proofs[0]);
    assert_eq!(job.wait_bounded().unwrap().as_bytes(), proofs[0]);
}

#[test]
fn a_statement_that_others_cannot_prove_is_checked_before_it_is_proved_here() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::start(folder.path(), true, Deed::Prove);
    let lie = TinyJob {
        kind: KIND,
        partitions: 2,
        false_partition: Some(1),
    };
    let lie = submit(&shared.engine, Arc::new(lie));
    let truth = submit(&shared.engine, tiny::job(KIND, 1));
    shared.remote.give_back(of(&lie, 1), GiveBack::Failed);
    let error = lie.wait_bounded().unwrap_err();
    assert!(
        matches!(*error, Error::Unsatisfied { partition: 1, .. }),
        "{error}"
    );
    assert_eq!(shared.device.started(), 0, "no device was asked for it");
    shared.remote.give_back(of(&truth, 0), GiveBack::Failed);
    truth.wait_bounded().unwrap();
    assert_eq!(shared.device.started(), 1);
}
