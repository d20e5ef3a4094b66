//! Transforms and sums against bellperson and blst.
//!
//! The peers have thread pools of their own and use every core, whatever
//! `--threads` says of ours. Each kernel is measured twice: as it runs in the engine, and with
//! what the peer has. The lines of the second measurement end with `-plain`.

use std::sync::Arc;

use bellperson::domain::EvaluationDomain;
use blst::{MultiPoint, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Projective, G2Projective, Scalar};
use cuzk_groth16::memory::buffer_pool;
use cuzk_kernels::msm::PackedScalars;
use cuzk_kernels::ntt::Domain;
use cuzk_kernels::{Context, Isa, KernelError, msm};
use cuzk_memory::Block;
use cuzk_memory::NEVER_STOP;
use cuzk_memory::{BufferPool, Dealloc};
use ec_gpu_gen::multiexp_cpu::{FullDensity, multiexp_cpu};
use ec_gpu_gen::threadpool::Worker;
use ff::{Field, PrimeField};
use group::Curve;
use group::prime::{PrimeCurve, PrimeCurveAffine};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::comparison::{Comparison, alternate, differs, without_peer};
use crate::bench::args::Bench;
use crate::failure::{Failure, failed};

/// The bits of a scalar, for blst.
const SCALAR_BITS: usize = 255;

/// The number of distinct bases. Drawing a point costs as much as adding a hundred, and an
/// MSM over repeated bases costs as much as any other.
const DISTINCT_BASES_MAX: usize = 1 << 14;

fn scalars(log_size: u32) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..1_usize << log_size)
        .map(|_| Scalar::random(&mut rng))
        .collect()
}

fn bases<G: PrimeCurve>(log_size: u32) -> Vec<G::Affine> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let size = 1_usize << log_size;
    let points: Vec<G> = (0..size.min(DISTINCT_BASES_MAX))
        .map(|_| G::random(&mut rng))
        .collect();
    points
        .iter()
        .map(Curve::to_affine)
        .cycle()
        .take(size)
        .collect()
}

/// Measures a transform twice. `ntt` runs as in the engine: in huge pages, with a table of roots
/// that was made before. `ntt-plain` has what the peer has: ordinary pages, and a table that is
/// made within the time.
pub(crate) fn ntt(isa: Isa, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let domain = Domain::with(isa, args.size).map_err(failed)?;
    let scalars = scalars(args.size);
    let mut block = Block::map(size_of_val(scalars.as_slice())).map_err(failed)?;
    let ours = block.values_mut(scalars.len());
    ours.copy_from_slice(&scalars);
    if args.alone {
        let run = || domain.ntt(ours).map_err(failed);
        return without_peer("ntt", size(args), args.runs, run);
    }
    let mut peer = EvaluationDomain::from_coeffs(scalars).map_err(failed)?;
    let worker = Worker::new();
    domain.ntt(ours).map_err(failed)?;
    peer.fft(&worker, &mut None).map_err(failed)?;
    if peer.as_ref() != ours {
        return Err(differs("ntt"));
    }
    let mut plain = peer.as_ref().to_vec();
    let mut peer = || peer.fft(&worker, &mut None).map_err(failed);
    let engine = alternate(args.runs, || domain.ntt(ours).map_err(failed), &mut peer)?;
    let same = alternate(
        args.runs,
        || {
            let domain = Domain::with(isa, args.size).map_err(failed)?;
            domain.ntt(&mut plain).map_err(failed)
        },
        &mut peer,
    )?;
    Ok(vec![
        engine.into_comparison("ntt", size(args), "bellperson"),
        same.into_comparison("ntt-plain", size(args), "bellperson"),
    ])
}

/// The working memory of our sums. The peers take theirs within the time.
enum Working {
    /// As in the engine: it is kept for the next sum.
    Kept(Arc<BufferPool>),
    /// As the peers': it is mapped within the time, and unmapped.
    Fresh,
}

impl Working {
    fn kept() -> Self {
        Self::Kept(buffer_pool(Dealloc::Recycle, u64::MAX))
    }

    fn context(&self, isa: Isa) -> Context<'_> {
        match self {
            Self::Kept(memory) => Context {
                isa,
                checkpoint: &NEVER_STOP,
                memory: &**memory,
            },
            Self::Fresh => isa.into(),
        }
    }
}

pub(crate) fn msm_g1(isa: Isa, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let bases = bases::<G1Projective>(args.size);
    let blst_bases: Vec<blst_p1_affine> = bases.iter().map(|base| *base.as_ref()).collect();
    let stage = Stage {
        name: "msm-g1",
        plain: "msm-g1-plain",
        isa,
        args,
    };
    stage.compare(
        |context, scalars| msm::g1_with(context, bases.as_slice(), scalars),
        |bytes| blst_bases.mult(bytes, SCALAR_BITS),
        |ours, blst| ours.as_ref() == blst,
        &bases,
    )
}

pub(crate) fn msm_g2(isa: Isa, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let bases = bases::<G2Projective>(args.size);
    let blst_bases: Vec<blst_p2_affine> = bases.iter().map(|base| *base.as_ref()).collect();
    let stage = Stage {
        name: "msm-g2",
        plain: "msm-g2-plain",
        isa,
        args,
    };
    stage.compare(
        |context, scalars| msm::g2_with(context, bases.as_slice(), scalars),
        |bytes| blst_bases.mult(bytes, SCALAR_BITS),
        |ours, blst| ours.as_ref() == blst,
        &bases,
    )
}

/// blst is given the points that are selected, ours all of them and bits.
pub(crate) fn sum_g1(isa: Isa, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let bases = bases::<G1Projective>(args.size);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let ones: Vec<u64> = (0..bases.len().div_ceil(64))
        .map(|_| rng.next_u64() & (u64::MAX >> (64 - bases.len().min(64))))
        .collect();
    let none = vec![0; ones.len()];
    let bits = PackedScalars::new(bases.len(), &ones, &none, &[]).map_err(failed)?;
    let selected: Vec<blst_p1_affine> = bases
        .iter()
        .enumerate()
        .filter(|(i, _)| ones[i / 64] >> (i % 64) & 1 == 1)
        .map(|(_, base)| *base.as_ref())
        .collect();
    let kept = Working::kept();
    let sum = |working: &Working| {
        msm::g1_packed(working.context(isa), bases.as_slice(), &bits).map_err(failed)
    };
    let ours = || sum(&kept);
    let size = format!("{} of 2^{}", selected.len(), args.size);
    if args.alone {
        return without_peer("sum-g1", size, args.runs, ours);
    }
    let peer = || Ok(selected.add());
    if ours()?.as_ref() != &peer()? {
        return Err(differs("sum-g1"));
    }
    let engine = alternate(args.runs, ours, peer)?;
    let same = alternate(args.runs, || sum(&Working::Fresh), peer)?;
    Ok(vec![
        engine.into_comparison("sum-g1", size.clone(), "blst"),
        same.into_comparison("sum-g1-plain", size, "blst"),
    ])
}

/// A sum in one of the two groups.
struct Stage<'a> {
    name: &'static str,
    /// The name of the lines with fresh memory.
    plain: &'static str,
    isa: Isa,
    args: &'a Bench,
}

impl Stage<'_> {
    /// Measures ours against blst, and ours against bellperson; then both with fresh memory.
    fn compare<G: PrimeCurve<Scalar = Scalar>, B>(
        &self,
        ours: impl Fn(Context<'_>, &[Scalar]) -> Result<G, KernelError>,
        blst: impl Fn(&[u8]) -> B,
        agree: impl Fn(&G, &B) -> bool,
        bases: &[G::Affine],
    ) -> Result<Vec<Comparison>, Failure>
    where
        G::Affine: PrimeCurveAffine<Curve = G, Scalar = Scalar>,
    {
        let scalars = scalars(self.args.size);
        let sum = |working: &Working| ours(working.context(self.isa), &scalars).map_err(failed);
        let kept = Working::kept();
        let ours = || sum(&kept);
        if self.args.alone {
            return without_peer(self.name, size(self.args), self.args.runs, ours);
        }
        let reprs: Arc<Vec<_>> = Arc::new(scalars.iter().map(PrimeField::to_repr).collect());
        let bytes: Vec<u8> = reprs.iter().flatten().copied().collect();
        let source = (Arc::new(bases.to_vec()), 0);
        let worker = Worker::new();
        let blst = || Ok(blst(&bytes));
        let bellperson = || {
            multiexp_cpu(&worker, source.clone(), FullDensity, Arc::clone(&reprs))
                .wait()
                .map_err(failed)
        };
        let expected = ours()?;
        if !agree(&expected, &blst()?) || expected != bellperson()? {
            return Err(differs(self.name));
        }
        let mut lines = Vec::new();
        for (name, working) in [(self.name, &kept), (self.plain, &Working::Fresh)] {
            let against_blst = alternate(self.args.runs, || sum(working), blst)?;
            let against_bellperson = alternate(self.args.runs, || sum(working), bellperson)?;
            lines.extend([
                against_blst.into_comparison(name, size(self.args), "blst"),
                against_bellperson.into_comparison(name, size(self.args), "bellperson"),
            ]);
        }
        Ok(lines)
    }
}

fn size(args: &Bench) -> String {
    format!("2^{}", args.size)
}
