//! Single steps of an engine without threads, each decided by a test.
//!
//! Not a run: nothing is random here. The invariant: every device and every worker does its
//! step when the test says so.

mod assets;
mod batches;
mod compute;
mod deadlines;
mod devices;
mod ends;
mod entrance;
mod journal;
mod multiples;
mod outside;
mod probation;
mod queue;
mod status;
mod threads;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use cuzk_filecoin::ProofKind;
use cuzk_groth16::backend::Synthesized;
use cuzk_groth16::verify::VerifiedProof;
use cuzk_scheduler::admission::Lane;
use cuzk_scheduler::clock;
use cuzk_scheduler::clock::simulated::{Time, set};

use super::bench::{Bench, Root, id};
use super::device::Deed;
use super::disk::SimulatedDisk;
use super::life::{DEDICATED, Life, Sizes};
use super::request::{Flaw, Request};
use crate::Result;
use crate::engine::attempt::{AdmittedAttempt, FinishingAttempt, SynthesizedAttempt};
use crate::engine::core::Core;
use crate::engine::submission::submit_request;
use crate::engine::workers::device::StartCall;
use crate::engine::workers::{admission, dedicated, device, finish, synthesis};
use crate::job::{JobOptions, JobState, priority_of};
use crate::pipeline::prove_start;
use crate::timeline::DeviceTally;
use crate::verdicts::verdict_on_bytes;

/// Critical work.
const WINNING: ProofKind = ProofKind::WinningPost;
/// Urgent work.
const WINDOW: ProofKind = ProofKind::WindowPost;
/// Work that can wait.
const POREP: ProofKind = ProofKind::Porep;

/// An engine without threads, its disk and its clocks.
struct Case {
    bench: Bench,
    sizes: Sizes,
    disk: SimulatedDisk,
    life: Life,
    now: Time,
}

/// Returns a request without a flaw. The root of a partition has its number.
fn request(kind: ProofKind, partitions: usize) -> Request {
    Request {
        kind,
        first: 0,
        partitions,
        flaw: Flaw::None,
    }
}

/// Returns the options of a job that waits in the journal where there is no room.
fn waits(id: &str) -> JobOptions {
    JobOptions {
        id: Some(id.to_owned()),
        waits: true,
        ..JobOptions::default()
    }
}

impl Case {
    /// Starts an engine with so many devices, which are all this CPU, or all are not.
    fn new(devices: usize, are_this_cpu: bool) -> Self {
        Self::with(devices, are_this_cpu, |_| ())
    }

    /// As [`Case::new`], with other sizes.
    fn with(devices: usize, are_this_cpu: bool, change: impl FnOnce(&mut Sizes)) -> Self {
        let bench = Bench::new();
        let now = Time {
            monotonic: Instant::now() + Duration::from_secs(1 << 30),
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        };
        set(Some(now));
        let mut sizes = Sizes::plenty(&bench, devices, are_this_cpu);
        change(&mut sizes);
        let disk = SimulatedDisk::default();
        Self {
            life: Life::start(&bench, &sizes, &disk),
            bench,
            sizes,
            disk,
            now,
        }
    }

    fn core(&self) -> &Arc<Core> {
        &self.life.core
    }

    /// Kills the process, and starts it again.
    fn kill(&mut self) {
        self.disk.killed();
        self.life = Life::start(&self.bench, &self.sizes, &self.disk);
    }

    fn pass(&mut self, seconds: u64) {
        let time = Duration::from_secs(seconds);
        self.now.monotonic += time;
        self.now.wall += time;
        set(Some(self.now));
    }

    fn submit(&self, request: Request, options: JobOptions) -> Result<Arc<JobState>> {
        let bytes = request.to_bytes();
        let priority = options.priority.unwrap_or(priority_of(request.kind));
        let decode = || Request::decode(&bytes);
        submit_request(self.core(), (&bytes).into(), options, priority, decode)
    }

    /// Submits a job without an id.
    fn accept(&self, kind: ProofKind, partitions: usize) -> Arc<JobState> {
        let options = JobOptions::default();
        self.submit(request(kind, partitions), options).unwrap()
    }

    /// Returns the job, the partition and the lane of each attempt that waits for its turn.
    fn waiting(&self) -> Vec<(u64, usize, Lane)> {
        let mut waiting = Vec::new();
        let admission = &self.core().dispatch.admission;
        admission.visit_waiting(|attempt, work| {
            waiting.push((attempt.job.number(), attempt.partition, work.lane));
        });
        waiting
    }

    /// Takes the next attempt of a lane. The first one of a circuit has it read.
    fn admit(&self, lane: Lane) -> Option<AdmittedAttempt> {
        for _ in 0..100 {
            let turn = self.core().dispatch.admission.try_next(lane)?;
            let admitted = admission::take_turn(self.core(), turn, lane);
            if admitted.is_some() {
                return admitted;
            }
        }
        panic!("the attempts of {lane:?} never begin");
    }

    /// Synthesizes the next attempt.
    fn synthesize(&self) -> Option<SynthesizedAttempt> {
        let admitted = self.admit(Lane::Common)?;
        synthesis::take(self.core(), admitted)
    }

    /// Synthesizes so many attempts and queues them for the devices.
    fn make_ready(&self, attempts: usize) {
        for _ in 0..attempts {
            let ready = self.synthesize().unwrap();
            assert!(self.core().dispatch.ready.has_room());
            synthesis::hand_over(self.core(), ready);
        }
    }

    /// Has a device take the next attempt.
    fn claim(&self, device: usize) -> Option<SynthesizedAttempt> {
        let core = self.core();
        let pop = |takes: &mut dyn FnMut(&_) -> bool| core.dispatch.ready.try_pop_if(takes);
        device::claim_ready(core, device, pop)
    }

    /// Begins the device region of an attempt. The answer is what `deed` says.
    fn begin(&self, device: usize, ready: SynthesizedAttempt, deed: Deed) -> Region {
        let slot = self.core().fleet.slot(device).unwrap();
        let (call, synthesized) = device::begin(self.core(), (device, slot), ready).unwrap();
        Region {
            device,
            call,
            synthesized,
            deed,
            began: clock::now(),
        }
    }

    /// Ends a device region.
    fn answer(&self, region: Region) -> Option<FinishingAttempt> {
        let Region {
            device,
            mut call,
            synthesized,
            deed,
            began,
        } = region;
        let core = self.core();
        let (partition, tally) = (call.attempt.partition, DeviceTally::default());
        self.life.devices[device].tell(deed, partition);
        let slot = core.fleet.slot(device).unwrap();
        let trace = call.attempt.trace(&core.timeline).on_device(device);
        let started = prove_start(&slot.device.backend, synthesized, partition, trace);
        call.attempt.spent += clock::since(began);
        device::end(core, (device, slot), call, started, &tally)
    }

    /// Has a device take the next attempt and do a deed with it, until its region is over.
    fn start(&self, device: usize, deed: Deed) -> Option<FinishingAttempt> {
        let ready = self.claim(device).unwrap();
        self.answer(self.begin(device, ready, deed))
    }

    /// Finishes an attempt. Returns false if its device was given up meanwhile.
    fn finish(&self, finishing: FinishingAttempt) -> bool {
        let Some((slot, call, pending)) = finish::begin(self.core(), finishing) else {
            return true;
        };
        let proof = finish::prove(self.core(), slot, &call, pending);
        finish::end(self.core(), slot, call, proof)
    }

    /// Has a dedicated worker take the next attempt of its lane. Returns false if there is none.
    fn dedicated(&self, lane: Lane) -> bool {
        let Some(admitted) = self.admit(lane) else {
            return false;
        };
        let worker = DEDICATED.iter().position(|of| *of == lane).unwrap();
        let partition = admitted.attempt.partition;
        self.life.own_devices[worker].tell(Deed::Prove, partition);
        dedicated::take(self.core(), lane, admitted);
        true
    }

    /// Has all workers do what there is to do. Nothing fails.
    fn work(&self) {
        for _ in 0..1000 {
            let synthesized = self.synthesize();
            let mut is_done = synthesized.is_none();
            if let Some(ready) = synthesized {
                synthesis::hand_over(self.core(), ready);
            }
            for device in 0..self.life.devices.len() {
                if let Some(ready) = self.claim(device) {
                    let region = self.begin(device, ready, Deed::Prove);
                    if let Some(finishing) = self.answer(region) {
                        self.finish(finishing);
                    }
                    is_done = false;
                }
            }
            for lane in DEDICATED {
                is_done &= !self.dedicated(lane);
            }
            if is_done {
                return;
            }
        }
        panic!("there is always something to do");
    }

    /// Returns the verified proof of a root.
    fn proof(&self, root: usize) -> VerifiedProof {
        let input = Root::new(root, false).input();
        verdict_on_bytes(self.proof_bytes(root), input)
            .flatten()
            .unwrap()
    }

    fn proof_bytes(&self, root: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.bench.proofs[root].write(&mut bytes).unwrap();
        bytes
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        set(None);
    }
}

/// A device region that was begun.
struct Region {
    device: usize,
    call: StartCall,
    synthesized: Synthesized,
    deed: Deed,
    began: Instant,
}

/// Writes to a text that others share.
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns what this thread logs during `work`.
fn logged(work: impl FnOnce()) -> String {
    let text = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&text);
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || Lines(Arc::clone(&lines)))
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    let text = text.lock().unwrap().clone();
    String::from_utf8(text).unwrap()
}
