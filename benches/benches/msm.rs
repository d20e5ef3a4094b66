//! The stage of MSMs, over G1 and over G2, of a witness and of full-size scalars.

use benches::{
    Result,
    mode::Mode,
    msm::{Scalars, bases},
    stage::{self, Stage, Work},
};
use blst::{MultiPoint, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use criterion::Criterion;
use cuzk_kernels::msm;
use std::hint::black_box;

const ROUNDS: usize = 10;
const SCALAR_BITS: usize = 255;

fn bytes(scalars: &[Scalar]) -> Vec<u8> {
    scalars.iter().flat_map(Scalar::to_bytes_le).collect()
}

fn g1<'a>(kind: Scalars, bases: &'a [G1Affine], scalars: &'a [Scalar]) -> Result<Stage<'a>> {
    let peers_bases: Vec<blst_p1_affine> = bases.iter().map(|base| *base.as_ref()).collect();
    let peers_scalars = bytes(scalars);
    let peer = move || peers_bases.mult(&peers_scalars, SCALAR_BITS);
    stage::agree(msm::g1(bases, scalars)?.as_ref() == &peer(), "G1")?;
    Ok(Stage {
        name: format!("msm G1/{} {}", kind.name(), bases.len()),
        ours: Box::new(move || -> Work<'a> {
            Box::new(move || {
                black_box(msm::g1(bases, scalars)?);
                Ok(())
            })
        }),
        peer: (
            "blst",
            Box::new(move || {
                black_box(peer());
                Ok(())
            }),
        ),
    })
}

fn g2<'a>(kind: Scalars, bases: &'a [G2Affine], scalars: &'a [Scalar]) -> Result<Stage<'a>> {
    let peers_bases: Vec<blst_p2_affine> = bases.iter().map(|base| *base.as_ref()).collect();
    let peers_scalars = bytes(scalars);
    let peer = move || peers_bases.mult(&peers_scalars, SCALAR_BITS);
    stage::agree(msm::g2(bases, scalars)?.as_ref() == &peer(), "G2")?;
    Ok(Stage {
        name: format!("msm G2/{} {}", kind.name(), bases.len()),
        ours: Box::new(move || -> Work<'a> {
            Box::new(move || {
                black_box(msm::g2(bases, scalars)?);
                Ok(())
            })
        }),
        peer: (
            "blst",
            Box::new(move || {
                black_box(peer());
                Ok(())
            }),
        ),
    })
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let mut rows = Vec::new();
    let (g1_len, g2_len) = mode.pick((1 << 16, 1 << 14), (64, 64));
    let g1_bases = bases::<G1Projective>(g1_len);
    let g2_bases = bases::<G2Projective>(g2_len);
    for kind in [Scalars::Uniform, Scalars::Witness] {
        let scalars = kind.make(g1_len);
        for stage in [
            g1(kind, &g1_bases, &scalars)?,
            g2(kind, &g2_bases, &scalars[..g2_len])?,
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
