//! The partitions of a run, with their right ends.

use std::time::Duration;

use cuzk_cluster::message::{Input, Work, WorkId};
use cuzk_cluster::name::Name;
use cuzk_cluster::subject::{Circuit, Fingerprint};
use cuzk_scheduler::priority::Priority;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::net::Net;

/// The circuits: name, seconds of a partition, seconds to load its parameters.
const CIRCUITS: [(&str, u64, u64); 3] = [
    ("porep-32GiB", 40, 60),
    ("snap-deals-32GiB", 25, 40),
    ("window-post-32GiB", 15, 30),
];

/// A partition and the time at which its job is accepted.
pub(crate) struct Partition {
    pub(crate) work: Work,
    pub(crate) accepted: Duration,
    /// No machine can prove a false statement.
    pub(crate) is_false: bool,
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn circuits() -> Vec<Circuit> {
    let circuit = |(text, ..): (&str, u64, u64)| Circuit {
        name: name(text),
        fingerprint: Fingerprint(*blake3::hash(text.as_bytes()).as_bytes()),
    };
    CIRCUITS.into_iter().map(circuit).collect()
}

fn figures(circuit: &Circuit) -> (u64, u64) {
    let figures = CIRCUITS
        .into_iter()
        .find(|(text, ..)| *text == circuit.name.as_str());
    figures
        .map(|(_, prove_s, load_s)| (prove_s, load_s))
        .unwrap()
}

/// Returns the time that a partition takes, between 0.7 and 1.3 of its circuit's.
pub(crate) fn proving_time(circuit: &Circuit, net: &mut Net) -> Duration {
    let mean = net.costs.proving;
    let mean = mean.unwrap_or_else(|| Duration::from_secs(figures(circuit).0));
    mean.mul_f64(net.rng.gen_range(0.7..1.3))
}

pub(crate) fn loading_time(circuit: &Circuit) -> Duration {
    Duration::from_secs(figures(circuit).1)
}

/// Returns the only right proof of a partition.
pub(crate) fn right_proof(id: &WorkId) -> Vec<u8> {
    blake3::hash(&id.0).as_bytes().repeat(6)
}

/// Returns `count` partitions of PoReps that arrive over `span`, one after the other.
pub(crate) fn alike(count: usize, span: Duration) -> Vec<Partition> {
    let circuit = &circuits()[0];
    let partition = |number: usize| Partition {
        work: work(number, circuit, Priority::Normal),
        accepted: span.mul_f64(number as f64 / count as f64),
        is_false: false,
    };
    (0..count).map(partition).collect()
}

/// Returns `count` partitions that arrive over `span`.
pub(crate) fn partitions(count: usize, span: Duration, rng: &mut ChaCha8Rng) -> Vec<Partition> {
    let circuits = circuits();
    let partition = |number: usize| {
        let kind = rng.gen_range(0..100);
        let (circuit, priority) = match kind {
            0..70 => (0, Priority::Normal),
            70..85 => (1, Priority::Low),
            85..99 => (2, Priority::High),
            _ => (2, Priority::Critical),
        };
        Partition {
            work: work(number, &circuits[circuit], priority),
            accepted: span.mul_f64(rng.gen_range(0.0..1.0)),
            is_false: rng.gen_range(0..200) == 0,
        }
    };
    (0..count).map(partition).collect()
}

fn work(number: usize, circuit: &Circuit, priority: Priority) -> Work {
    Work {
        owner: name("daemon"),
        job: format!("job {}", number / 10),
        partition: u32::try_from(number % 10).unwrap(),
        circuit: circuit.clone(),
        priority,
        attempt: 0,
        excluded: Vec::new(),
        input: Input::inline(number.to_le_bytes().to_vec()),
    }
}
