//! The stage of transforms: one transform, and the six of the quotient.

use bellperson::domain::EvaluationDomain;
use benches::{
    Result,
    mode::Mode,
    msm::Scalars,
    stage::{self, Stage, Work},
};
use blstrs::Scalar;
use criterion::Criterion;
use cuzk_kernels::{ntt::Domain, quotient::quotient};
use ec_gpu_gen::threadpool::Worker;
use ff::Field;

const ROUNDS: usize = 10;

fn peers_domain(values: &[Scalar]) -> Result<EvaluationDomain<Scalar>> {
    Ok(EvaluationDomain::from_coeffs(values.to_vec())?)
}

fn transform<'a>(
    domain: &'a Domain,
    values: &'a [Scalar],
    worker: &'a Worker,
) -> Result<Stage<'a>> {
    let mut ours = values.to_vec();
    domain.ntt(&mut ours)?;
    let mut peer = peers_domain(values)?;
    peer.fft(worker, &mut None)?;
    stage::agree(peer.as_ref() == ours, "ntt")?;
    let again = move || -> Work<'a> {
        let mut values = values.to_vec();
        Box::new(move || Ok(domain.ntt(&mut values)?))
    };
    Ok(Stage {
        name: format!("ntt/2^{}", domain.log_size()),
        ours: Box::new(again),
        peer: (
            "bellperson",
            Box::new(move || Ok(peer.fft(worker, &mut None)?)),
        ),
    })
}

/// The quotient as a prover without the shortcut computes it: seven
/// transforms, and a division on the coset.
fn peers_quotient(
    a: &[Scalar],
    b: &[Scalar],
    c: &[Scalar],
    worker: &Worker,
) -> Result<Vec<Scalar>> {
    let on_coset = |values: &[Scalar]| {
        let mut domain = peers_domain(values)?;
        domain.ifft(worker, &mut None)?;
        domain.coset_fft(worker, &mut None)?;
        Result::Ok(domain)
    };
    let mut h = on_coset(a)?;
    h.mul_assign(worker, &on_coset(b)?);
    h.sub_assign(worker, &on_coset(c)?);
    h.divide_by_z_on_coset(worker);
    h.icoset_fft(worker, &mut None)?;
    Ok(h.into_coeffs())
}

fn six_transforms<'a>(
    domain: &'a Domain,
    a: &'a [Scalar],
    worker: &'a Worker,
) -> Result<Stage<'a>> {
    let b: Vec<Scalar> = a.iter().map(|a| *a + Scalar::ONE).collect();
    let c: Vec<Scalar> = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
    let (mut h, mut scratch) = (a.to_vec(), b.clone());
    quotient(domain, &mut h, &mut scratch)?;
    stage::agree(h == peers_quotient(a, &b, &c, worker)?, "quotient")?;
    let again = move || -> Work<'a> {
        // Any values take as long; what one run leaves, the next one takes.
        let (mut a, mut b) = (a.to_vec(), a.to_vec());
        Box::new(move || Ok(quotient(domain, &mut a, &mut b)?))
    };
    let peer = move || peers_quotient(a, &b, &c, worker).map(drop);
    Ok(Stage {
        name: format!("quotient/2^{}", domain.log_size()),
        ours: Box::new(again),
        peer: ("bellperson", Box::new(peer)),
    })
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let worker = Worker::new();
    let mut rows = Vec::new();
    for &log_size in mode.pick(&[16, 20][..], &[8]) {
        let domain = Domain::new(log_size)?;
        let values = Scalars::Uniform.make(domain.size());
        for stage in [
            transform(&domain, &values, &worker)?,
            six_transforms(&domain, &values, &worker)?,
        ] {
            rows.extend(stage.bench(&mut criterion, mode, ROUNDS)?);
        }
    }
    if mode == Mode::Measure {
        stage::print(&rows);
    }
    criterion.final_summary();
    Ok(())
}
