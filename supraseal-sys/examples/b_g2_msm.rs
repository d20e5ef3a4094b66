//! Compares `b_g2_msm` with blst's own multiplication, in turns in one run, on the same
//! number of threads. Prints the medians, one JSON object for each size.
//!
//! `cargo run --release -p supraseal-sys --example b_g2_msm -- 16 18` takes the sizes
//! as powers of two. blst uses one thread for each core, so this does, too.
#![expect(
    clippy::unwrap_used,
    reason = "an example that cannot go on says so by ending"
)]

use blst::MultiPoint;
use blstrs::{G2Affine, G2Projective, Scalar};
use ff::Field;
use group::{Curve, Group, prime::PrimeCurveAffine};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Instant;
use supraseal_sys::{GpuResources, b_g2_msm, gpu_threads};

const RUNS: usize = 3;

fn main() {
    let logs: Vec<u32> = std::env::args()
        .skip(1)
        .map(|log| log.parse().unwrap())
        .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for log in logs {
        let len = 1usize << log;
        let bases = points(len, &mut rng);
        let full: Vec<Scalar> = (0..len).map(|_| Scalar::random(&mut rng)).collect();
        compare("full-size scalars", &bases, &full);
        // The mixture of values in a Filecoin witness.
        let witness: Vec<Scalar> = (0..len)
            .map(|_| match rng.gen_range(0..1000) {
                0..512 => Scalar::ZERO,
                512..984 => Scalar::ONE,
                _ => Scalar::random(&mut rng),
            })
            .collect();
        compare("51 % zero, 47 % one", &bases, &witness);
    }
}

fn points(len: usize, rng: &mut ChaCha8Rng) -> Vec<G2Affine> {
    let step = G2Projective::random(&mut *rng);
    let mut point = G2Projective::random(&mut *rng);
    let points: Vec<G2Projective> = std::iter::repeat_with(|| {
        point += step;
        point
    })
    .take(len)
    .collect();
    let mut affine = vec![G2Affine::identity(); len];
    G2Projective::batch_normalize(&points, &mut affine);
    affine
}

fn compare(what: &str, bases: &[G2Affine], scalars: &[Scalar]) {
    let resources = GpuResources::new().unwrap();
    let blst_points: Vec<blst::blst_p2_affine> = bases.iter().map(|base| *base.as_ref()).collect();
    let (mut ours_s, mut peer_s) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let start = Instant::now();
        let ours = b_g2_msm(&resources, bases, scalars).unwrap();
        ours_s.push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let bytes: Vec<u8> = scalars.iter().flat_map(Scalar::to_bytes_le).collect();
        let peer = blst_points.as_slice().mult(&bytes, 255);
        peer_s.push(start.elapsed().as_secs_f64());
        assert!(*ours.as_ref() == peer, "the two sums differ");
    }
    let (ours_s, peer_s) = (median(ours_s), median(peer_s));
    println!(
        "{{\"what\":\"{what}\",\"size\":{},\"threads\":{},\"ours_s\":{ours_s:.4},\
         \"peer\":\"blst\",\"peer_s\":{peer_s:.4},\"ratio\":{:.3}}}",
        scalars.len(),
        gpu_threads().unwrap(),
        peer_s / ours_s
    );
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
