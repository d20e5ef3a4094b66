//! The bytes that MSMs have on the heap, counted, against the documented numbers.
//!
//! In a process of its own, since all of its allocations are counted, and with one test,
//! since others would allocate meanwhile.
#![allow(clippy::unwrap_used)] // the helpers of tests may panic

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::Isa;
use cuzk_kernels::msm::{
    Bits, MsmMemory, MsmTerm, MsmTermSize, PackedScalars, g1_columns, g1_of_terms, g2_columns,
    g2_of_terms,
};
use cuzk_testing::heap::{PeakAlloc, most_bytes};
use ff::Field;
use group::prime::PrimeCurveAffine;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::ThreadPoolBuilder;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Scalars each of which is wide, or a one, or a zero.
const TERMS: usize = 1 << 14;

/// The bytes that a task needs for a short time.
const PASSING_BYTES: usize = 32 << 10;

/// The bytes that the documentation leaves out: the cuts of windows, and the lists of terms
/// and tasks. They are fewer than the marks of buckets have on one thread, so that the marks
/// cannot be left out, too.
const OTHER_BYTES: usize = 4 << 10;

#[test]
fn sums_have_on_the_heap_what_is_said() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let wide = TERMS / 2;
    let values: Vec<Scalar> = (0..wide).map(|_| Scalar::random(&mut rng)).collect();
    // Few different ones, so that terms wait for each other, too.
    let few: Vec<Scalar> = (0..TERMS).map(|i| values[i % 7]).collect();
    // Ones side by side, as many as there can be in a task.
    let (none, all) = (vec![0; wide / 64], vec![u64::MAX; wide / 64]);
    let (ones, others) = ([&all[..], &none].concat(), [&none[..], &all].concat());
    let packed = PackedScalars::new(TERMS, &ones, &others, &values).unwrap();
    let (g1, g2) = (
        vec![G1Affine::generator(); TERMS],
        vec![G2Affine::generator(); TERMS],
    );
    let (g1, g2) = (&g1[..], &g2[..]);
    let count = |wide, is_plain| MsmTermSize {
        wide,
        is_plain,
        multiples: None,
    };
    let counts = [count(TERMS, true), count(wide, false)];
    for isa in Isa::all() {
        for threads in [1, 4] {
            let pool = ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            let in_g1 = || {
                let parts = [MsmTerm::new(&g1, &few[..]), MsmTerm::new(&g1, packed)];
                pool.install(|| g1_of_terms(isa, &parts)).unwrap();
            };
            let in_g2 = || {
                let parts = [MsmTerm::new(&g2, &few[..]), MsmTerm::new(&g2, packed)];
                pool.install(|| g2_of_terms(isa, &parts)).unwrap();
            };
            // Once before, for what is made once.
            in_g1();
            for (used, said) in [
                (
                    most_bytes(HEAP, in_g1),
                    MsmMemory::of_g1(isa, &counts, threads),
                ),
                (
                    most_bytes(HEAP, in_g2),
                    MsmMemory::of_g2(isa, &counts, threads),
                ),
            ] {
                check(used, said.heap_bytes, threads, isa);
            }
        }
    }
    columns_have_on_the_heap_what_is_said(g1, g2);
}

fn check(used: usize, said: usize, threads: usize, isa: Isa) {
    println!("{isa} {threads}: said {said}, used {used}");
    // Not all of them need that at once.
    let least = said - threads * PASSING_BYTES;
    assert!(
        (least..=said + OTHER_BYTES).contains(&used),
        "{isa} {threads}: said {said}, used {used}"
    );
}

/// Of ten columns, and of more than a pass has.
fn columns_have_on_the_heap_what_is_said(g1: &[G1Affine], g2: &[G2Affine]) {
    let words = vec![u64::MAX; TERMS / 64];
    for (isa, columns) in Isa::all()
        .into_iter()
        .flat_map(|isa| [(isa, 10), (isa, 33)])
    {
        let columns = vec![Bits::new(TERMS, &words).unwrap(); columns];
        for threads in [1, 4] {
            let pool = ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            let in_g1 = || drop(pool.install(|| g1_columns(isa, g1, &columns)).unwrap());
            let in_g2 = || drop(pool.install(|| g2_columns(isa, g2, &columns)).unwrap());
            // Once before, for what is made once.
            in_g1();
            let said = MsmMemory::of_g1_columns(isa, columns.len(), TERMS, threads);
            check(most_bytes(HEAP, in_g1), said.heap_bytes, threads, isa);
            let said = MsmMemory::of_g2_columns(isa, columns.len(), TERMS, threads);
            check(most_bytes(HEAP, in_g2), said.heap_bytes, threads, isa);
        }
    }
}
