//! Parameters for tests, from toxic waste that somebody knows.
//!
//! The same waste gives the same bytes as bellperson's `generate_parameters`
//! and `Parameters::write`. Not a ceremony: what comes out is insecure by
//! design. The invariant: points are made and written in chunks of bounded
//! size; what grows with the circuit is a few scalars a variable.

use std::io::Write;

use bellperson::groth16::VerifyingKey;
use blstrs::{Bls12, G1Affine, G2Affine, Scalar};
use cuzk_kernels::fixed_base::{G1Table, G2Table};
use cuzk_kernels::{Isa, KernelError};
use cuzk_memory::{Checkpoint, NEVER_STOP};
use cuzk_pce::Program;
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, UncompressedEncoding};
use rayon::prelude::*;

use super::error::GenerateError;
use super::qap::Qap;
use super::toxic_waste::ToxicWaste;

/// Points in memory at a time: 12 MiB of them in G2, and as much encoded.
const CHUNK: usize = 1 << 16;

/// Scalars that one task computes at a time.
const TASK: usize = 1 << 12;

/// The result of [`generate`].
#[derive(Debug)]
pub struct Generated {
    /// The verifying key, as it opens the parameters.
    pub vk: VerifyingKey<Bls12>,
    /// Points multiplied, in G1 and G2 together.
    pub points: u64,
}

/// Writes the parameters of `circuit` for `waste` to `out`, in bellperson's format,
/// and returns their verifying key. Work runs on rayon's current pool; `isa` changes
/// how long it takes, not a byte.
/// `progress` is told points done and points in all after every chunk.
///
/// # Errors
///
/// A variable without constraints, degenerate toxic waste, a circuit too large
/// for the format, and what writing says.
pub fn generate(
    circuit: &Program<Scalar>,
    waste: &ToxicWaste,
    isa: Isa,
    out: &mut impl Write,
    mut progress: impl FnMut(u64, u64),
) -> Result<Generated, GenerateError> {
    generate_while(circuit, waste, isa, &NEVER_STOP, out, &mut progress)
}

/// Writes the parameters as [`generate`] does. Before its first point it asks `checkpoint` about
/// every millisecond, but for the time of a table. Then `out` has to say that it is cancelled.
///
/// # Errors
///
/// As [`generate`], and [`GenerateError::Stopped`].
pub(super) fn generate_while(
    circuit: &Program<Scalar>,
    waste: &ToxicWaste,
    isa: Isa,
    checkpoint: &Checkpoint<'_>,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Generated, GenerateError> {
    waste.check()?;
    let scalars = Scalars::new(circuit, waste, checkpoint)?;
    let points = scalars.points();
    let g1 = G1Table::with(isa, waste.g1, scalars.points_in_g1());
    checkpoint.check()?;
    let g2 = G2Table::with(isa, waste.g2, scalars.b.len());
    checkpoint.check()?;
    let mut writer = PointWriter {
        out,
        done: 0,
        total: points as u64,
        progress,
    };
    let vk = verifying_key(waste, &g1, &scalars.ic)?;
    vk.write(&mut *writer.out)?;
    writer.advance(scalars.ic.len());
    writer.powers(&g1, &scalars)?;
    writer.query(&g1, "points in L", &scalars.l)?;
    writer.query(&g1, "points in A", &scalars.a)?;
    writer.query(&g1, "points in B", &scalars.b)?;
    writer.query(&g2, "points in B", &scalars.b)?;
    writer.out.flush()?;
    Ok(Generated {
        vk,
        points: points as u64,
    })
}

/// The multipliers of the generators, query by query.
struct Scalars {
    ic: Vec<Scalar>,
    l: Vec<Scalar>,
    a: Vec<Scalar>,
    b: Vec<Scalar>,
    /// H is τⁱ·`h_scale` for i below `h_len`.
    h_scale: Scalar,
    h_len: usize,
    tau: Scalar,
}

impl Scalars {
    fn new(
        circuit: &Program<Scalar>,
        waste: &ToxicWaste,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Self, GenerateError> {
        let Qap {
            mut a,
            mut b,
            c,
            domain_len,
            vanishing,
        } = Qap::evaluate(circuit, waste.tau, checkpoint)?;
        let invert = |value: Scalar, what| {
            Option::<Scalar>::from(value.invert()).ok_or(GenerateError::DegenerateWaste { what })
        };
        let gamma_inverse = invert(waste.gamma, "gamma")?;
        let delta_inverse = invert(waste.delta, "delta")?;
        let num_inputs = circuit.num_inputs();
        let mut ic = c;
        ic.par_iter_mut()
            .zip(&a)
            .zip(&b)
            .enumerate()
            .for_each(|(index, ((value, a), b))| {
                let inverse = if index < num_inputs {
                    gamma_inverse
                } else {
                    delta_inverse
                };
                *value = (waste.beta * a + waste.alpha * b + *value) * inverse;
            });
        if let Some(index) = ic.iter().position(Field::is_zero_vartime) {
            return Err(GenerateError::UnconstrainedVariable { index });
        }
        // A variable that is not in a matrix has no point in its query.
        checkpoint.check()?;
        a.retain(|value| !value.is_zero_vartime());
        b.retain(|value| !value.is_zero_vartime());
        Ok(Self {
            l: ic.split_off(num_inputs),
            ic,
            a,
            b,
            h_scale: vanishing * delta_inverse,
            h_len: domain_len - 1,
            tau: waste.tau,
        })
    }

    fn points_in_g1(&self) -> usize {
        self.ic.len() + self.h_len + self.l.len() + self.a.len() + self.b.len()
    }

    fn points(&self) -> usize {
        self.points_in_g1() + self.b.len()
    }

    /// The scalars of H from `start` on.
    fn powers(&self, start: usize, out: &mut [Scalar]) {
        out.par_chunks_mut(TASK)
            .enumerate()
            .for_each(|(task, out)| {
                let exponent = start + task * TASK;
                let mut power = self.tau.pow_vartime([exponent as u64]) * self.h_scale;
                for value in out {
                    *value = power;
                    power *= self.tau;
                }
            });
    }
}

fn verifying_key(
    waste: &ToxicWaste,
    g1: &G1Table,
    ic_scalars: &[Scalar],
) -> Result<VerifyingKey<Bls12>, GenerateError> {
    let mut ic = vec![G1Affine::identity(); ic_scalars.len()];
    g1.mul_many(ic_scalars, &mut ic)?;
    Ok(VerifyingKey {
        alpha_g1: (waste.g1 * waste.alpha).to_affine(),
        beta_g1: (waste.g1 * waste.beta).to_affine(),
        beta_g2: (waste.g2 * waste.beta).to_affine(),
        gamma_g2: (waste.g2 * waste.gamma).to_affine(),
        delta_g1: (waste.g1 * waste.delta).to_affine(),
        delta_g2: (waste.g2 * waste.delta).to_affine(),
        ic,
    })
}

/// Multiples of one generator.
trait FixedBase: Sync {
    type Point: PrimeCurveAffine + UncompressedEncoding;

    fn multiply(&self, scalars: &[Scalar], out: &mut [Self::Point]) -> Result<(), KernelError>;
}

impl FixedBase for G1Table {
    type Point = G1Affine;

    fn multiply(&self, scalars: &[Scalar], out: &mut [G1Affine]) -> Result<(), KernelError> {
        self.mul_many(scalars, out)
    }
}

impl FixedBase for G2Table {
    type Point = G2Affine;

    fn multiply(&self, scalars: &[Scalar], out: &mut [G2Affine]) -> Result<(), KernelError> {
        self.mul_many(scalars, out)
    }
}

/// Multiplies, encodes and writes, chunk by chunk.
struct PointWriter<'w> {
    out: &'w mut dyn Write,
    done: u64,
    total: u64,
    progress: &'w mut dyn FnMut(u64, u64),
}

impl PointWriter<'_> {
    /// A query given by its scalars.
    fn query<T: FixedBase>(
        &mut self,
        table: &T,
        what: &'static str,
        scalars: &[Scalar],
    ) -> Result<(), GenerateError> {
        self.count(what, scalars.len())?;
        let mut buffers = Buffers::new(scalars.len());
        for scalars in scalars.chunks(CHUNK) {
            self.chunk(table, scalars, &mut buffers)?;
        }
        Ok(())
    }

    /// The query H.
    fn powers(&mut self, table: &G1Table, scalars: &Scalars) -> Result<(), GenerateError> {
        let len = scalars.h_len;
        self.count("points in H", len)?;
        let mut buffers = Buffers::new(len);
        let mut powers = vec![Scalar::ZERO; len.min(CHUNK)];
        for start in (0..len).step_by(CHUNK) {
            let powers = &mut powers[..CHUNK.min(len - start)];
            scalars.powers(start, powers);
            self.chunk(table, powers, &mut buffers)?;
        }
        Ok(())
    }

    fn count(&mut self, what: &'static str, len: usize) -> Result<(), GenerateError> {
        let count = u32::try_from(len).map_err(|_| GenerateError::TooLarge {
            what,
            max: u32::MAX.into(),
            got: len as u64,
        })?;
        self.out.write_all(&count.to_be_bytes())?;
        Ok(())
    }

    fn chunk<T: FixedBase>(
        &mut self,
        table: &T,
        scalars: &[Scalar],
        buffers: &mut Buffers<T::Point>,
    ) -> Result<(), GenerateError> {
        let points = &mut buffers.points[..scalars.len()];
        table.multiply(scalars, points)?;
        let bytes = &mut buffers.bytes[..scalars.len() * buffers.point_bytes];
        bytes
            .par_chunks_exact_mut(buffers.point_bytes)
            .with_min_len(TASK)
            .zip(&*points)
            .for_each(|(bytes, point)| bytes.copy_from_slice(point.to_uncompressed().as_ref()));
        self.out.write_all(bytes)?;
        self.advance(scalars.len());
        Ok(())
    }

    fn advance(&mut self, points: usize) {
        self.done += points as u64;
        (self.progress)(self.done, self.total);
    }
}

/// One chunk's points and their encoding.
struct Buffers<P> {
    points: Vec<P>,
    bytes: Vec<u8>,
    point_bytes: usize,
}

impl<P: PrimeCurveAffine + UncompressedEncoding> Buffers<P> {
    fn new(len: usize) -> Self {
        let len = len.min(CHUNK);
        let point_bytes = P::Uncompressed::default().as_ref().len();
        Self {
            points: vec![P::identity(); len],
            bytes: vec![0; len * point_bytes],
            point_bytes,
        }
    }
}
