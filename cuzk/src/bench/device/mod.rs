//! `cuzk bench device…`: proofs on a GPU, from the witness on.
//!
//! The peer is supraseal-c2, in a build with the feature `peer-supraseal`. It has the
//! same circuit, witness and parameters. Its a, b and c are evaluated before anything is
//! measured. The invariant: with the same r and s both proofs are the
//! same bytes, and every proof that is timed verifies.

mod bounds;
#[cfg(feature = "peer-supraseal")]
mod peer;
mod subject;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use blstrs::Scalar;
use cuzk_core::engine::warn_of_few_queues;
use cuzk_core::timeline::{Timeline, device_use};
use cuzk_groth16::backend::{Backend, CudaBackend, Pending, Randomness};
use serde::Serialize;
use supraseal_sys::device::{DeviceOptions, DeviceProver, ProofFigures, device_count};
use supraseal_sys::{GpuResources, Status, set_gpu_threads};

use super::{Comparison, median};
use crate::args::Bench;
use crate::commands::Context;
use crate::failure::Failure;
use crate::memory::rss_bytes;
use crate::output;
use subject::Subject;

/// Proofs after which a load is taken as steady.
const WARM: usize = 50;

/// The most device memory to take beside a peer, which needs some too, unless the
/// configuration says how much.
const BESIDE_PEER_BYTES: u64 = 36 << 30;

/// A device may be slow in a measurement, but not for ever.
const STALL_LIMIT: Duration = Duration::from_secs(600);

/// Of the bundled request of a kind.
pub(super) fn of_kind(context: &Context, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let device = Device::open(context)?;
    let subject = Subject::of_kind(context, args)?;
    compare(context, &device, &subject, args)
}

/// Of a made-up circuit that fills a domain.
pub(super) fn of_size(context: &Context, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let device = Device::open(context)?;
    let subject = Subject::of_size(context, args.size)?;
    compare(context, &device, &subject, args)
}

/// Two workers without a pause: how busy the device is, and what grows.
pub(super) fn load(context: &Context, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let device = Device::open(context)?;
    let subject = Subject::of_kind(context, args)?;
    let load = device.load(&subject, args.runs as usize)?;
    output::print(context.json, &load, Load::text)?;
    Ok(Vec::new())
}

/// The first GPU.
struct Device {
    prover: Arc<DeviceProver>,
    backend: Arc<CudaBackend>,
    timeline: Timeline,
}

fn failed(error: impl ToString) -> Failure {
    Failure::failed(error.to_string())
}

impl Device {
    fn open(context: &Context) -> Result<Self, Failure> {
        let gpus = &context.config.gpus;
        let count = device_count().map_err(no_gpu)?;
        if count == 0 {
            return Err(Failure::failed(
                "bench device needs a GPU, and CUDA shows none; see nvidia-smi and \
                 CUDA_VISIBLE_DEVICES",
            ));
        }
        let beside_peer = cfg!(feature = "peer-supraseal").then_some(BESIDE_PEER_BYTES);
        let options = DeviceOptions {
            memory_bytes: gpus.memory_limit_bytes.or(beside_peer),
            workers: 2,
            b_g2: gpus.b_g2,
            stall_limit: STALL_LIMIT,
        };
        set_gpu_threads(u32::try_from(gpus.gpu_threads).unwrap_or(u32::MAX)).map_err(failed)?;
        let resources = Arc::new(GpuResources::new().map_err(failed)?);
        let prover = DeviceProver::open(0, &options, resources).map_err(no_gpu)?;
        warn_of_few_queues();
        let prover = Arc::new(prover);
        output::say(format_args!("{:?}", prover.info().map_err(failed)?));
        Ok(Self {
            backend: Arc::new(CudaBackend::new(Arc::clone(&prover))),
            prover,
            timeline: Timeline::default(),
        })
    }

    fn start(
        &self,
        subject: &Subject,
        randomness: Randomness,
        job: u64,
    ) -> Result<Box<dyn Pending>, Failure> {
        let trace = self.timeline.trace(job, Some(0)).on_device(0);
        let backend = Arc::clone(&self.backend);
        let pending = backend.prove_start(subject.synthesized(randomness), trace);
        pending.map_err(failed)
    }

    fn finish(&self, subject: &Subject, pending: Box<dyn Pending>) -> Result<[u8; 192], Failure> {
        let trace = self.timeline.trace(0, Some(0));
        let proof = pending.finish(trace).map_err(failed)?;
        subject.verify(&proof)
    }

    /// From the witness to the proof, verification left out, in seconds.
    fn time(&self, subject: &Subject) -> Result<f64, Failure> {
        let synthesized = subject.synthesized(Randomness::from_os());
        let trace = self.timeline.trace(0, Some(0)).on_device(0);
        let started = Instant::now();
        let pending = Arc::clone(&self.backend).prove_start(synthesized, trace);
        let proof = pending.map_err(failed)?.finish(trace).map_err(failed)?;
        let seconds = started.elapsed().as_secs_f64();
        subject.verify(&proof)?;
        Ok(seconds)
    }

    fn figures(&self) -> Result<ProofFigures, Failure> {
        let figures = self.backend.figures();
        figures.ok_or_else(|| failed("no proof was made"))
    }

    /// Returns how much of the device's memory is in use, by any process.
    fn used_bytes(&self) -> Result<u64, Failure> {
        let info = self.prover.info().map_err(failed)?;
        Ok(info.memory_bytes - info.free_bytes)
    }
}

fn no_gpu(error: Status) -> Failure {
    Failure::failed(format!("bench device needs a GPU: {error}"))
}

fn compare(
    context: &Context,
    device: &Device,
    subject: &Subject,
    args: &Bench,
) -> Result<Vec<Comparison>, Failure> {
    let added = Randomness::Added {
        r: Scalar::from(0x5eed),
        s: Scalar::from(0x0dd5),
    };
    // The circuit comes to the device with this one.
    let proof = device.finish(subject, device.start(subject, added, 0)?)?;
    let mut peer = Peer::new(subject, proof)?;
    device.time(subject)?;
    let (mut ours_s, mut peer_s) = (Vec::new(), Vec::new());
    let mut regions_s = Vec::new();
    for _ in 0..args.runs {
        ours_s.push(device.time(subject)?);
        let figures = device.figures()?;
        regions_s.push((figures.quotient_ms + figures.sums_ms) / 1e3);
        peer_s.extend(peer.time()?);
    }
    let figures = device.figures()?;
    output::say(format_args!("the last proof: {figures:?}"));
    let info = device.prover.info().map_err(failed)?;
    for bound in bounds::bounds(&info, subject, &figures) {
        output::print(context.json, &bound, bounds::Bound::text)?;
    }
    let ours_s = median(ours_s);
    let peer_s = (!peer_s.is_empty()).then(|| median(peer_s));
    let proof = Comparison {
        stage: "device",
        size: subject.name.clone(),
        threads: rayon::current_num_threads(),
        ours_s,
        peer: peer_s.map(|_| "supraseal-c2"),
        peer_s,
        ratio: peer_s.map(|peer_s| peer_s / ours_s),
        ours_bytes: Some(figures.uploaded_bytes + figures.streamed_bytes),
        peer_bytes: Some(subject.peer_bytes()),
        ..Comparison::default()
    };
    let region = Comparison::alone("device region", subject.name.clone(), regions_s);
    Ok(vec![proof, region])
}

/// The peer, or nothing in a build without it.
struct Peer {
    #[cfg(feature = "peer-supraseal")]
    supraseal: peer::Supraseal,
}

impl Peer {
    /// Checks that the peer makes `proof`, too.
    #[cfg(feature = "peer-supraseal")]
    fn new(subject: &Subject, proof: [u8; 192]) -> Result<Self, Failure> {
        let supraseal = peer::Supraseal::new(subject)?;
        let peers = supraseal.prove(Scalar::from(0x5eed), Scalar::from(0x0dd5));
        if subject.verify(&peers)? != proof {
            return Err(super::differs("device"));
        }
        Ok(Self { supraseal })
    }

    #[cfg(not(feature = "peer-supraseal"))]
    fn new(_: &Subject, _: [u8; 192]) -> Result<Self, Failure> {
        output::say("without a peer: build with --features peer-supraseal to compare");
        Ok(Self {})
    }

    #[cfg(feature = "peer-supraseal")]
    fn time(&mut self) -> Result<Option<f64>, Failure> {
        let started = Instant::now();
        self.supraseal.prove(Scalar::from(3), Scalar::from(5));
        Ok(Some(started.elapsed().as_secs_f64()))
    }

    #[cfg(not(feature = "peer-supraseal"))]
    fn time(&mut self) -> Result<Option<f64>, Failure> {
        Ok(None)
    }
}

/// Many proofs by two workers.
#[derive(Debug, Serialize)]
struct Load {
    size: String,
    proofs: usize,
    proofs_a_second: f64,
    /// From the first region to the last, in per cent.
    busy: f64,
    longest_gap_ms: f64,
    uploaded_bytes: u64,
    /// Once it is steady, if it comes to that, and at the end: resident memory of
    /// this process, and memory of the device in use.
    rss_bytes: [Option<u64>; 2],
    device_bytes: [Option<u64>; 2],
}

impl Load {
    fn text(&self) -> String {
        let figure = |bytes: Option<u64>| bytes.map_or("n/a".to_owned(), |b| b.to_string());
        let [rss, rss_end] = self.rss_bytes.map(figure);
        let [device, device_end] = self.device_bytes.map(figure);
        format!(
            "{}, {} proofs by two workers, all verified: {:.2} a second, device {:.2} % busy, longest \
             gap {:.2} ms, {} bytes up each; after {WARM} and at the end: {rss} and {rss_end} bytes \
             resident, {device} and {device_end} bytes of the device",
            self.size,
            self.proofs,
            self.proofs_a_second,
            self.busy,
            self.longest_gap_ms,
            self.uploaded_bytes,
        )
    }
}

/// The state that workers and finishers share.
struct Line<'a> {
    device: &'a Device,
    subject: &'a Subject,
    left: Mutex<usize>,
    done: Mutex<Done>,
}

/// The figures of the finished proofs.
#[derive(Default)]
struct Done {
    proofs: usize,
    warm: Option<(Option<u64>, u64)>,
}

impl Device {
    fn load(&self, subject: &Subject, proofs: usize) -> Result<Load, Failure> {
        // The circuit comes to the device before the clock runs.
        self.time(subject)?;
        let line = Line {
            device: self,
            subject,
            left: Mutex::new(proofs),
            done: Mutex::default(),
        };
        let (pending, ready) = channel();
        let (line, ready) = (&line, &Mutex::new(ready));
        let started = Instant::now();
        std::thread::scope(|scope| {
            let mut threads: Vec<_> = (0..2)
                .map(|_| {
                    let pending = pending.clone();
                    scope.spawn(move || line.start_all(&pending))
                })
                .collect();
            drop(pending);
            threads.extend((0..2).map(|_| scope.spawn(move || line.finish_all(ready))));
            threads.into_iter().try_for_each(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|_| Err(failed("a worker of the load panicked")))
            })
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let spans = self.timeline.spans();
        // The first proof is the one before the load.
        let of_load: Vec<_> = spans.into_iter().filter(|span| span.job == 1).collect();
        let use_of = device_use(&of_load);
        let device = use_of
            .first()
            .ok_or_else(|| failed("no region was timed"))?;
        let gap = device.longest_gaps(1).first().map(|gap| gap.length);
        let at_end = (rss_bytes(), self.used_bytes()?);
        let done = line.done.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Load {
            size: subject.name.clone(),
            proofs,
            proofs_a_second: proofs as f64 / seconds,
            busy: device.utilisation() * 100.0,
            longest_gap_ms: gap.unwrap_or_default().as_secs_f64() * 1e3,
            uploaded_bytes: self.figures()?.uploaded_bytes,
            rss_bytes: [done.warm.and_then(|(rss, _)| rss), at_end.0],
            device_bytes: [done.warm.map(|(_, device)| device), Some(at_end.1)],
        })
    }
}

impl Line<'_> {
    fn start_all(&self, pending: &Sender<Box<dyn Pending>>) -> Result<(), Failure> {
        while self.takes_one() {
            let started = self.device.start(self.subject, Randomness::from_os(), 1)?;
            if pending.send(started).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn takes_one(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let takes = *left > 0;
        *left = left.saturating_sub(1);
        takes
    }

    fn finish_all(&self, ready: &Mutex<Receiver<Box<dyn Pending>>>) -> Result<(), Failure> {
        loop {
            let next = ready.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(pending) = next else { return Ok(()) };
            self.device.finish(self.subject, pending)?;
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.proofs += 1;
            if done.proofs == WARM {
                done.warm = Some((rss_bytes(), self.device.used_bytes()?));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a load that ends before it is steady nothing is told of what grew.
    #[test]
    fn what_was_not_seen_is_not_a_figure() {
        let load = Load {
            size: "a circuit".to_owned(),
            proofs: WARM - 1,
            proofs_a_second: 1.0,
            busy: 50.0,
            longest_gap_ms: 1.0,
            uploaded_bytes: 7,
            rss_bytes: [None, None],
            device_bytes: [None, Some(5)],
        };
        let text = load.text();
        assert!(text.contains("n/a and n/a bytes resident"), "{text}");
        assert!(text.contains("n/a and 5 bytes of the device"), "{text}");
    }
}
