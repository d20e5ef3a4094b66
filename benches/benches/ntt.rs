//! The stage of transforms: one transform, and the six of the quotient.
//!
//! Both sides transform vectors in place, in ordinary pages that were written before. Ours has a table
//! of roots. The engine makes it once, and the peer makes its roots within each transform. So each
//! stage is there twice: `ntt` and `quotient` have the table from before, and `ntt, own table` and
//! `quotient, own table` make it within the time.

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

/// The table of roots of ours.
#[derive(Clone, Copy)]
enum Table {
    /// Made before, as in the engine.
    Ready,
    /// Made within the time, as the peer makes its roots.
    Own,
}

impl Table {
    const BOTH: [Table; 2] = [Table::Ready, Table::Own];

    fn name(self) -> &'static str {
        match self {
            Table::Ready => "",
            Table::Own => ", own table",
        }
    }

    /// Runs `work` with a table.
    fn lend(self, ready: &Domain, work: impl FnOnce(&Domain) -> Result<()>) -> Result<()> {
        match self {
            Table::Ready => work(ready),
            Table::Own => work(&Domain::new(ready.log_size())?),
        }
    }
}

fn transform<'a>(
    domain: &'a Domain,
    table: Table,
    values: &'a [Scalar],
    worker: &'a Worker,
) -> Result<Stage<'a>> {
    let mut ours = values.to_vec();
    table.lend(domain, |domain| Ok(domain.ntt(&mut ours)?))?;
    let mut peer = peers_domain(values)?;
    peer.fft(worker, &mut None)?;
    stage::agree(peer.as_ref() == ours, "ntt")?;
    let again = move || -> Work<'a> {
        let mut values = values.to_vec();
        Box::new(move || table.lend(domain, |domain| Ok(domain.ntt(&mut values)?)))
    };
    Ok(Stage {
        name: format!("ntt{}/2^{}", table.name(), domain.log_size()),
        ours: Box::new(again),
        peer: (
            "bellperson",
            Box::new(move || Ok(peer.fft(worker, &mut None)?)),
        ),
    })
}

/// Computes the quotient as a prover without the shortcut does, in place: seven transforms, and a
/// division on the coset. The result is in the first vector.
fn peers_quotient(vectors: &mut [EvaluationDomain<Scalar>; 3], worker: &Worker) -> Result<()> {
    for vector in vectors.iter_mut() {
        vector.ifft(worker, &mut None)?;
        vector.coset_fft(worker, &mut None)?;
    }
    let [h, b, c] = vectors;
    h.mul_assign(worker, b);
    h.sub_assign(worker, c);
    h.divide_by_z_on_coset(worker);
    h.icoset_fft(worker, &mut None)?;
    Ok(())
}

fn six_transforms<'a>(
    domain: &'a Domain,
    table: Table,
    a: &'a [Scalar],
    worker: &'a Worker,
) -> Result<Stage<'a>> {
    let b: Vec<Scalar> = a.iter().map(|a| *a + Scalar::ONE).collect();
    let c: Vec<Scalar> = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
    let mut peers = [peers_domain(a)?, peers_domain(&b)?, peers_domain(&c)?];
    peers_quotient(&mut peers, worker)?;
    let (mut h, mut scratch) = (a.to_vec(), b);
    table.lend(domain, |domain| Ok(quotient(domain, &mut h, &mut scratch)?))?;
    stage::agree(peers[0].as_ref() == h, "quotient")?;
    // Any values take as long; what one run leaves, the next one takes.
    let again = move || -> Work<'a> {
        let (mut a, mut b) = (a.to_vec(), a.to_vec());
        Box::new(move || table.lend(domain, |domain| Ok(quotient(domain, &mut a, &mut b)?)))
    };
    Ok(Stage {
        name: format!("quotient{}/2^{}", table.name(), domain.log_size()),
        ours: Box::new(again),
        peer: (
            "bellperson",
            Box::new(move || peers_quotient(&mut peers, worker)),
        ),
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
        for table in Table::BOTH {
            for stage in [
                transform(&domain, table, &values, &worker)?,
                six_transforms(&domain, table, &values, &worker)?,
            ] {
                rows.extend(stage.bench(&mut criterion, mode, ROUNDS)?);
            }
        }
    }
    if mode == Mode::Measure {
        stage::print(&rows);
    }
    criterion.final_summary();
    Ok(())
}
