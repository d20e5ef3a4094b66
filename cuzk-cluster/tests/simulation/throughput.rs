//! The throughput over the number of workers, with measured costs of a partition.
//!
//! The workers are modelled: a partition takes a time, and nothing fails. The scheduling is that
//! of the crate. The figures are those of docs/cluster.md.

use std::time::Duration;

use crate::costs::Costs;
use crate::expect_good;
use crate::faults::Rates;
use crate::world::Config;

/// A partition on a machine that proves a PoRep of 32 GiB in 18 s: docs/plan.md has its plan.
const PROVING: Duration = Duration::from_millis(1800);

/// A partition of a PoRep of 32 GiB has so many bytes.
const INPUT_BYTES: f64 = 1_101_608.0;

/// A server with a network of 10 Gbit/s.
const BYTES_PER_SECOND: f64 = 1.25e9;

/// The costs of a partition at the daemon.
fn costs(cores: usize) -> Costs {
    Costs {
        proving: Some(PROVING),
        cores: Some(cores),
        sending: Duration::from_micros(SENDING_US),
        verifying: Duration::from_micros(VERIFYING_US),
        transfer: Duration::from_secs_f64(INPUT_BYTES / BYTES_PER_SECOND),
    }
}

/// The processor time of daemon, server and worker for an input of this length, as
/// `the_rate_of_long_inputs_is_printed` of `tests/nats` prints it.
const SENDING_US: u64 = 10_000;

/// The processor time for the verification of a proof, as `cuzk prove --verbose` prints it.
const VERIFYING_US: u64 = 3_000;

/// Returns the partitions a second of so many workers.
fn rate(workers: usize, cores: usize) -> f64 {
    let partitions = 200 * workers;
    let config = Config {
        seed: 1,
        workers,
        partitions,
        rates: Rates::NONE,
        costs: costs(cores),
        is_local: false,
        plant: None,
        limit: Duration::from_secs(100_000),
    };
    let report = expect_good(&config);
    0.6 * partitions as f64 / report.middle.as_secs_f64()
}

#[test]
#[ignore = "takes minutes, and its table is for people"]
fn the_throughput_over_the_workers_is_printed() {
    let alone = rate(1, 2);
    let mut lines = vec!["workers, cores of the daemon, partitions/s, part of linear".to_owned()];
    for (workers, cores) in [
        (1, 2),
        (3, 2),
        (10, 2),
        (30, 2),
        (100, 2),
        (300, 2),
        (300, 4),
        (1000, 4),
        (1000, 16),
    ] {
        let rate = rate(workers, cores);
        let part = 100.0 * rate / (alone * workers as f64);
        lines.push(format!("{workers}, {cores}, {rate:.2}, {part:.1} %"));
    }
    println!("{}", lines.join("\n"));
}
