//! Many proofs by two workers, without a pause.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use cuzk_core::timeline::device_use;
use cuzk_groth16::backend::{Pending, Randomness};
use cuzk_tune::machine::Host;
use serde::Serialize;

use super::gpu::Gpu;
use super::subject::Subject;
use crate::failure::{Failure, failed};
use crate::memory::rss_bytes;
use crate::threads::none_left;

/// The number of proofs after which a load is taken as steady.
const WARM: usize = 50;

/// The figures of a load.
#[derive(Debug, Serialize)]
pub(super) struct Load {
    machine: Host,
    size: String,
    proofs: usize,
    proofs_a_second: f64,
    /// The use of the device from the first region to the last, in per cent.
    busy: f64,
    longest_gap_ms: f64,
    uploaded_bytes: u64,
    /// Resident memory of this process, and memory of the device in use: once the load is
    /// steady, and at the end. A short load is never steady.
    rss_bytes: [Option<u64>; 2],
    device_bytes: [Option<u64>; 2],
}

impl Load {
    /// Makes and verifies so many proofs.
    pub(super) fn measure(
        gpu: &Gpu,
        subject: &Subject,
        proofs: usize,
        host: &Host,
    ) -> Result<Self, Failure> {
        // The circuit comes to the device before the clock runs.
        gpu.time(subject)?;
        let workers = Workers {
            gpu,
            subject,
            left: Mutex::new(proofs),
            done: Mutex::default(),
        };
        let started = Instant::now();
        workers.prove_all()?;
        let seconds = started.elapsed().as_secs_f64();
        let spans = gpu.timeline.spans();
        // The first proof is the one before the load.
        let of_load: Vec<_> = spans
            .into_iter()
            .filter(|span| span.job == Some(1))
            .collect();
        let devices = device_use(&of_load);
        let device = (devices.first()).ok_or_else(|| failed("no region was timed"))?;
        let gap = device.longest_gaps(1).first().map(|gap| gap.length);
        let at_end = (rss_bytes(), gpu.used_bytes()?);
        let done = workers.done.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Self {
            machine: host.clone(),
            size: subject.name.clone(),
            proofs,
            proofs_a_second: proofs as f64 / seconds,
            busy: device.utilisation() * 100.0,
            longest_gap_ms: gap.unwrap_or_default().as_secs_f64() * 1e3,
            uploaded_bytes: gpu.figures()?.uploaded_bytes,
            rss_bytes: [done.warm.and_then(|(rss, _)| rss), at_end.0],
            device_bytes: [done.warm.map(|(_, device)| device), Some(at_end.1)],
        })
    }

    /// Returns the line for people.
    pub(super) fn text(&self) -> String {
        let figure = |bytes: Option<u64>| bytes.map_or("n/a".to_owned(), |b| b.to_string());
        let [rss, rss_end] = self.rss_bytes.map(figure);
        let [device, device_end] = self.device_bytes.map(figure);
        format!(
            "{}\n{}, {} proofs by two workers, all verified: {:.2} a second, device {:.2} % busy, longest \
             gap {:.2} ms, {} bytes up each; after {WARM} and at the end: {rss} and {rss_end} bytes \
             resident, {device} and {device_end} bytes of the device",
            self.machine,
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
struct Workers<'a> {
    gpu: &'a Gpu,
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

impl Workers<'_> {
    /// Starts the proofs on two threads and finishes them on two others.
    fn prove_all(&self) -> Result<(), Failure> {
        let (pending, ready) = channel();
        let ready = &Mutex::new(ready);
        thread::scope(|scope| {
            let named = || thread::Builder::new();
            let mut threads = Vec::new();
            for _ in 0..2 {
                let pending = pending.clone();
                threads.push(named().spawn_scoped(scope, move || self.start_all(&pending)));
                threads.push(named().spawn_scoped(scope, move || self.finish_all(ready)));
            }
            drop(pending);
            let threads: Result<Vec<_>, _> = threads.into_iter().collect();
            let threads = threads.map_err(|error| none_left(&error))?;
            threads.into_iter().try_for_each(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|_| Err(failed("a worker of the load panicked")))
            })
        })
    }

    fn start_all(&self, pending: &Sender<Box<dyn Pending>>) -> Result<(), Failure> {
        while self.takes_one() {
            let started = self.gpu.start(self.subject, Randomness::from_os(), 1)?;
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
            self.gpu.finish(self.subject, pending)?;
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.proofs += 1;
            if done.proofs == WARM {
                done.warm = Some((rss_bytes(), self.gpu.used_bytes()?));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load that ends before it is steady has no figures of growth.
    #[test]
    fn a_short_load_has_no_figures_of_growth() {
        let load = Load {
            machine: Host::read(std::path::Path::new("/"), "scalar"),
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
