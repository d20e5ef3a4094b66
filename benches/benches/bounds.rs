//! How far each kernel is from the multiplications that it cannot do without, on one
//! thread, with each of this machine's instruction sets.

use benches::{
    Result,
    bound::{Instruction, Multiplier, clock_hz},
    mode::Mode,
    msm::{Scalars, bases},
    multiplication_rate::per_cycle,
    study::{Study, time},
    table,
};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use criterion::Criterion;
use cuzk_kernels::{
    Isa,
    fixed_base::{G1Table, G2Table},
    msm::{self, PackedScalars},
    ntt::Domain,
    poseidon::{Poseidon, PoseidonConstants, SparseMatrix},
    quotient::quotient,
};
use group::prime::PrimeCurveAffine;
use std::{hint::black_box, time::Duration};

const ROUNDS: usize = 12;

/// A kernel at one size.
struct Kernel<'a> {
    /// The name of one of its items.
    item: String,
    isa: Isa,
    items: usize,
    /// The multiplications of an item, and the instruction that they are.
    multiplications: (f64, Instruction),
    run: Box<dyn FnMut() -> Result<()> + Send + 'a>,
}

/// The inputs of the kernels.
struct Inputs {
    log: u32,
    scalars: Vec<Scalar>,
    g1: Vec<G1Affine>,
    g2: Vec<G2Affine>,
}

impl Inputs {
    fn new(mode: Mode) -> Self {
        let log = mode.pick(16, 6);
        let len = 1 << log;
        Self {
            log,
            scalars: Scalars::Uniform.make(len),
            g1: bases::<G1Projective>(len),
            g2: bases::<G2Projective>(len / 8),
        }
    }
}

fn transform(isa: Isa, inputs: &Inputs) -> Result<[Kernel<'_>; 2]> {
    let (log, instruction) = (inputs.log, Instruction::of(isa));
    let multiplier = Multiplier::of(instruction);
    let domain = Domain::with(isa, log)?;
    let other = Domain::with(isa, log)?;
    let mut values = inputs.scalars.clone();
    let (mut a, mut b) = (inputs.scalars.clone(), inputs.scalars.clone());
    Ok([
        Kernel {
            item: format!("point of a transform of 2^{log}"),
            isa,
            items: values.len(),
            multiplications: (multiplier.transform(log), instruction),
            run: Box::new(move || Ok(domain.ntt(&mut values)?)),
        },
        Kernel {
            // Six transforms; a·b twice, three shifts, and the scale of the sum.
            item: format!("point of a quotient of 2^{log}"),
            isa,
            items: a.len(),
            multiplications: (
                6.0 * multiplier.transform(log) + 6.0 * multiplier.dot(1),
                instruction,
            ),
            run: Box::new(move || Ok(quotient(&other, &mut a, &mut b)?)),
        },
    ])
}

fn sums(isa: Isa, inputs: &Inputs) -> [Kernel<'_>; 3] {
    let instruction = Instruction::of(isa);
    let multiplier = Multiplier::of(instruction);
    let Inputs {
        log,
        scalars,
        g1,
        g2,
    } = inputs;
    let additions = |terms: usize| {
        let bits = msm::window_bits(terms, 1);
        terms * 255_usize.div_ceil(bits as usize)
    };
    // Every second base.
    let ones = vec![0x5555_5555_5555_5555; g1.len() / 64];
    let none = vec![0; ones.len()];
    let selected = move || {
        let bits = PackedScalars::new(g1.len(), &ones, &none, &[])?;
        black_box(msm::g1_packed(isa, g1.as_slice(), &bits)?);
        Ok(())
    };
    [
        Kernel {
            item: format!("addition of a sum of half of 2^{log} points in G1"),
            isa,
            items: g1.len() / 2,
            multiplications: (multiplier.addition_g1(), instruction),
            run: Box::new(selected),
        },
        Kernel {
            item: format!("addition of 2^{log} terms in G1"),
            isa,
            items: additions(g1.len()),
            multiplications: (multiplier.addition_g1(), instruction),
            run: Box::new(move || {
                black_box(msm::g1_with(isa, g1.as_slice(), scalars)?);
                Ok(())
            }),
        },
        Kernel {
            item: format!("addition of 2^{} terms in G2", log - 3),
            isa,
            items: additions(g2.len()),
            multiplications: (multiplier.addition_g2(), instruction),
            run: Box::new(move || {
                black_box(msm::g2_with(isa, g2.as_slice(), &scalars[..g2.len()])?);
                Ok(())
            }),
        },
    ]
}

fn fixed_base(isa: Isa, inputs: &Inputs) -> [Kernel<'_>; 2] {
    let instruction = Instruction::of(isa);
    let multiplier = Multiplier::of(instruction);
    let (g1_scalars, g2_scalars) = (&inputs.scalars[..], &inputs.scalars[..inputs.g2.len()]);
    // As for a million points, of which these are some.
    let expected_len = 1 << 20;
    let g1 = G1Table::with(isa, G1Affine::generator(), expected_len);
    let g2 = G2Table::with(isa, G2Affine::generator(), expected_len);
    let mut g1_out = vec![G1Affine::identity(); g1_scalars.len()];
    let mut g2_out = vec![G2Affine::identity(); g2_scalars.len()];
    [
        Kernel {
            item: "addition of multiples of one base in G1".to_owned(),
            isa,
            items: g1_scalars.len() * g1.additions(),
            multiplications: (multiplier.addition_g1(), instruction),
            run: Box::new(move || Ok(g1.mul_many(g1_scalars, &mut g1_out)?)),
        },
        Kernel {
            item: "addition of multiples of one base in G2".to_owned(),
            isa,
            items: g2_scalars.len() * g2.additions(),
            multiplications: (multiplier.addition_g2(), instruction),
            run: Box::new(move || Ok(g2.mul_many(g2_scalars, &mut g2_out)?)),
        },
    ]
}

/// A tree's hash of eight nodes, but for its constants' values.
fn poseidon(isa: Isa, inputs: &Inputs) -> Result<Kernel<'_>> {
    const WIDTH: usize = 9;
    const FULL_ROUNDS: usize = 8;
    const PARTIAL_ROUNDS: usize = 57;
    let row = |len: usize| Scalars::Uniform.make(len);
    let matrix = || vec![row(WIDTH); WIDTH];
    let sparse = SparseMatrix {
        column: row(WIDTH),
        row: row(WIDTH - 1),
    };
    let hash = Poseidon::new(&PoseidonConstants {
        domain_tag: Scalar::from(255),
        full_rounds: FULL_ROUNDS,
        round_keys: row(FULL_ROUNDS * WIDTH + PARTIAL_ROUNDS),
        matrix: matrix(),
        pre_sparse: matrix(),
        sparse: vec![sparse; PARTIAL_ROUNDS],
    })?;
    let count = inputs.scalars.len() / 16;
    let preimages = &inputs.scalars[..count * hash.arity()];
    let mut traces = row(count * hash.trace_len());
    let instruction = Instruction::of_poseidon(isa);
    let multiplier = Multiplier::of(instruction);
    let full = WIDTH as f64 * (3.0 * multiplier.dot(1) + multiplier.dot(WIDTH));
    // The products of the row are sums of one: each is added to what the element has.
    let partial =
        3.0 * multiplier.dot(1) + multiplier.dot(WIDTH) + (WIDTH - 1) as f64 * multiplier.dot(1);
    Ok(Kernel {
        item: "Poseidon hash of eight elements".to_owned(),
        isa,
        items: count,
        multiplications: (
            FULL_ROUNDS as f64 * full + PARTIAL_ROUNDS as f64 * partial,
            instruction,
        ),
        run: Box::new(move || Ok(hash.traces(isa, preimages, &mut traces)?)),
    })
}

fn kernels(isa: Isa, inputs: &Inputs) -> Result<Vec<Kernel<'_>>> {
    let mut kernels = Vec::new();
    kernels.extend(transform(isa, inputs)?);
    kernels.extend(sums(isa, inputs));
    kernels.extend(fixed_base(isa, inputs));
    kernels.push(poseidon(isa, inputs)?);
    Ok(kernels)
}

/// A kernel after its samples were taken.
struct Row {
    item: String,
    isa: Isa,
    items: usize,
    multiplications: (f64, Instruction),
    best: Option<Duration>,
}

/// Prints the cycles of each kernel beside those that its multiplications take on this machine.
fn print(rows: Vec<Row>) {
    let hertz = clock_hz();
    let instructions = [Instruction::Madd52, Instruction::Fma, Instruction::Mulx];
    let rates = instructions.map(|instruction| (instruction, per_cycle(instruction)));
    let rows: Vec<_> = (rows.into_iter())
        .map(|row| {
            let (multiplications, instruction) = row.multiplications;
            let rate = rates.iter().find(|(other, _)| *other == instruction);
            let bound = rate.and_then(|(_, rate)| *rate);
            let bound = bound.map(|rate| multiplications / rate);
            let cycles = (row.best).map(|wall| wall.as_secs_f64() * hertz / row.items as f64);
            let share = bound.zip(cycles).map(|(bound, cycles)| bound / cycles);
            vec![
                row.item,
                row.isa.to_string(),
                instruction.name().to_owned(),
                table::figure(bound, table::count),
                table::figure(cycles, table::count),
                table::figure(share, table::times),
            ]
        })
        .collect();
    let rates = rates
        .into_iter()
        .filter_map(|(instruction, rate)| Some((instruction, rate?)));
    let rates: Vec<_> = rates
        .map(|(instruction, rate)| format!("{rate:.2} {}", instruction.name()))
        .collect();
    table::print(
        &format!(
            "cycles at {:.2} GHz, the best of {ROUNDS} rounds on one thread; `bound` is the \
             multiplications alone, of which a core starts {} a cycle; `share` is the bound by \
             the cycles",
            hertz / 1e9,
            rates.join(", ")
        ),
        &[
            "one",
            "instructions",
            "multiplication",
            "bound",
            "cycles",
            "share",
        ],
        &rows,
    );
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let inputs = Inputs::new(mode);
    let mut study = Study::<Duration>::new();
    let mut rows = Vec::new();
    for isa in Isa::all().into_iter().rev() {
        for kernel in pool.install(|| kernels(isa, &inputs).map_err(|error| error.to_string()))? {
            let Kernel {
                item,
                isa,
                items,
                multiplications,
                mut run,
            } = kernel;
            let pool = &pool;
            let arm = study.arm(format!("{item}/{isa}"), move || {
                let (result, wall) = pool.install(|| time(&mut run));
                result.map(|()| wall)
            });
            let row = Row {
                item,
                isa,
                items,
                multiplications,
                best: None,
            };
            rows.push((arm, row));
        }
    }
    study.bench(&mut criterion, "bounds", mode, ROUNDS)?;
    if mode == Mode::Measure {
        let rows = rows.into_iter().map(|(arm, row)| {
            let best = study.samples(arm).iter().min().copied();
            Row { best, ..row }
        });
        let rows: Vec<_> = rows.collect();
        pool.install(|| print(rows));
    }
    criterion.final_summary();
    Ok(())
}
