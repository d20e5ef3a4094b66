//! The bytes that an aggregation has on the heap, counted, against what an engine charges.
//!
//! In a process of its own, since all of its allocations are counted, and with one test,
//! since others would allocate meanwhile.
#![allow(clippy::unwrap_used)] // the helpers of tests may panic

use cuzk_core::Config;
use cuzk_core::aggregate::{AggregationKeys, aggregate_request, memory_bytes};
use cuzk_groth16::aggregate::keys_bytes;
use cuzk_kernels::Isa;
use cuzk_testing::heap::{PeakAlloc, most_bytes};
use cuzk_testing::{folder_with_porep_key, param_cache, put_srs};
use rayon::ThreadPoolBuilder;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The most proofs of this test: enough for multi-scalar multiplications.
const PROOFS: usize = 256;

#[test]
fn an_aggregation_has_on_the_heap_no_more_than_is_charged() {
    let folder = folder_with_porep_key(&param_cache(env!("CARGO_TARGET_TMPDIR")));
    put_srs(folder.path(), 3, PROOFS);
    let mut config = Config::default();
    config.srs.param_cache = folder.path().to_owned();
    for isa in Isa::all() {
        for (proofs, threads) in [(2, 1), (64, 4), (PROOFS, 1)] {
            config.cpu.isa = isa;
            config.synthesis.threads = threads;
            let request = cuzk_testing::aggregate_request(proofs);
            let pool = ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            let keys = AggregationKeys::new(&config);
            let used = most_bytes(HEAP, || {
                let aggregate = || aggregate_request(&config, &keys, &request).unwrap();
                drop(pool.install(aggregate));
            }) as u64;
            let said = memory_bytes(&config, &request).unwrap() + keys_bytes(proofs);
            println!("{isa} {proofs} {threads}: said {said}, used {used}");
            assert!(
                used <= said,
                "{isa} {proofs} {threads}: said {said}, used {used}"
            );
            // The buckets of multi-scalar multiplications are mapped, and not on the heap. They
            // are most of what is said, and still it is not said of thin air.
            let is_large = proofs == PROOFS;
            assert!(
                !is_large || said < 4 * used,
                "{isa}: said {said}, used {used}"
            );
        }
    }
}
