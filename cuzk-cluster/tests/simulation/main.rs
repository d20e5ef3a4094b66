//! The real core of the cluster over a simulated server, network and clock.
//!
//! The ledger, the pull policy, the leases and the messages are those of the crate. The server,
//! the provers and the faults are made up. A run depends on its seed only. Each run prints its
//! seed and its figures. `.ci/nightly simulation` has 1,000 workers and 10^6 partitions.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]
#![allow(clippy::panic, reason = "a failure in a test fails the test")]

mod costs;
mod faults;
mod load;
mod net;
mod node;
mod owner;
mod server;
mod throughput;
mod world;

use std::time::Duration;

use costs::Costs;
use faults::Rates;
use world::{Config, Plant, Report, Violation, run};

/// Returns a small cluster: 20 workers and 600 partitions of three circuits.
fn small(seed: u64, rates: Rates) -> Config {
    Config {
        seed,
        workers: 20,
        partitions: 600,
        rates,
        costs: Costs::FREE,
        is_local: true,
        plant: None,
        limit: Duration::from_secs(20_000),
    }
}

fn expect_good(config: &Config) -> Report {
    match run(config) {
        Ok(report) => {
            println!("seed {}: {report}", config.seed);
            report
        }
        Err(violation) => panic!("seed {}: {violation:?}", config.seed),
    }
}

fn planted(plant: Plant, rates: Rates) -> Violation {
    let seeds = 0..20;
    let violations = seeds.filter_map(|seed| {
        let plant = Some(plant);
        let config = Config {
            plant,
            is_local: false,
            limit: Duration::from_secs(8000),
            ..small(seed, rates)
        };
        run(&config).err()
    });
    let found = violations.into_iter().next();
    found.unwrap_or_else(|| panic!("{plant:?} was not found"))
}

#[test]
fn without_faults_each_partition_is_proved_once() {
    let report = expect_good(&small(1, Rates::NONE));
    assert_eq!(report.proved_again, 0, "{report}");
}

#[test]
fn each_partition_ends_once_under_all_faults() {
    for seed in 0..12 {
        let report = expect_good(&small(seed, Rates::ALL));
        assert!(report.idle_percent() <= 1.0, "seed {seed}: {report}");
    }
}

#[test]
fn each_partition_ends_once_if_the_owner_proves_only_what_fails() {
    for seed in 100..104 {
        let config = Config {
            is_local: false,
            ..small(seed, Rates::ALL)
        };
        let report = expect_good(&config);
        assert!(report.idle_percent() <= 1.0, "seed {seed}: {report}");
    }
}

#[test]
fn a_run_depends_on_its_seed_only() {
    let config = small(7, Rates::ALL);
    assert_eq!(expect_good(&config), expect_good(&config));
    assert_ne!(expect_good(&config), expect_good(&small(8, Rates::ALL)));
}

#[test]
fn an_owner_that_verifies_nothing_is_found() {
    let violation = planted(Plant::AcceptAll, Rates::ALL);
    assert!(matches!(violation, Violation::WrongEnd(_)), "{violation:?}");
}

#[test]
fn an_owner_that_trusts_the_stream_is_found() {
    let violation = planted(Plant::NoSurveys, Rates::ALL);
    assert!(matches!(violation, Violation::Lost(_)), "{violation:?}");
}

#[test]
fn an_owner_that_forgets_its_journal_is_found() {
    let violation = planted(Plant::NoJournal, Rates::ALL);
    assert!(
        matches!(violation, Violation::EndedTwice(_)),
        "{violation:?}"
    );
}

#[test]
fn workers_that_look_for_work_too_rarely_are_found() {
    let config = Config {
        plant: Some(Plant::LazyWorkers),
        ..small(1, Rates::NONE)
    };
    let report = expect_good(&config);
    assert!(report.idle_percent() > 1.0, "{report}");
}

/// The simulated partitions of the long run: `CUZK_TEST_SIMULATED`. The nightly run has 10^6.
fn simulated() -> usize {
    let partitions = std::env::var("CUZK_TEST_SIMULATED").ok();
    partitions.map_or(20_000, |partitions| partitions.parse().unwrap())
}

#[test]
fn a_thousand_workers_end_each_partition_once() {
    let seed = std::env::var("CUZK_TEST_SEED").ok();
    let partitions = simulated();
    let config = Config {
        seed: seed.map_or(1, |seed| seed.parse().unwrap()),
        workers: 1000,
        partitions,
        rates: Rates::large(if partitions < 100_000 { 200 } else { 2000 }),
        costs: Costs::FREE,
        is_local: true,
        plant: None,
        limit: Duration::from_secs(400_000),
    };
    let report = expect_good(&config);
    assert!(report.idle_percent() <= 1.0, "{report}");
}
